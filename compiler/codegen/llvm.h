// Kernels as LLVM IR text.
//
// The emitter writes vector code itself, so that LLVM's code generator alone, without its passes
// over the IR, makes good machine code of it. How the kernel language maps:
//
//   * The blocks of the grid are a loop around the body. Values that do not depend on the block
//     are computed before it, and in general each pure value stands before the innermost loop on
//     whose counter it depends.
//   * `lanes` is a loop over whole vectors of W = vector bits / 32 * unroll elements, followed by
//     one masked vector for the rest; every dtype has W lanes, so a wide one takes several
//     registers. Uniform values stay scalars and are splat before the loop.
//   * A fold over lanes keeps a vector and halves it at the end: the tree depends on the extent and
//     the vector width alone.
//   * Buffers that are only read, and no output aliases, are loaded as invariant memory.
//   * Block-local arrays live on the stack, up to 256 KiB together, else in memory allocated once
//     a call of the kernel. Their sizes cannot depend on the block.
//
// Nothing carries a fast-math flag, and LLVM forms no multiply-add of its own.
#pragma once

#include <span>
#include <string>

#include "compiler/kernel/kernel.h"
#include "runtime/target.h"

namespace croton::codegen {

/// One module with the kernels' entries, each under its name.
std::string emit_llvm(std::span<const kernel::Kernel* const> kernels, const TargetInfo& target);

}  // namespace croton::codegen
