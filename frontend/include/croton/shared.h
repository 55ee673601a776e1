#pragma once

#include <string>

#include "croton/array.h"
#include "croton/variable.h"

namespace croton {

struct SharedOptions {
  /// For messages and printing.
  std::string name = {};
  /// The context that the value lives on; empty: that of the ContextScope, else the default device.
  std::string target = {};
  /// Whether set_value and updates may change sizes; then no size is known to the compiler and no
  /// size of 1 broadcasts.
  bool resizable = false;
};

/// A Variable with state: an Array that lives on its context between calls.
class CROTON_API Shared : public Variable {
 public:
  Shared() = default;

  /// The value, on the host. DeviceError when its device was lost.
  Array get_value() const;
  /// Replaces the value; dtype, rank, and (unless resizable) shape stay: UserError otherwise.
  void set_value(const Array& value) const;

 private:
  friend CROTON_API Shared shared(const Array& value, const SharedOptions& options, Loc loc);
  explicit Shared(const Variable& variable) : Variable(variable) {}
};

/// A shared variable that starts with a copy of `value`. ConfigError for a target that is not
/// bound.
CROTON_API Shared shared(const Array& value, const SharedOptions& options = {},
                         Loc loc = Loc::current());

}  // namespace croton
