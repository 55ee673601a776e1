// The state behind a shared variable: a value that lives on a context between calls.
#pragma once

#include <cstdint>
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

struct SharedState final : private ForkAware {
  std::uint64_t id = 0;  ///< counts up as states are made; calls take locks in this order
  std::string name;      ///< may be empty
  std::string context;   ///< name of the context, as Context::name() has it
  DType dtype = DType::float32;
  Shape shape;  ///< kAnyDim on every axis when resizable
  bool resizable = false;
  std::shared_ptr<Runtime> runtime;
  Context* home = nullptr;  ///< owned by `runtime`

  /// Calls hold it shared when they read the value, exclusively when they update it.
  mutable RwLock lock;
  Array value;       ///< contiguous, on `home`; its memory is never written in place
  std::string lost;  ///< why the device lost the value; empty when it did not

  SharedState();
  ~SharedState();
  SharedState(const SharedState&) = delete;
  SharedState& operator=(const SharedState&) = delete;

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

/// The value, on the host. DeviceError when it was lost.
Array get_value(const SharedState& state);

/// Replaces the value by a copy of `value`. UserError when dtype, rank, or (unless resizable) shape
/// differ.
void set_value(SharedState& state, const Array& value);

}  // namespace croton
