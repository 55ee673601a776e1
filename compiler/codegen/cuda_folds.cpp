// Accumulators: in registers of each thread, then over a warp by shuffles and over a block through
// shared memory.
#include <fmt/format.h>

#include <vector>

#include "compiler/codegen/cuda_emitter.h"
#include "compiler/codegen/cuda_expression.h"

namespace croton::codegen {

using kernel::Accumulator;
using kernel::Fold;
using kernel::Id;
using kernel::kNone;
using kernel::Node;
using kernel::Op;

namespace {

bool is_index_fold(Fold fold) { return fold == Fold::argmin || fold == Fold::argmax; }

// A value of another thread of the warp, by a shuffle that knows 32 and 64 bits.
std::string shuffled(DType dtype, std::string_view shuffle, std::string_view name,
                     std::string_view lane) {
  if (size_of(dtype) >= 4) return fmt::format("{}(0xffffffffu, {}, {})", shuffle, name, lane);
  return fmt::format("({}){}(0xffffffffu, (i32){}, {})", cuda_type(dtype), shuffle, name, lane);
}

}  // namespace

void KernelEmitter::accumulators(Id id) {
  for (std::size_t k = 0; k < node(id).accumulators.size(); ++k) {
    if (node(id).op == Op::lanes || width_ == 1) {
      accumulator(id, k, fmt::format("{}_{}", id, k));
      continue;
    }
    for (k_ = 0; k_ < width_; ++k_) accumulator(id, k, fmt::format("{}_{}_{}", id, k, k_));
    k_ = 0;
  }
}

void KernelEmitter::accumulator(Id id, std::size_t k, std::string_view name) {
  const Accumulator& a = node(id).accumulators[k];
  const std::string start = a.init == kNone ? cuda_identity(a.fold, a.dtype) : value(a.init);
  line(fmt::format("{} a{} = {};", cuda_type(a.dtype), name, start));
  if (is_index_fold(a.fold)) {
    line(fmt::format("i64 x{} = {};", name, cuda_literal(DType::int64, INT64_MAX)));
  }
}

void KernelEmitter::accumulate(Id id) {
  const Node& n = node(id);
  const Accumulator& a = node(n.in[0]).accumulators[n.index];
  const std::string name = fmt::format("{}_{}", n.in[0], n.index);
  const bool own = node(n.in[0]).op == Op::loop && width_ > 1;  // one for each counter
  const bool pairs = is_index_fold(a.fold);
  // What fits 32 bits by itself need not do so when it is added to another.
  const auto folded = [&] { return is_index(n.in[1]) ? "(i64)" + value(n.in[1]) : value(n.in[1]); };
  if (width_ == 1 || own || pairs) {
    for (k_ = 0; k_ < width_; ++k_) {
      merge(a.fold, a.dtype, own ? fmt::format("{}_{}", name, k_) : name, folded(),
            pairs ? value(n.in[2]) : "");
    }
    k_ = 0;
    return;
  }
  // Neighbours first, so that the accumulator waits for one operation and not for several.
  std::vector<std::string> values;
  for (k_ = 0; k_ < width_; ++k_) values.push_back(folded());
  k_ = 0;
  while (values.size() > 1) {
    std::vector<std::string> halves;
    for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
      halves.push_back(
          fmt::format("({})", cuda_fold(prelude_, a.fold, a.dtype, values[i], values[i + 1])));
    }
    values = std::move(halves);
  }
  merge(a.fold, a.dtype, name, values[0], "");
}

// Folds a value (and index) into accumulator `name`.
void KernelEmitter::merge(Fold fold, DType dtype, const std::string& name, std::string_view other,
                          std::string_view other_index) {
  if (!is_index_fold(fold)) {
    line(fmt::format("a{} = {};", name, cuda_fold(prelude_, fold, dtype, "a" + name, other)));
    return;
  }
  const auto better = prelude_.use(fold == Fold::argmin ? "argmin_better" : "argmax_better");
  line(fmt::format("if ({0}({1}, {2}, a{3}, x{3})) a{3} = {1}, x{3} = {2};", better, other,
                   other_index, name));
}

// Folds the accumulators of groups of `width` threads; each thread then has the same result.
void KernelEmitter::fold_warps(Id id, int width) {
  if (width == 1) return;
  const auto& list = node(id).accumulators;
  open(fmt::format("for (i32 d = {}; d > 0; d >>= 1)", width / 2));
  for (std::size_t k = 0; k < list.size(); ++k) {
    const std::string name = fmt::format("{}_{}", id, k);
    line(fmt::format("const {} o{} = {};", cuda_type(list[k].dtype), k,
                     shuffled(list[k].dtype, "__shfl_xor_sync", "a" + name, "d")));
    if (is_index_fold(list[k].fold)) {
      line(fmt::format("const i64 p{} = {};", k,
                       shuffled(DType::int64, "__shfl_xor_sync", "x" + name, "d")));
    }
    merge(list[k].fold, list[k].dtype, name, fmt::format("o{}", k), fmt::format("p{}", k));
  }
  close();
}

// Folds what each warp has, through shared memory.
void KernelEmitter::fold_over_warps(Id id) {
  const auto& list = node(id).accumulators;
  const int warps = kernel_.threads / 32;
  const auto each = [&](auto&& print) {
    for (std::size_t k = 0; k < list.size(); ++k) {
      const std::string name = fmt::format("{}_{}", id, k);
      print(list[k], cuda_type(list[k].dtype), 's', 'a', name);
      if (is_index_fold(list[k].fold)) print(list[k], std::string_view("i64"), 't', 'x', name);
    }
  };
  using std::string_view;
  // Blocks of the kernel that share one of the launch have at most 32 warps together.
  each([&](const Accumulator&, string_view type, char scratch, char, const std::string& name) {
    line(fmt::format("__shared__ {} {}{}[{}];", type, scratch, name, kernel_.elastic ? 32 : warps));
  });
  const std::string_view mine = kernel_.elastic ? "w + threadIdx.x / 32" : "threadIdx.x / 32";
  if (kernel_.elastic) line("const u32 w = threadIdx.y * (blockDim.x / 32);");
  open("if (threadIdx.x % 32 == 0)");
  each([&](const Accumulator&, string_view, char scratch, char own, const std::string& name) {
    line(fmt::format("{0}{2}[{3}] = {1}{2};", scratch, own, name, mine));
  });
  close();
  line("__syncthreads();");
  if (kernel_.elastic) line("const bool there = threadIdx.x % 32 < blockDim.x / 32;");
  each([&](const Accumulator& a, string_view, char scratch, char own, const std::string& name) {
    if (!kernel_.elastic) {
      line(fmt::format("{1}{2} = {0}{2}[threadIdx.x % {3}];", scratch, own, name, warps));
      return;
    }
    const std::string nothing =
        own == 'a' ? cuda_identity(a.fold, a.dtype) : cuda_literal(DType::int64, INT64_MAX);
    line(fmt::format("{1}{2} = there ? {0}{2}[w + threadIdx.x % 32] : {3};", scratch, own, name,
                     nothing));
  });
  fold_warps(id, kernel_.elastic ? 32 : warps);
}

void KernelEmitter::fold_block(Id id) {
  const auto& list = node(id).accumulators;
  fold_warps(id, 32);
  if (kernel_.elastic) {
    open("if (blockDim.x > 32)");
    fold_over_warps(id);
    close();
    // What stands behind counts on the barrier in the middle of the fold.
    line("else __syncwarp();");
  } else if (kernel_.threads > 32) {
    fold_over_warps(id);
  }
  // Threads may have met zeros of both signs, or NaNs, in different orders.
  for (std::size_t k = 0; k < list.size(); ++k) {
    const bool extremum = list[k].fold == Fold::min || list[k].fold == Fold::max;
    if (!extremum || !is_float(list[k].dtype)) continue;
    const std::string name = fmt::format("a{}_{}", id, k);
    line(fmt::format("{} = {};", name, shuffled(list[k].dtype, "__shfl_sync", name, "0")));
  }
}

}  // namespace croton::codegen
