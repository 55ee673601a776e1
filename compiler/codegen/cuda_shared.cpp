#include "compiler/codegen/cuda_shared.h"

#include <algorithm>

#include "compiler/codegen/cuda.h"
#include "compiler/codegen/cuda_barriers.h"
#include "compiler/kernel/evaluate.h"
#include "croton/error.h"

namespace croton::codegen {
namespace {

using kernel::Id;
using kernel::Kernel;
using kernel::Node;
using kernel::Op;

std::int64_t padded(std::int64_t elements, DType dtype) {
  const std::int64_t bytes = elements * static_cast<std::int64_t>(size_of(dtype));
  return (bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
}

// An integer that depends on sizes alone, as bits.
std::uint64_t host_value(const Kernel& kernel, std::span<const std::int64_t> sizes, Id id) {
  const Node& node = kernel.nodes[id];
  if (node.op == Op::constant) return node.bits;
  if (node.op == Op::size) {
    internal_check(static_cast<std::size_t>(node.index) < sizes.size(),
                   "cuda_shared_bytes: too few sizes");
    return static_cast<std::uint64_t>(sizes[node.index]);
  }
  const bool arithmetic =
      node.op == Op::unary || node.op == Op::binary || node.op == Op::select || node.op == Op::cast;
  internal_check(arithmetic, "cuda_shared_bytes: the size of an array depends on more than sizes");
  std::uint64_t bits[3] = {};
  for (int i = 0; i < 3; ++i) {
    if (node.in[i] != kernel::kNone) bits[i] = host_value(kernel, sizes, node.in[i]);
  }
  const Id typed = node.in[node.op == Op::select ? 1 : 0];
  const auto result = kernel::evaluate(node, kernel.nodes[typed].dtype, bits);
  internal_check(result.has_value(), "cuda_shared_bytes: no such arithmetic");
  return *result;
}

// The same as a term. Sizes are not negative, so that rounding down is truncation.
Dim size_term(const Kernel& kernel, std::span<const Dim> sizes, Id id) {
  const Node& node = kernel.nodes[id];
  if (node.op == Op::constant) return static_cast<std::int64_t>(node.bits);
  if (node.op == Op::size) return sizes[static_cast<std::size_t>(node.index)];
  internal_check(node.op == Op::binary, "the size of an array is more than arithmetic of sizes");
  const Dim a = size_term(kernel, sizes, node.in[0]), b = size_term(kernel, sizes, node.in[1]);
  switch (static_cast<kernel::Binary>(node.sub)) {
    case kernel::Binary::add:
      return a + b;
    case kernel::Binary::sub:
      return a - b;
    case kernel::Binary::mul:
      return a * b;
    case kernel::Binary::div:
      return floor_div(a, b);
    case kernel::Binary::rem:
      return floor_mod(a, b);
    case kernel::Binary::min:
      return min(a, b);
    case kernel::Binary::max:
      return max(a, b);
    default:
      throw InternalError("the size of an array is more than arithmetic of sizes");
  }
}

std::int64_t scratch_bytes(const Kernel& kernel, const Node& lanes) {
  if (!folds_over_block(kernel, lanes)) return 0;
  const int scratch = kernel.elastic ? 32 : kernel.threads / 32;
  std::int64_t bytes = 0;
  for (const auto& accumulator : lanes.accumulators) {
    bytes += padded(scratch, accumulator.dtype) + padded(scratch, DType::int64);
  }
  return bytes;
}

}  // namespace

SharedArrays::SharedArrays(const Kernel& kernel, const LaneLayouts& layouts)
    : kernel_(kernel), layouts_(layouts), all_(kernel.packed) {
  std::int64_t declared = 0;
  for (const Node& node : kernel.nodes) {
    if (node.op == Op::lanes) declared += scratch_bytes(kernel, node);
    if (node.op == Op::local && !dynamic(node) && layouts.kept(node.index) == 0) {
      const auto elements = static_cast<std::int64_t>(kernel.nodes[node.in[0]].bits);
      declared += padded(elements, kernel.buffers[node.index].dtype);
    }
  }
  all_ = all_ || declared > kDeclaredSharedBytes;
}

bool SharedArrays::dynamic(const Node& local) const {
  if (layouts_.kept(local.index) > 0) return false;
  return all_ || kernel_.nodes[local.in[0]].op != Op::constant;
}

bool SharedArrays::any_dynamic() const {
  return std::any_of(kernel_.nodes.begin(), kernel_.nodes.end(),
                     [&](const Node& node) { return node.op == Op::local && dynamic(node); });
}

Dim cuda_shared_term(const Kernel& kernel, std::span<const Dim> sizes) {
  const LaneLayouts layouts(kernel);
  const SharedArrays arrays(kernel, layouts);
  Dim bytes = 0;
  for (const Node& node : kernel.nodes) {
    if (node.op != Op::local || !arrays.dynamic(node)) continue;
    const std::int64_t size = size_of(kernel.buffers[node.index].dtype);
    const Dim raw = size_term(kernel, sizes, node.in[0]) * Dim(size) + Dim(kSharedAlignment - 1);
    bytes = bytes + floor_div(raw, kSharedAlignment) * Dim(kSharedAlignment);
  }
  return bytes;
}

std::int64_t cuda_shared_bytes(const Kernel& kernel, std::span<const std::int64_t> sizes) {
  const LaneLayouts layouts(kernel);
  const SharedArrays arrays(kernel, layouts);
  std::int64_t bytes = 0;
  for (const Node& node : kernel.nodes) {
    if (node.op != Op::local || !arrays.dynamic(node)) continue;
    const auto elements = static_cast<std::int64_t>(host_value(kernel, sizes, node.in[0]));
    bytes += padded(elements, kernel.buffers[node.index].dtype);
  }
  return bytes;
}

}  // namespace croton::codegen
