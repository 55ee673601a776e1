#include "compiler/codegen/cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "compiler/codegen/cuda_barriers.h"
#include "compiler/codegen/cuda_emitter.h"
#include "compiler/codegen/cuda_expression.h"
#include "croton/error.h"
#include "runtime/cuda/nvrtc.h"

namespace croton::codegen {

using kernel::Binary;
using kernel::Id;
using kernel::Kernel;
using kernel::kNone;
using kernel::Node;
using kernel::Op;

namespace {

constexpr std::string_view kFirstThread = "threadIdx.x == 0";
/// The most threads of a block of the launch where it holds several of the kernel.
constexpr int kPackedThreads = 256;

}  // namespace

KernelEmitter::KernelEmitter(const Kernel& kernel, Prelude& prelude)
    : kernel_(kernel),
      prelude_(prelude),
      layouts_(kernel),
      shared_(kernel, layouts_),
      index_(index_types(kernel)),
      barrier_(barriers_before(kernel, layouts_)) {
  internal_check(std::has_single_bit(static_cast<unsigned>(kernel.threads)) &&
                     kernel.threads >= 32 && kernel.threads <= 1024,
                 "emit_cuda: threads of a block are a power of two from 32 to 1024");
  internal_check(!kernel.packed || kernel.elastic || kernel.threads == 32,
                 "emit_cuda: blocks that share one of the launch are warps");
}

std::string KernelEmitter::text() {
  text_ += signature();
  open("");
  if (kernel_.packed) {
    line("const idx block = BLOCK * (idx)blockDim.y + (idx)threadIdx.y;");
    line("if (block >= blocks) return;");
  } else {
    line("END_OF_GRID");
  }
  std::set<int> sizes;
  for (const Node& n : kernel_.nodes) {
    if (n.op == Op::size) sizes.insert(n.index);
  }
  for (const int i : sizes) line(fmt::format("const idx n{0} = (idx)size{0};", i));
  if (shared_.any_dynamic()) {
    line(fmt::format("extern __shared__ __align__({}) u8 shared_memory[];", kSharedAlignment));
  }
  region(0);
  close();
  return std::move(text_);
}

void KernelEmitter::line(std::string_view content) {
  text_.append(2 * static_cast<std::size_t>(depth_), ' ').append(content).push_back('\n');
}

void KernelEmitter::open(std::string_view head) {
  if (!head.empty()) line(fmt::format("{} {{", head));
  ++depth_;
}

void KernelEmitter::close() {
  --depth_;
  line("}");
}

std::string KernelEmitter::suffix(Id id) const {
  return split(id) ? fmt::format("_{}", k_) : std::string();
}

std::string_view KernelEmitter::type_of(Id id) const {
  return is_index(id) ? "idx" : cuda_type(node(id).dtype);
}

void KernelEmitter::define(Id id, std::string_view expression) {
  line(fmt::format("const {} v{}{} = {};", type_of(id), id, suffix(id), expression));
}

bool KernelEmitter::is_constant(Id id, std::uint64_t bits) const {
  return node(id).op == Op::constant && node(id).bits == bits;
}

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
  for (int i = 0; i < kernel_.sizes; ++i) parameters.push_back(fmt::format("long long size{}", i));
  if (kernel_.packed) {
    parameters.push_back("long long blocks");
  } else if (!parameters.empty()) {
    parameters.back() += " WIDE_BLOCKS";
  }
  if (!kernel_.checks.empty()) parameters.push_back("long long* error");
  const int bound = kernel_.packed ? std::max(kernel_.threads, kPackedThreads) : kernel_.threads;
  return fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(\n    {}) {{\n", bound,
                     kernel_.name, fmt::join(parameters, ",\n    "));
}

std::string KernelEmitter::threads() const {
  return kernel_.elastic ? "blockDim.x" : fmt::format("{}", kernel_.threads);
}

/// Blocks that share one of the launch are warps, or do the same in step.
std::string KernelEmitter::barrier() const {
  return kernel_.threads == 32 ? "__syncwarp();" : "__syncthreads();";
}

std::string KernelEmitter::value(Id id) const {
  const Node& n = node(id);
  switch (n.op) {
    case Op::constant:
      return cuda_literal(n.dtype, n.bits);
    case Op::size:
      return fmt::format("n{}", n.index);
    case Op::loop:
      return fmt::format("c{}", id);
    case Op::lanes:
      return k_ == 0 || lanes_ != id ? fmt::format("c{}", id) : fmt::format("(c{} + {})", id, k_);
    case Op::result:
      return fmt::format("{}{}_{}{}", n.part == 0 ? "a" : "x", n.in[0], n.index, suffix(id));
    default:
      return fmt::format("v{}{}", id, suffix(id));
  }
}

std::string KernelEmitter::operand(Id user, Id id) const {
  if (node(id).dtype != DType::int64) return value(id);
  if (is_index(user)) {
    if (node(id).op != Op::constant) return value(id);
    const auto number = static_cast<std::int64_t>(node(id).bits);
    const bool small = number > INT32_MIN && number <= INT32_MAX;
    return small ? cuda_literal(DType::int32, static_cast<std::uint32_t>(number)) : value(id);
  }
  return is_index(id) && node(user).dtype == DType::int64 ? "(i64)" + value(id) : value(id);
}

/// Addresses are sums of these; zeros are left out.
std::string KernelEmitter::sum(std::string_view a, std::string_view b) const {
  if (a.empty() || b.empty()) return std::string(a.empty() ? b : a);
  return fmt::format("{} + {}", a, b);
}

/// Where in its buffer a memory node reads or writes.
std::string KernelEmitter::offset(const Node& n) const {
  const auto base = [&](Id id) {
    if (node(id).op != Op::constant) return value(id);
    const auto number = static_cast<std::int64_t>(node(id).bits);
    const bool small = number > INT32_MIN && number <= INT32_MAX;
    if (number == 0) return std::string();
    return small ? cuda_literal(DType::int32, static_cast<std::uint32_t>(number)) : value(id);
  };
  std::string text;
  if (n.op == Op::gather || n.op == Op::scatter) {
    text = base(n.in[0]);
  } else {
    const Id stride = n.in[1];
    std::string counter;
    if (lanes_ != kNone && !is_constant(stride, 0)) {
      counter = value(lanes_);
      if (!is_constant(stride, 1)) {
        counter = fmt::format("(idx)((uidx){} * (uidx){})", counter, value(stride));
      }
    }
    text = sum(base(n.in[0]), counter);
  }
  return text.empty() ? "0" : text;
}

/// The element that a memory node reads or writes.
std::string KernelEmitter::element(Id id) const {
  const Node& n = node(id);
  if (layouts_.kept(n.index) > 0) {
    const int width = layouts_.of(lanes_).width;
    if (width == 1) return fmt::format("b{}[r{}]", n.index, lanes_);
    return fmt::format("b{}[r{} * {} + {}]", n.index, lanes_, width, k_);
  }
  return fmt::format("b{}[{}]", n.index, offset(n));
}

void KernelEmitter::region(int index) {
  for (const Id id : kernel_.regions[index]) {
    if (barrier_[id]) line(barrier());
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
      return define(id, kernel_.packed ? "block" : "BLOCK");
    case Op::loop:
      return loop(id);
    case Op::lanes:
      return lanes(id);
    case Op::accumulate:
      return accumulate(id);
    case Op::local:
      return local(id);
    case Op::check:
      return check(id);
    case Op::load:
    case Op::gather:
    case Op::store:
      if (width_ > 1 && layouts_.of(lanes_).wide.contains(id) && layouts_.kept(n.index) == 0) {
        return n.op == Op::store ? wide_store(id) : wide_load(id);
      }
      return each(id);
    default:
      return each(id);
  }
}

/// A node for each of the counters that are taken at a time.
void KernelEmitter::each(Id id) {
  const Op op = node(id).op;
  const bool acts = op == Op::store || op == Op::scatter;
  const int count = split(id) || (acts && lanes_ != kNone) ? width_ : 1;
  for (k_ = 0; k_ < count; ++k_) {
    switch (op) {
      case Op::load:
      case Op::gather:
        load(id);
        break;
      case Op::store:
      case Op::scatter:
        store(id);
        break;
      default:
        arithmetic(id);
    }
  }
  k_ = 0;
}

void KernelEmitter::index_arithmetic(Id id) {
  const Node& n = node(id);
  const std::string a = operand(id, n.in[0]);
  const std::string b = n.in[1] == kNone ? "" : operand(id, n.in[1]);
  if (n.op == Op::select)
    return define(id, fmt::format("{} ? {} : {}", a, b, operand(id, n.in[2])));
  if (n.op == Op::cast) return define(id, fmt::format("(idx){}", a));
  if (n.op == Op::unary) {
    const bool negates = static_cast<kernel::Unary>(n.sub) == kernel::Unary::neg;
    return define(id, negates ? fmt::format("-{}", a) : fmt::format("{0} < 0 ? -{0} : {0}", a));
  }
  const auto op = static_cast<Binary>(n.sub);
  const auto sign = op == Binary::add ? "+" : op == Binary::sub ? "-" : "*";
  switch (op) {
    case Binary::add:
    case Binary::sub:
    case Binary::mul:
      if (index_[id] == IndexType::exact) return define(id, fmt::format("{} {} {}", a, sign, b));
      return define(id, fmt::format("(idx)((uidx){} {} (uidx){})", a, sign, b));
    case Binary::min:
      return define(id, fmt::format("{1} < {0} ? {1} : {0}", a, b));
    case Binary::max:
      return define(id, fmt::format("{1} > {0} ? {1} : {0}", a, b));
    case Binary::div:
    case Binary::rem: {
      const bool division = op == Binary::div;
      const Node& right = node(n.in[1]);
      if (right.op == Op::constant && static_cast<std::int64_t>(right.bits) > 0) {
        return define(id, fmt::format("{} {} {}", a, division ? "/" : "%", b));
      }
      const auto name = prelude_.use(division ? "div_int" : "rem_int");
      return define(id, fmt::format("{}<idx>({}, {})", name, a, b));
    }
    default:
      internal_check(false, "emit_cuda: an index from bits");
  }
}

/// Whether a bool is true for one of the counters that the thread takes at a time.
std::string KernelEmitter::any_counter(Id id) {
  const int count = split(id) ? width_ : 1;
  std::string text;
  for (k_ = 0; k_ < count; ++k_) text += (k_ == 0 ? "" : " | ") + value(id);
  k_ = 0;
  return count == 1 ? text : fmt::format("({}) != 0", text);
}

void KernelEmitter::arithmetic(Id id) {
  if (width_ > 1 && node(id).op == Op::binary &&
      node(id).sub == static_cast<int>(Binary::bit_and) &&
      layouts_.of(lanes_).ordinal.contains(id)) {
    const auto bits = static_cast<std::uint64_t>(k_) & node(node(id).in[1]).bits;
    return define(id, cuda_literal(node(id).dtype, bits));
  }
  if (is_index(id)) return index_arithmetic(id);
  const Node& n = node(id);
  const DType from = node(n.in[0]).dtype;
  const std::string a = operand(id, n.in[0]);
  const std::string b = n.in[1] == kNone ? "" : operand(id, n.in[1]);
  const std::string c = n.in[2] == kNone ? "" : operand(id, n.in[2]);
  const std::string_view single = n.dtype == DType::float32 ? "f" : "";
  switch (n.op) {
    case Op::unary:
      if (static_cast<kernel::Unary>(n.sub) == kernel::Unary::any_lane) {
        return define(id, any_counter(n.in[0]));
      }
      return define(id, cuda_unary(prelude_, static_cast<kernel::Unary>(n.sub), from, a));
    case Op::binary: {
      const Node& right = node(n.in[1]);
      const std::uint64_t* constant = right.op == Op::constant ? &right.bits : nullptr;
      const auto op = static_cast<kernel::Binary>(n.sub);
      return define(id, cuda_binary(prelude_, op, from, a, b, constant));
    }
    case Op::fma:
      return define(id, fmt::format("fma{}({}, {}, {})", single, a, b, c));
    case Op::select:
      return define(id, fmt::format("{} ? {} : {}", a, b, c));
    case Op::cast:
      return define(id, cuda_cast(prelude_, from, n.dtype, a));
    case Op::bitcast:
      return define(id, cuda_bitcast(from, n.dtype, a));
    case Op::call: {
      const std::string& name = kernel_.names[n.index];
      return define(id, fmt::format("{}{}({}{}{})", name, single, a, b.empty() ? "" : ", ", b));
    }
    default:
      internal_check(false, "emit_cuda: no arithmetic");
  }
}

void KernelEmitter::load(Id id) {
  const Node& n = node(id);
  const Id mask = n.in[n.op == Op::load ? 2 : 1];
  if (mask == kNone) return define(id, element(id));
  define(id, fmt::format("{} ? {} : {}", value(mask), element(id), cuda_literal(n.dtype, 0)));
}

void KernelEmitter::store(Id id) {
  const Node& n = node(id);
  const int first = n.op == Op::store ? 2 : 1;
  const std::string stored = value(n.in[first]);
  std::string text = fmt::format("{} = {};", element(id), stored);
  if (n.op == Op::scatter && n.sub != 0) {
    const bool wide = n.dtype == DType::int64;  // which atomicAdd does not know
    text = fmt::format("atomicAdd({}&{}, {}{});", wide ? "(u64*)" : "", element(id),
                       wide ? "(u64)" : "", stored);
  }
  if (n.streaming) {
    const bool boolean = n.dtype == DType::boolean;  // which __stcs does not know
    text = fmt::format("__stcs({}&{}, {}{});", boolean ? "(u8*)" : "", element(id),
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

/// One access of up to 16 bytes for each group of neighbours.
void KernelEmitter::wide_load(Id id) {
  const Node& n = node(id);
  const int group = std::min(width_, 16 / static_cast<int>(size_of(n.dtype)));
  const auto name = prelude_.use("load_pack");
  for (int first = 0; first < width_; first += group) {
    k_ = first;
    const std::string type = fmt::format("pack<{}, {}>", cuda_type(n.dtype), group);
    const std::string loaded =
        fmt::format("{}<{}, {}>(b{} + {});", name, cuda_type(n.dtype), group, n.index, offset(n));
    const Id mask = n.op == Op::load ? n.in[2] : kNone;
    if (mask == kNone) {
      line(fmt::format("const {} p{}_{} = {}", type, id, first, loaded));
    } else {
      line(fmt::format("{} p{}_{} = {{}};", type, id, first));
      line(fmt::format("if ({}) p{}_{} = {}", value(mask), id, first, loaded));
    }
    for (int i = 0; i < group; ++i) {
      k_ = first + i;
      define(id, fmt::format("p{}_{}.{}", id, first, "abcdefgh"[i]));
    }
  }
  k_ = 0;
}

void KernelEmitter::wide_store(Id id) {
  const Node& n = node(id);
  const int group = std::min(width_, 16 / static_cast<int>(size_of(n.dtype)));
  const auto name = prelude_.use("store_pack");
  for (int first = 0; first < width_; first += group) {
    std::string values;
    for (k_ = first; k_ < first + group; ++k_) values += ", " + value(n.in[2]);
    k_ = first;
    const std::string mask = n.in[3] == kNone ? "" : fmt::format("if ({}) ", value(n.in[3]));
    line(fmt::format("{}{}<{}>(b{} + {}{});", mask, name, cuda_type(n.dtype), n.index, offset(n),
                     values));
  }
  k_ = 0;
}

void KernelEmitter::local(Id id) {
  const Node& n = node(id);
  const DType dtype = kernel_.buffers[n.index].dtype;
  const auto type = cuda_type(dtype);
  if (const int kept = layouts_.kept(n.index); kept > 0) {
    return line(fmt::format("{} b{}[{}];", type, n.index, kept));
  }
  if (!shared_.dynamic(n)) {
    const std::uint64_t elements = std::max<std::uint64_t>(node(n.in[0]).bits, 1);
    line(fmt::format("__shared__ __align__({}) {} b{}[{}];", kSharedAlignment, type, n.index,
                     elements));
    return;
  }
  internal_check(depth_ == 1, "emit_cuda: an array of unknown size inside a loop");
  const std::string bytes = fmt::format("((({} * {}) + {}) & -{})", value(n.in[0]), size_of(dtype),
                                        kSharedAlignment - 1, kSharedAlignment);
  std::string place = shared_end_;
  if (kernel_.packed) {
    place = fmt::format("{} * blockDim.y + {} * threadIdx.y", shared_end_, bytes);
  }
  line(fmt::format("{0}* const b{1} = ({0}*)(shared_memory + {2});", type, n.index, place));
  shared_end_ = fmt::format("({} + {})", shared_end_, bytes);
}

/// Of several counters the first that fails is reported.
void KernelEmitter::check(Id id) {
  const Node& n = node(id);
  const int count = lanes_ == kNone ? 1 : width_;
  std::string failed, number, bound;
  for (k_ = count; k_-- > 0;) {
    const std::string bad = "!" + value(n.in[0]);
    failed = failed.empty() ? bad : fmt::format("{} || {}", bad, failed);
    const auto first = [&](std::string& text, Id operand) {
      const std::string mine = value(operand);
      text = text.empty() || text == mine ? mine : fmt::format("{} ? {} : {}", bad, mine, text);
    };
    first(number, n.in[1]);
    first(bound, n.in[2]);
  }
  k_ = 0;
  if (lanes_ == kNone) failed = fmt::format("{} && {}", kFirstThread, failed);
  line(fmt::format("if ({}) {}(error, {}, {}, {});", failed, prelude_.use("report"), n.index,
                   number, bound));
}

void KernelEmitter::loop(Id id) {
  accumulators(id);
  // Unrolling would only make it long to compile: outside of lanes each turn is a sweep of the
  // whole block, inside of them it has the work of several counters.
  if (lanes_ == kNone || width_ > 1) line("#pragma unroll 1");
  open(fmt::format("for ({1} c{0} = 0; c{0} < {2}; ++c{0})", id, type_of(id),
                   operand(id, node(id).in[0])));
  region(node(id).region);
  close();
}

/// How many counters, from 0, are taken several at a time.
std::string KernelEmitter::wide_counters(Id id) {
  const LaneLayout& layout = layouts_.of(id);
  const std::string extent = operand(id, node(id).in[0]);
  std::string count =
      layout.whole ? extent : fmt::format("{} / {} * {}", extent, layout.width, layout.width);
  if (!layout.multiples.empty()) {
    std::string all;
    for (const Id multiple : layout.multiples) {
      all += (all.empty() ? "" : " | ") + value(multiple);
    }
    count = fmt::format("(({}) & {}) == 0 ? {} : 0", all, layout.width - 1, count);
  }
  return count;
}

void KernelEmitter::lanes_body(Id id, int width) {
  lanes_ = id;
  width_ = width;
  region(node(id).region);
  width_ = 1;
  lanes_ = kNone;
}

/// Lanes over a constant extent, each sweep of the block written out so that what a thread keeps
/// of an array stays in registers.
void KernelEmitter::written_out(Id id) {
  const LaneLayout& layout = layouts_.of(id);
  const std::int64_t sweep = std::int64_t{layout.width} * kernel_.threads;
  const auto extent = static_cast<std::int64_t>(node(node(id).in[0]).bits);
  line("#pragma unroll");
  open(fmt::format("for (i32 r{0} = 0; r{0} < {1}; ++r{0})", id, layout.turns));
  line(fmt::format("const idx c{0} = (r{0} * {1} + threadIdx.x){2};", id, kernel_.threads,
                   layout.width > 1 ? fmt::format(" * {}", layout.width) : ""));
  const bool exact = extent == sweep * layout.turns;
  if (!exact) open(fmt::format("if (c{} < {})", id, extent));
  lanes_body(id, layout.width);
  if (!exact) close();
  close();
}

void KernelEmitter::lanes(Id id) {
  const Node& n = node(id);
  const LaneLayout& layout = layouts_.of(id);
  accumulators(id);
  const std::string_view type = type_of(id);
  std::string first = "threadIdx.x";
  if (layout.turns > 0) {
    written_out(id);
  } else {
    const bool all_wide = layout.whole && layout.multiples.empty();
    if (layout.width > 1) {
      std::string end = wide_counters(id);
      if (!all_wide) {
        line(fmt::format("const {} m{} = {};", type, id, end));
        end = fmt::format("m{}", id);
        first = fmt::format("m{} + threadIdx.x", id);
      }
      line("#pragma unroll 1");
      open(fmt::format("for ({0} c{1} = threadIdx.x * {2}; c{1} < {3}; c{1} += {4} * {2})", type,
                       id, layout.width, end, threads()));
      lanes_body(id, layout.width);
      close();
    }
    if (layout.width == 1 || !all_wide) {
      line("#pragma unroll 1");
      open(fmt::format("for ({0} c{1} = {2}; c{1} < {3}; c{1} += {4})", type, id, first,
                       operand(id, n.in[0]), threads()));
      lanes_body(id, 1);
      close();
    }
  }
  if (!n.accumulators.empty()) fold_block(id);
}

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
