// Library functions: what a step of kind `library` calls. A backend has a table of them by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "croton/dtype.h"
#include "croton/shape.h"
#include "runtime/attrs.h"

namespace croton {

class Device;

/// Dtype and shape of one operand.
struct OperandType {
  DType dtype = DType::float32;
  Shape shape;
};

/// A library function prepared for given shapes; lives in a specialised plan. Any number of threads
/// may run it at once.
class PreparedCall {
 public:
  virtual ~PreparedCall();
  /// Bytes of scratch memory that `run` wants, 64-byte aligned.
  virtual std::size_t workspace() const { return 0; }
  /// Estimated cost in scalar operations, like Step::work.
  virtual std::int64_t work() const { return 0; }
  /// The step asks for results that do not depend on the number of threads.
  bool one_thread = false;
  /// operands: outputs, then inputs. `threads` is how many it may use; `queue` is what the backend
  /// of the device gives its library functions, if anything.
  virtual void run(void* const* operands, void* workspace, int threads, void* queue) const = 0;
};

/// An entry of a backend's table.
struct LibraryFunction {
  std::string_view name;
  /// Empty when it can do this, else why not: "[gemm] ...". Operands: outputs, then inputs.
  std::string (*unsupported)(const Attrs& attrs, std::span<const OperandType> operands);
  std::unique_ptr<PreparedCall> (*prepare)(Device& device, const Attrs& attrs,
                                           std::span<const OperandType> operands);
};

/// The entry called `name` in `table`, or nullptr.
const LibraryFunction* find_function(std::span<const LibraryFunction> table, std::string_view name);

}  // namespace croton
