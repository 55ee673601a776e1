#include "runtime/cpu/gemm.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/sort.h"

namespace croton::cpu {
namespace {

/// Offsets of the members of a batch in an operand whose leading axes broadcast to `lead`.
std::vector<std::int64_t> batch_offsets(const Shape& shape, std::span<const std::int64_t> lead,
                                        std::int64_t matrix) {
  std::vector<std::int64_t> offsets = {0};
  const std::size_t own = shape.size() - 2;
  std::vector<std::int64_t> strides(lead.size());
  std::int64_t stride = matrix;
  for (std::size_t i = 0; i < own; ++i) {
    const std::int64_t size = shape[own - 1 - i];
    strides[lead.size() - 1 - i] = size == 1 ? 0 : stride;
    stride *= size;
  }
  for (std::size_t axis = 0; axis < lead.size(); ++axis) {
    std::vector<std::int64_t> next;
    for (const std::int64_t base : offsets) {
      for (std::int64_t i = 0; i < lead[axis]; ++i) next.push_back(base + i * strides[axis]);
    }
    offsets = std::move(next);
  }
  return offsets;
}

bool broadcasts(const Shape& shape, std::span<const std::int64_t> lead) {
  if (shape.size() < 2 || shape.size() - 2 > lead.size()) return false;
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) {
    const std::int64_t size = shape[shape.size() - 3 - i];
    if (size != 1 && size != lead[lead.size() - 1 - i]) return false;
  }
  return true;
}

std::string unsupported(const Attrs& attrs, std::span<const OperandType> operands) {
  std::string reason;
  read_gemm(attrs, operands, reason);
  return reason;
}

std::unique_ptr<PreparedCall> prepare(Device&, const Attrs& attrs,
                                      std::span<const OperandType> operands) {
  std::string reason;
  const GemmProblem p = read_gemm(attrs, operands, reason);
  const bool empty = p.m == 0 || p.n == 0 || p.k == 0 || p.batch == 0;
  switch (p.dtype) {
    case DType::float32: {
      if (empty) return plain_gemm(p);
      const bool tiny = p.m * p.n * p.k <= 8 * 8 * 8;  // less than oneDNN takes to begin
      return tiny ? blocked_gemm(p) : onednn_gemm(p);
    }
    case DType::float64: {
      if (empty) return plain_gemm(p);
      const bool large = p.m * p.n * p.k >= 768 * 768 * 768;
      return large && blocks_are_fast() ? blocked_gemm(p) : blas_gemm(p);
    }
    case DType::bfloat16:
      if (!empty) {
        if (auto call = onednn_gemm(p)) return call;
      }
      return widened_gemm(p);
    case DType::float16:
      return widened_gemm(p);
    default:
      return plain_gemm(p);
  }
}

}  // namespace

const LibraryFunction kGemm{"gemm", unsupported, prepare};

std::int64_t GemmProblem::step(std::span<const std::int64_t> offsets) {
  if (offsets.size() < 2) return 0;
  const std::int64_t step = offsets[1] - offsets[0];
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] - offsets[i - 1] != step) return -1;
  }
  return step;
}

GemmProblem read_gemm(const Attrs& attrs, std::span<const OperandType> operands,
                      std::string& reason) {
  GemmProblem p;
  p.transpose_a = attrs.integer_or("transpose_a", 0) != 0;
  p.transpose_b = attrs.integer_or("transpose_b", 0) != 0;
  p.alpha = attrs.real_or("alpha", 1);
  p.beta = attrs.real_or("beta", 0);
  const std::string epilogue = attrs.text_or("epilogue", "");
  p.bias = epilogue == "bias" || epilogue == "bias_relu";
  p.relu = epilogue == "relu" || epilogue == "bias_relu";
  const std::size_t wanted = 3u + (p.has_c() ? 1u : 0u) + (p.bias ? 1u : 0u);
  if (!p.bias && !p.relu && !epilogue.empty()) {
    reason = fmt::format("[gemm] unknown epilogue: got \"{}\"", epilogue);
  } else if (operands.size() != wanted) {
    reason = fmt::format("[gemm] wrong number of operands: got {}, expected {}", operands.size(),
                         wanted);
  }
  if (!reason.empty()) return p;
  const Shape &out = operands[0].shape, &a = operands[1].shape, &b = operands[2].shape;
  p.dtype = operands[0].dtype;
  if (std::any_of(operands.begin(), operands.end(),
                  [&](const OperandType& o) { return o.dtype != p.dtype; })) {
    reason = "[gemm] operands of different dtypes";
    return p;
  }
  const std::span<const std::int64_t> lead(out.data(), std::max<std::size_t>(out.size(), 2) - 2);
  if (out.size() < 2 || !broadcasts(a, lead) || !broadcasts(b, lead)) {
    reason = fmt::format("[gemm] shapes do not fit: {} from {} and {}", out.to_string(),
                         a.to_string(), b.to_string());
    return p;
  }
  p.m = out[out.size() - 2];
  p.n = out.back();
  p.k = p.transpose_a ? a[a.size() - 2] : a.back();
  const std::int64_t m = p.transpose_a ? a.back() : a[a.size() - 2];
  const std::int64_t k = p.transpose_b ? b.back() : b[b.size() - 2];
  const std::int64_t n = p.transpose_b ? b[b.size() - 2] : b.back();
  const bool c_fits = !p.has_c() || operands[3].shape == out;
  const bool bias_fits = !p.bias || operands.back().shape == Shape({p.n});
  if (m != p.m || n != p.n || k != p.k || !c_fits || !bias_fits) {
    reason = fmt::format("[gemm] shapes do not fit: {} from {} and {}", out.to_string(),
                         a.to_string(), b.to_string());
    return p;
  }
  for (const std::int64_t size : lead) p.batch *= size;
  p.a_offset = batch_offsets(a, lead, p.m * p.k);
  p.b_offset = batch_offsets(b, lead, p.k * p.n);
  return p;
}

GemmOperands operands_of(const GemmProblem& p, void* const* operands) {
  GemmOperands o{operands[0], operands[1], operands[2], nullptr, nullptr};
  std::size_t next = 3;
  if (p.has_c()) o.c = operands[next++];
  if (p.bias) o.bias = operands[next];
  return o;
}

}  // namespace croton::cpu

namespace croton {

std::span<const LibraryFunction> cpu_library() {
  static const LibraryFunction table[] = {cpu::kArgsort, cpu::kGemm, cpu::kSort};
  return table;
}

}  // namespace croton
