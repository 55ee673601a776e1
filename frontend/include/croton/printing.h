#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "croton/export.h"
#include "croton/function.h"
#include "croton/variable.h"

namespace croton {

struct PrintOptions {
  /// Letters that name nodes, so that a value that is used twice can be recognised.
  bool ids = true;
  /// dtype and sizes, "?" where a size is not known.
  bool types = true;
  /// The file and line that built each node.
  bool lines = false;
};

/// The expression as a tree, one node a line: the op with its parameters, or the name of a symbol;
/// id, type and context. A node with operands is printed in full once and ends in "..." where it
/// occurs again; trees that are very deep continue at the margin.
CROTON_API std::string debug_text(const std::vector<Variable>& values,
                                  const PrintOptions& options = {});
template <Symbol T>
std::string debug_text(const T& value, const PrintOptions& options = {}) {
  return debug_text(std::vector<Variable>{value}, options);
}

/// A function before and after compilation: outputs and updates as trees, then with contexts,
/// transfers and their bytes and the kernel that computes each node; the kernels and the ops fused
/// into each; the plan.
CROTON_API std::string debug_text(const Function& function, const PrintOptions& options = {});

// The same, printed to the standard output or to a stream.
CROTON_API void debugprint(const std::vector<Variable>& values, const PrintOptions& options = {});
CROTON_API void debugprint(const Function& function, const PrintOptions& options = {});
CROTON_API void debugprint(std::ostream& out, const std::vector<Variable>& values,
                           const PrintOptions& options = {});
CROTON_API void debugprint(std::ostream& out, const Function& function,
                           const PrintOptions& options = {});
template <Symbol T>
void debugprint(const T& value, const PrintOptions& options = {}) {
  debugprint(std::vector<Variable>{value}, options);
}
template <Symbol T>
void debugprint(std::ostream& out, const T& value, const PrintOptions& options = {}) {
  debugprint(out, std::vector<Variable>{value}, options);
}

/// The expression as it would be written: "(x + 1) * exp(y)". What occurs more than once is written
/// once and named: "t1 / sum(t1) where t1 = exp(x)".
CROTON_API std::string pp(const Variable& value);

/// One line: "add: float32 (?, 10) on dev0", or "x: float32 (?, 784)" for a symbol.
CROTON_API std::string to_string(const Variable& value);
CROTON_API std::ostream& operator<<(std::ostream& out, const Variable& value);

/// "(2, 3)"
CROTON_API std::ostream& operator<<(std::ostream& out, const Shape& shape);
/// "float32"
CROTON_API std::ostream& operator<<(std::ostream& out, DType dtype);

struct InspectOptions {
  /// Compute capability times ten of the GPU that CUDA source is made for; none is needed.
  int sm = 90;
};

/// What the compiler made of a function, as text.
struct Inspection {
  std::string graph;        ///< as the user wrote it, one node a line
  std::string optimized;    ///< after all passes
  std::string fused;        ///< the ops in each kernel, and why others are apart
  std::string plan;         ///< buffers and steps
  std::string kernels;      ///< in the compiler's kernel language, for this machine's CPU
  std::string llvm_ir;      ///< for this machine's CPU
  std::string cuda_source;  ///< CUDA C++
};

/// Everything that a compiled function went through, and the program text it would have on either
/// kind of device, wherever it runs.
CROTON_API Inspection inspect(const Function& function, const InspectOptions& options = {});

}  // namespace croton
