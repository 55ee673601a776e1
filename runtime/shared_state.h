// The state behind a shared variable: a value that lives on a context between calls.
#pragma once

#include <cstdint>
#include <forward_list>
#include <memory>
#include <string>
#include <string_view>

#include "croton/array.h"
#include "croton/dtype.h"
#include "croton/shape.h"
#include "runtime/fork.h"
#include "runtime/rw_lock.h"

namespace croton {

class Context;
class Runtime;

/// A place for the value on a context other than its home.
struct SharedCopy {
  Context* context = nullptr;
  Array value;
};

/// The value is kept on its home context, and wherever else functions read or update it: all places
/// that hold an array hold the same value, and those whose array would be an old one hold none.
struct SharedState final : private ForkAware {
  std::uint64_t id = 0;  ///< counts up as states are made; calls take locks in this order
  std::string name;      ///< may be empty
  std::string context;   ///< name of the context, as Context::name() has it
  DType dtype = DType::float32;
  Shape shape;  ///< kAnyDim on every axis when resizable
  bool resizable = false;
  std::shared_ptr<Runtime> runtime;
  Context* home = nullptr;  ///< owned by `runtime`

  /// Calls hold it shared when they read the value, exclusively when they update it or bring it to
  /// one more context.
  mutable RwLock lock;
  Array value;  ///< on `home`; arrays are contiguous, and their memory is never written in place
  std::forward_list<SharedCopy> others;  ///< places never move or go away
  std::string lost;                      ///< why the device lost the value; empty when it did not

  SharedState();
  ~SharedState();
  SharedState(const SharedState&) = delete;
  SharedState& operator=(const SharedState&) = delete;

  /// Where the value is when it is on that context. Takes the lock exclusively to make a place.
  Array* place_on(Context& context);
  /// A place with an array, on a device that works: in memory of the host or of a device, if there
  /// is the choice; nullptr when the value is lost.
  const Array* nearest(bool host_memory) const;
  /// A place with an array: its sizes can be read wherever it is.
  const Array& any() const;

  /// Swaps the value for another, which is on the home context, and drops it everywhere else; for
  /// who holds the lock alone.
  void replace(Array& other) noexcept;

  /// Why there is no value any more; empty where there is one.
  std::string why_lost() const;

  /// "w", or "shared variable 3" without a name.
  std::string title() const;

 private:
  void before_fork() noexcept override {}
  void after_fork(bool child) noexcept override;
};

/// A new state on the context called `context`, with a copy of `value`. ConfigError for a context
/// that is not bound, DeviceError for one that cannot be used.
std::shared_ptr<SharedState> make_shared_state(std::shared_ptr<Runtime> runtime, const Array& value,
                                               std::string name, std::string_view context,
                                               bool resizable = false);

/// The value, on the host. DeviceError when it was lost: each context that had it failed.
Array get_value(const SharedState& state);

/// Replaces the value by a copy of `value` on the home context alone. UserError when dtype, rank,
/// or (unless resizable) shape differ.
void set_value(SharedState& state, const Array& value);

}  // namespace croton
