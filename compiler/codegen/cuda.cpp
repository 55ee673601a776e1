#include "compiler/codegen/cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "compiler/codegen/cuda_barriers.h"
#include "compiler/codegen/cuda_expression.h"
#include "compiler/codegen/cuda_prelude.h"
#include "compiler/codegen/cuda_shared.h"
#include "croton/error.h"
#include "runtime/cuda/nvrtc.h"

namespace croton::codegen {
namespace {

using kernel::Accumulator;
using kernel::Fold;
using kernel::Id;
using kernel::Kernel;
using kernel::kNone;
using kernel::Node;
using kernel::Op;

constexpr std::string_view kFirstThread = "threadIdx.x == 0";

bool is_index_fold(Fold fold) { return fold == Fold::argmin || fold == Fold::argmax; }

// Names in the text: bN buffer, nN size, cN counter, vN value, aN_K accumulator K of loop N and
// xN_K its index, sN_K and tN_K their shared scratch, eN where dynamic array N begins.
class KernelEmitter {
 public:
  KernelEmitter(const Kernel& kernel, Prelude& prelude)
      : kernel_(kernel), prelude_(prelude), shared_(kernel), barrier_(barriers_before(kernel)) {
    internal_check(std::has_single_bit(static_cast<unsigned>(kernel.threads)) &&
                       kernel.threads >= 32 && kernel.threads <= 1024,
                   "emit_cuda: threads of a block are a power of two from 32 to 1024");
  }

  std::string text() {
    text_ += signature();
    open("");
    if (shared_.any_dynamic()) {
      line(fmt::format("extern __shared__ __align__({}) u8 shared_memory[];", kSharedAlignment));
    }
    region(0);
    close();
    return std::move(text_);
  }

 private:
  // Layout of the text.
  void line(std::string_view content) {
    text_.append(2 * static_cast<std::size_t>(depth_), ' ').append(content).push_back('\n');
  }
  void open(std::string_view head) {
    if (!head.empty()) line(fmt::format("{} {{", head));
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }
  void define(Id id, std::string_view expression) {
    line(fmt::format("const {} v{} = {};", cuda_type(kernel_.nodes[id].dtype), id, expression));
  }

  const Node& node(Id id) const { return kernel_.nodes[id]; }
  bool is_constant(Id id, std::uint64_t bits) const {
    return node(id).op == Op::constant && node(id).bits == bits;
  }

  std::string signature() const;
  std::string value(Id id) const;
  std::string element(const Node& node) const;

  void region(int index);
  void statement(Id id);
  void arithmetic(Id id);
  void load(Id id);
  void store(Id id);
  void local(Id id);
  void check(Id id);
  void loop(Id id);
  int unroll_of(const Node& n) const;
  void lanes(Id id);
  void accumulators(Id id);
  void accumulate(const Node& node);

  void merge(Fold fold, DType dtype, const std::string& name, std::string_view other,
             std::string_view other_index);
  void fold_warps(Id id, int width);
  void fold_block(Id id);

  const Kernel& kernel_;
  Prelude& prelude_;
  SharedArrays shared_;
  std::vector<bool> barrier_;
  std::string text_;
  std::string shared_end_ = "0";  // where the next array in dynamic shared memory begins
  int depth_ = 0;
  Id lanes_ = kNone;  // the lanes around the statement
};

std::string KernelEmitter::signature() const {
  std::set<int> aliased;
  for (const auto& buffer : kernel_.buffers) aliased.insert(buffer.aliases);
  std::vector<std::string> parameters;
  for (int i = 0; i < kernel_.arguments(); ++i) {
    const auto& buffer = kernel_.buffers[i];
    const bool alone = buffer.aliases < 0 && !aliased.contains(i);
    parameters.push_back(fmt::format("{}{}* {}b{}", buffer.written ? "" : "const ",
                                     cuda_type(buffer.dtype), alone ? "__restrict__ " : "", i));
  }
  for (int i = 0; i < kernel_.sizes; ++i) parameters.push_back(fmt::format("long long n{}", i));
  if (!kernel_.checks.empty()) parameters.push_back("long long* error");
  return fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(\n    {}) {{\n",
                     kernel_.threads, kernel_.name, fmt::join(parameters, ",\n    "));
}

std::string KernelEmitter::value(Id id) const {
  const Node& n = node(id);
  switch (n.op) {
    case Op::constant:
      return cuda_literal(n.dtype, n.bits);
    case Op::size:
      return fmt::format("n{}", n.index);
    case Op::loop:
    case Op::lanes:
      return fmt::format("c{}", id);
    case Op::result:
      return fmt::format("{}{}_{}", n.part == 0 ? "a" : "x", n.in[0], n.index);
    default:
      return fmt::format("v{}", id);
  }
}

// The element that a memory node reads or writes.
std::string KernelEmitter::element(const Node& n) const {
  if (n.op == Op::gather || n.op == Op::scatter) {
    return fmt::format("b{}[{}]", n.index, value(n.in[0]));
  }
  const Id base = n.in[0], stride = n.in[1];
  if (lanes_ == kNone || is_constant(stride, 0))
    return fmt::format("b{}[{}]", n.index, value(base));
  std::string offset = value(lanes_);
  if (!is_constant(stride, 1)) offset += " * " + value(stride);
  if (!is_constant(base, 0)) offset = value(base) + " + " + offset;
  return fmt::format("b{}[{}]", n.index, offset);
}

void KernelEmitter::region(int index) {
  for (const Id id : kernel_.regions[index]) {
    if (barrier_[id]) line("__syncthreads();");
    statement(id);
  }
}

void KernelEmitter::statement(Id id) {
  const Node& n = node(id);
  switch (n.op) {
    case Op::constant:
    case Op::size:
    case Op::result:
      return;  // printed where they are used
    case Op::block:
      return define(id, "blockIdx.x");
    case Op::loop:
      return loop(id);
    case Op::lanes:
      return lanes(id);
    case Op::accumulate:
      return accumulate(n);
    case Op::unary:
    case Op::binary:
    case Op::fma:
    case Op::select:
    case Op::cast:
    case Op::bitcast:
    case Op::call:
      return arithmetic(id);
    case Op::load:
    case Op::gather:
      return load(id);
    case Op::store:
    case Op::scatter:
      return store(id);
    case Op::local:
      return local(id);
    case Op::check:
      return check(id);
  }
}

void KernelEmitter::arithmetic(Id id) {
  const Node& n = node(id);
  const DType from = node(n.in[0]).dtype;
  const std::string a = value(n.in[0]);
  const std::string b = n.in[1] == kNone ? "" : value(n.in[1]);
  const std::string c = n.in[2] == kNone ? "" : value(n.in[2]);
  const std::string_view suffix = n.dtype == DType::float32 ? "f" : "";
  switch (n.op) {
    case Op::unary:
      return define(id, cuda_unary(prelude_, static_cast<kernel::Unary>(n.sub), from, a));
    case Op::binary: {
      const Node& right = node(n.in[1]);
      const std::uint64_t* constant = right.op == Op::constant ? &right.bits : nullptr;
      const auto op = static_cast<kernel::Binary>(n.sub);
      return define(id, cuda_binary(prelude_, op, from, a, b, constant));
    }
    case Op::fma:
      return define(id, fmt::format("fma{}({}, {}, {})", suffix, a, b, c));
    case Op::select:
      return define(id, fmt::format("{} ? {} : {}", a, b, c));
    case Op::cast:
      return define(id, cuda_cast(prelude_, from, n.dtype, a));
    case Op::bitcast:
      return define(id, cuda_bitcast(from, n.dtype, a));
    case Op::call: {
      const std::string& name = kernel_.names[n.index];
      return define(id, fmt::format("{}{}({}{}{})", name, suffix, a, b.empty() ? "" : ", ", b));
    }
    default:
      internal_check(false, "emit_cuda: no arithmetic");
  }
}

void KernelEmitter::load(Id id) {
  const Node& n = node(id);
  const Id mask = n.in[n.op == Op::load ? 2 : 1];
  if (mask == kNone) return define(id, element(n));
  define(id, fmt::format("{} ? {} : {}", value(mask), element(n), cuda_literal(n.dtype, 0)));
}

void KernelEmitter::store(Id id) {
  const Node& n = node(id);
  const int first = n.op == Op::store ? 2 : 1;
  const std::string stored = value(n.in[first]);
  std::string text = fmt::format("{} = {};", element(n), stored);
  if (n.streaming) {
    const bool boolean = n.dtype == DType::boolean;  // which __stcs does not know
    text = fmt::format("__stcs({}&{}, {}{});", boolean ? "(u8*)" : "", element(n),
                       boolean ? "(u8)" : "", stored);
  }
  const std::string mask = n.in[first + 1] == kNone ? "" : value(n.in[first + 1]);
  const bool once = lanes_ == kNone;
  if (once || !mask.empty()) {
    text = fmt::format("if ({}{}{}) {}", once ? kFirstThread : "",
                       once && !mask.empty() ? " && " : "", mask, text);
  }
  line(text);
}

void KernelEmitter::local(Id id) {
  const Node& n = node(id);
  const DType dtype = kernel_.buffers[n.index].dtype;
  const auto type = cuda_type(dtype);
  if (!shared_.dynamic(n)) {
    const std::uint64_t elements = std::max<std::uint64_t>(node(n.in[0]).bits, 1);
    line(fmt::format("__shared__ __align__({}) {} b{}[{}];", kSharedAlignment, type, n.index,
                     elements));
    return;
  }
  internal_check(depth_ == 1, "emit_cuda: an array of unknown size inside a loop");
  if (shared_end_ != "0") {
    line(fmt::format("const i64 e{} = {};", n.index, shared_end_));
    shared_end_ = fmt::format("e{}", n.index);
  }
  line(fmt::format("{0}* const b{1} = ({0}*)(shared_memory + {2});", type, n.index, shared_end_));
  if (node(n.in[0]).op != Op::constant) line(fmt::format("(void){};", value(n.in[0])));
  shared_end_ = fmt::format("{} + (({} * {} + {}) & -{}ll)", shared_end_, value(n.in[0]),
                            size_of(dtype), kSharedAlignment - 1, kSharedAlignment);
}

void KernelEmitter::check(Id id) {
  const Node& n = node(id);
  line(fmt::format("if ({}{}!{}) {}(error, {}, {}, {});", lanes_ == kNone ? kFirstThread : "",
                   lanes_ == kNone ? " && " : "", value(n.in[0]), prelude_.use("report"), n.index,
                   value(n.in[1]), value(n.in[2])));
}

void KernelEmitter::accumulators(Id id) {
  for (std::size_t k = 0; k < node(id).accumulators.size(); ++k) {
    const Accumulator& accumulator = node(id).accumulators[k];
    const std::string start = accumulator.init == kNone
                                  ? cuda_identity(accumulator.fold, accumulator.dtype)
                                  : value(accumulator.init);
    line(fmt::format("{} a{}_{} = {};", cuda_type(accumulator.dtype), id, k, start));
    if (is_index_fold(accumulator.fold)) {
      line(fmt::format("i64 x{}_{} = {};", id, k, cuda_literal(DType::int64, INT64_MAX)));
    }
  }
}

void KernelEmitter::loop(Id id) {
  accumulators(id);
  // Outside of lanes each turn is a sweep of the whole block: unrolling would only make it long to
  // compile.
  if (lanes_ == kNone) line("#pragma unroll 1");
  open(fmt::format("for (i64 c{0} = 0; c{0} < {1}; ++c{0})", id, value(node(id).in[0])));
  region(node(id).region);
  close();
}

/// How often a lanes is unrolled: long bodies keep a warp busy as they are and would only take long
/// to compile, and so would those with calls.
int KernelEmitter::unroll_of(const Node& n) const {
  constexpr std::size_t kMostNodes = 64;
  const kernel::Region& body = kernel_.regions[n.region];
  const bool calls = std::any_of(body.begin(), body.end(), [&](Id id) {
    const Op op = node(id).op;
    return op == Op::check || op == Op::call || op == Op::loop;
  });
  if (calls) return 1;
  std::size_t unroll = n.unroll;
  while (unroll > 1 && unroll * body.size() > kMostNodes) unroll /= 2;
  return static_cast<int>(unroll);
}

void KernelEmitter::lanes(Id id) {
  const Node& n = node(id);
  accumulators(id);
  line(fmt::format("#pragma unroll {}", unroll_of(n)));
  open(fmt::format("for (i64 c{0} = threadIdx.x; c{0} < {1}; c{0} += {2})", id, value(n.in[0]),
                   kernel_.threads));
  lanes_ = id;
  region(n.region);
  lanes_ = kNone;
  close();
  if (!n.accumulators.empty()) fold_block(id);
}

void KernelEmitter::accumulate(const Node& n) {
  const Accumulator& accumulator = node(n.in[0]).accumulators[n.index];
  merge(accumulator.fold, accumulator.dtype, fmt::format("{}_{}", n.in[0], n.index), value(n.in[1]),
        n.in[2] == kNone ? "" : value(n.in[2]));
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

// A value of another thread of the warp, by a shuffle that knows 32 and 64 bits.
std::string shuffled(DType dtype, std::string_view shuffle, std::string_view name,
                     std::string_view lane) {
  if (size_of(dtype) >= 4) return fmt::format("{}(0xffffffffu, {}, {})", shuffle, name, lane);
  return fmt::format("({}){}(0xffffffffu, (i32){}, {})", cuda_type(dtype), shuffle, name, lane);
}

// Folds the accumulators of groups of `width` threads; each thread then has the same result.
void KernelEmitter::fold_warps(Id id, int width) {
  const auto& list = node(id).accumulators;
  if (width > 1) {
    open(fmt::format("for (i32 d = {}; d > 0; d >>= 1)", width / 2));
    for (std::size_t k = 0; k < list.size(); ++k) {
      const std::string name = fmt::format("{}_{}", id, k);
      const auto type = cuda_type(list[k].dtype);
      line(fmt::format("const {} o{} = {};", type, k,
                       shuffled(list[k].dtype, "__shfl_xor_sync", "a" + name, "d")));
      if (is_index_fold(list[k].fold)) {
        line(fmt::format("const i64 p{} = {};", k,
                         shuffled(DType::int64, "__shfl_xor_sync", "x" + name, "d")));
      }
      merge(list[k].fold, list[k].dtype, name, fmt::format("o{}", k), fmt::format("p{}", k));
    }
    close();
  }
}

void KernelEmitter::fold_block(Id id) {
  const auto& list = node(id).accumulators;
  const int warps = kernel_.threads / 32;
  fold_warps(id, 32);
  if (warps > 1) {
    const auto each = [&](auto&& print) {
      for (std::size_t k = 0; k < list.size(); ++k) {
        const std::string name = fmt::format("{}_{}", id, k);
        print(cuda_type(list[k].dtype), 's', 'a', name);
        if (is_index_fold(list[k].fold)) print(std::string_view("i64"), 't', 'x', name);
      }
    };
    each([&](std::string_view type, char scratch, char, const std::string& name) {
      line(fmt::format("__shared__ {} {}{}[{}];", type, scratch, name, warps));
    });
    open("if (threadIdx.x % 32 == 0)");
    each([&](std::string_view, char scratch, char own, const std::string& name) {
      line(fmt::format("{0}{2}[threadIdx.x / 32] = {1}{2};", scratch, own, name));
    });
    close();
    line("__syncthreads();");
    each([&](std::string_view, char scratch, char own, const std::string& name) {
      line(fmt::format("{1}{2} = {0}{2}[threadIdx.x % {3}];", scratch, own, name, warps));
    });
    fold_warps(id, warps);
  }
  // Threads may have met zeros of both signs, or NaNs, in different orders.
  for (std::size_t k = 0; k < list.size(); ++k) {
    const bool extremum = list[k].fold == Fold::min || list[k].fold == Fold::max;
    if (!extremum || !is_float(list[k].dtype)) continue;
    const std::string name = fmt::format("a{}_{}", id, k);
    line(fmt::format("{} = {};", name, shuffled(list[k].dtype, "__shfl_sync", name, "0")));
  }
}

}  // namespace

std::string emit_cuda(std::span<const Kernel* const> kernels) {
  Prelude prelude;
  std::set<std::string_view> names;
  std::string functions;
  for (const Kernel* kernel : kernels) {
    internal_check(names.insert(kernel->name).second, "emit_cuda: two kernels of one name");
    (functions += '\n') += KernelEmitter(*kernel, prelude).text();
  }
  return prelude.text() + functions;
}

std::span<const std::string_view> cuda_options() { return cuda::nvrtc_options(); }

}  // namespace croton::codegen
