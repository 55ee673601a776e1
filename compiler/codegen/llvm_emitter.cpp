#include "compiler/codegen/llvm_emitter.h"

#include <algorithm>

#include "compiler/codegen/llvm_types.h"
#include "croton/error.h"

namespace croton::codegen::llvm_ir {

using kernel::kNone;
using kernel::Op;

namespace {

/// Block-local arrays up to this size together live on the stack; threads have at least 2 MiB.
constexpr std::int64_t kMaxStackBytes = 256 << 10;

}  // namespace

Emitter::Emitter(const kernel::Kernel& kernel, const TargetInfo& target, Module& module)
    : kernel_(kernel), target_(target), module_(module) {
  values_.resize(kernel.nodes.size());
  lane_index_used_.resize(kernel.nodes.size());
  fetched_.resize(kernel.buffers.size() + kernel.sizes);
  for (const kernel::Buffer& b : kernel.buffers) invariant_.push_back(b.argument && !b.written);
  for (const kernel::Buffer& b : kernel.buffers) {
    if (b.aliases >= 0) invariant_[b.aliases] = false;
  }
  for (const Node& n : kernel.nodes) {
    for (int i = n.op == Op::accumulate || n.op == Op::result ? 1 : 0; i < 4; ++i) {
      if (n.in[i] != kNone) lane_index_used_[n.in[i]] = true;
    }
    streams_ahead_ = streams_ahead_ || (n.op == Op::store && n.streaming);
  }
}

// ---- Streams ----

void Emitter::define(const std::string& name, std::string_view right) {
  internal_check(at_ <= depth(), "a kernel value is computed deeper than it is used");
  std::string& stream = at_ < depth() ? frames_[at_ + 1].before : top().body;
  fmt::format_to(std::back_inserter(stream), "  {} = {}\n", name, right);
}

std::string Emitter::define(std::string_view right) {
  std::string name = fresh();
  define(name, right);
  return name;
}

void Emitter::begin_block(const std::string& label) {
  line("{}:\n", label);
  top().label = label;
}

// ---- Operands ----

bool Emitter::constant(Id id, std::int64_t* value) const {
  const Node& n = node(id);
  if (n.op != Op::constant) return false;
  *value = static_cast<std::int64_t>(n.bits);
  return true;
}

std::string Emitter::splat(const std::string& scalar, std::string_view element, int width) {
  if (scalar[0] != '%') return splat_literal(element, scalar);
  auto [found, is_new] = splats_.try_emplace({std::string(element), scalar});
  if (is_new) {
    std::string full = type(element, width);
    std::string first = op("insertelement {} poison, {} {}, i32 0", full, element, scalar);
    found->second = op("shufflevector {0} {1}, {0} poison, {2} zeroinitializer", full, first,
                       type("i32", width));
  }
  return found->second;
}

std::string Emitter::operand(Id id, int width) {
  const Value& value = values_[id];
  internal_check(value.known, "a kernel node is used before its value");
  if (width == 0 || node(id).varying) return value.text;
  int place = at_;
  at_ = std::max(value.depth, lanes_.depth - 1);
  std::string result = splat(value.text, element(node(id).dtype), width);
  at_ = place;
  return result;
}

int Emitter::operand_depth(const Node& n) const {
  int result = 0;
  for (Id id : n.in) {
    if (id != kNone) result = std::max(result, values_[id].depth);
  }
  return result;
}

// ---- Nodes ----

void Emitter::emit_node(Id id) {
  const Node& n = node(id);
  if (values_[id].known && n.region < 0) return;
  switch (n.op) {
    case Op::constant:
      set(id, literal(n.dtype, n.bits), 0);
      break;
    case Op::size:
      set(id, size_argument(n.index), 0);
      break;
    case Op::block:
      set(id, "%block", 1);
      break;
    case Op::loop:
      emit_loop(id);
      break;
    case Op::lanes:
      emit_lanes(id);
      break;
    case Op::accumulate:
      emit_accumulate(id);
      break;
    case Op::result: {
      const Running& running = running_.at(n.in[0])[n.index];
      set(id, n.part == 0 ? running.value : running.index, depth());
      break;
    }
    case Op::unary:
    case Op::binary:
    case Op::fma:
    case Op::select:
    case Op::cast:
    case Op::bitcast:
    case Op::call:
      emit_value(id);
      break;
    case Op::load:
      emit_load(id);
      break;
    case Op::gather:
      emit_gather(id);
      break;
    case Op::store:
      emit_store(id);
      break;
    case Op::scatter:
      emit_scatter(id);
      break;
    case Op::local:
      emit_local(id);
      break;
    case Op::check:
      emit_check(id);
      break;
  }
}

constexpr const char* kFail =
    "define internal void @croton.fail(ptr %error, i64 %code, i64 %value, i64 %bound) "
    "cold noinline nounwind {\n"
    "  %pair = cmpxchg ptr %error, i64 0, i64 %code monotonic monotonic\n"
    "  %first = extractvalue { i64, i1 } %pair, 1\n"
    "  br i1 %first, label %record, label %done\n"
    "record:\n"
    "  %p1 = getelementptr i64, ptr %error, i64 1\n"
    "  store i64 %value, ptr %p1, align 8\n"
    "  %p2 = getelementptr i64, ptr %error, i64 2\n"
    "  store i64 %bound, ptr %p2, align 8\n"
    "  br label %done\n"
    "done:\n"
    "  ret void\n"
    "}\n";

/// Leaves the straight path only where a lane fails; the first of them tells its value.
void Emitter::emit_check(Id id) {
  const Node& n = node(id);
  at_ = depth();
  module_.functions["croton.fail"] = kFail;
  bool varying = node(n.in[0]).varying || node(n.in[1]).varying || node(n.in[2]).varying;
  int width = varying ? lanes_.width : 0;
  std::string ok = operand(n.in[0], width);
  std::string value = operand(n.in[1], width), bound = operand(n.in[2], width);
  std::string bad = simple("xor", DType::boolean, width, ok, constant_of(DType::boolean, width, 1));
  std::string any = bad;
  if (varying) {
    if (!lanes_.mask.empty()) bad = simple("and", DType::boolean, width, bad, lanes_.mask);
    any = op("call i1 @llvm.vector.reduce.or.v{0}i1(<{0} x i1> {1})", width, bad);
  }
  std::string fail = fresh_label("fail"), go_on = fresh_label("ok");
  line("  br i1 {}, label %{}, label %{}\n", any, fail, go_on);
  begin_block(fail);
  if (varying) {
    std::string bits = op("bitcast <{0} x i1> {1} to i{0}", width, bad);
    std::string lane = op("call i{0} @llvm.cttz.i{0}(i{0} {1}, i1 true)", width, bits);
    value = op("extractelement {} {}, i{} {}", type("i64", width), value, width, lane);
    bound = op("extractelement {} {}, i{} {}", type("i64", width), bound, width, lane);
  }
  line("  call void @croton.fail(ptr %error, i64 {}, i64 {}, i64 {})\n", n.index + 1, value, bound);
  line("  br label %{}\n", go_on);
  begin_block(go_on);
}

// ---- The function around the body ----

std::string Emitter::size_argument(int index) {
  std::string name = fmt::format("%s{}", index);
  std::size_t place = kernel_.buffers.size() + index;
  if (fetched_[place]) return name;
  fetched_[place] = true;
  std::string& entry = frames_[0].body;
  entry += fmt::format("  {}.at = getelementptr i64, ptr %sizes, i64 {}\n", name, index);
  entry += fmt::format("  {0} = load i64, ptr {0}.at, align 8, !invariant.load !0\n", name);
  return name;
}

void Emitter::emit_local(Id id) {
  internal_check(values_[node(id).in[0]].depth == 0,
                 "the size of a block-local array depends on the block");
  locals_.push_back(id);
}

/// One allocation for all block-local arrays, each aligned to 64 bytes: on the stack when it is
/// small, else from the heap, once a call. Comes after the code before the loop over blocks, which
/// computes the sizes.
std::string Emitter::print_locals() {
  if (locals_.empty()) return {};
  std::string text, pointers, fixed_pointers;
  std::string offset = "0";
  std::int64_t known = 0;
  bool fixed = true;
  for (Id id : locals_) {
    const Node& n = node(id);
    std::string end = fmt::format("%local{}", n.index);
    constexpr auto kPointer = "  %b{} = getelementptr i8, ptr %locals, i64 {}\n";
    pointers += fmt::format(kPointer, n.index, offset);
    fixed_pointers += fmt::format(kPointer, n.index, known);
    text += fmt::format(
        "  {0}.bytes = mul i64 {1}, {2}\n  {0}.up = add i64 {0}.bytes, 63\n"
        "  {0}.size = and i64 {0}.up, -64\n  {0} = add i64 {3}, {0}.size\n",
        end, scalar(n.in[0]), size_of(n.dtype), offset);
    offset = end;
    std::int64_t size = 0;
    fixed = fixed && constant(n.in[0], &size);
    known += (size * static_cast<std::int64_t>(size_of(n.dtype)) + 63) / 64 * 64;
  }
  if (fixed && known <= kMaxStackBytes) {
    return fmt::format("  %locals = alloca [{} x i8], align 64\n", known) + fixed_pointers;
  }
  frees_ = true;
  text += fmt::format(
      "  %big = icmp ugt i64 {0}, {1}\n  %small = select i1 %big, i64 0, i64 {0}\n"
      "  %stack = alloca i8, i64 %small, align 64\n"
      "  br i1 %big, label %allocate, label %allocated\n"
      "allocate:\n  %heap = call ptr @aligned_alloc(i64 64, i64 {0})\n"
      "  %none = icmp eq ptr %heap, null\n"
      "  br i1 %none, label %nothing, label %allocated\n"
      "nothing:\n  store i64 -1, ptr %error, align 8\n  ret void\n"
      "allocated:\n  %locals = phi ptr [ %stack, %entry ], [ %heap, %allocate ]\n"
      "  %free = phi ptr [ null, %entry ], [ %heap, %allocate ]\n",
      offset, kMaxStackBytes);
  module_.declarations.insert("declare ptr @aligned_alloc(i64, i64) nounwind\n");
  module_.declarations.insert("declare void @free(ptr) nounwind\n");
  return text + pointers;
}

std::string Emitter::emit() {
  frames_.push_back({{}, {}, "entry"});
  frames_.push_back({{}, {}, "blocks"});
  emit_region(0);
  Frame body = std::move(frames_.back());
  std::string text = fmt::format(
      "define void @{}(ptr %buffers, ptr %sizes, i64 %first, i64 %last, ptr %error) nounwind {{\n"
      "entry:\n{}{}",
      kernel_.name, frames_[0].body, body.before);
  text += print_locals();
  text += fmt::format(
      "  %some = icmp slt i64 %first, %last\n  br i1 %some, label %blocks, label %end\n"
      "blocks:\n  %block = phi i64 [ %first, %{} ], [ %next, %{} ]\n",
      frees_ ? "allocated" : "entry", body.label);
  text += body.body;
  text +=
      "  %next = add nsw i64 %block, 1\n  %more = icmp slt i64 %next, %last\n"
      "  br i1 %more, label %blocks, label %end\nend:\n";
  // Streaming stores are in no order with others; who waits for this kernel must see them.
  if (streams_) text += "  fence seq_cst\n";
  if (frees_) text += "  call void @free(ptr %free)\n";
  return text + "  ret void\n}\n";
}

}  // namespace croton::codegen::llvm_ir
