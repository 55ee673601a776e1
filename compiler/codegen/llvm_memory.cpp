#include <algorithm>
#include <utility>

#include "compiler/codegen/llvm_emitter.h"
#include "compiler/codegen/llvm_types.h"
#include "croton/error.h"

namespace croton::codegen::llvm_ir {

using kernel::kNone;
using kernel::Op;

namespace {

/// The largest vector without masks: 64 lanes of 256-bit machines, 32 of 128-bit ones.
constexpr int kRestBytes = 256;

/// How far ahead of its reads a kernel that streams asks for memory. The processor's own
/// prefetching does not keep several streams busy while long bodies run, and stops at the end of a
/// page.
constexpr int kAheadBytes = 4096;

/// Rows that are streamed begin at multiples of 64 bytes, a cache line, so that each vector does at
/// one of its own size or of that.
int streaming_alignment(std::size_t bytes) { return bytes < 64 ? static_cast<int>(bytes) : 64; }

}  // namespace

std::string Emitter::element_type(int buffer) const {
  return std::string(stored_element(kernel_.buffers[buffer].dtype));
}

/// bool is i8 in memory and i1 in registers.
std::string Emitter::loaded(DType t, int width, const std::string& x) {
  if (t != DType::boolean) return x;
  std::string zero = width == 0 ? "0" : "zeroinitializer";
  return op("icmp ne {} {}, {}", type("i8", width), x, zero);
}

std::string Emitter::storable(DType t, int width, const std::string& x) {
  if (t != DType::boolean) return x;
  return op("zext {} {} to {}", type("i1", width), x, type("i8", width));
}

/// Arguments are fetched from the array of pointers at the start of the function, once.
std::string Emitter::pointer_of(int buffer) {
  std::string name = fmt::format("%b{}", buffer);
  if (!kernel_.buffers[buffer].argument || fetched_[buffer]) return name;
  fetched_[buffer] = true;
  std::string& entry = frames_[0].body;
  entry += fmt::format("  {}.at = getelementptr ptr, ptr %buffers, i64 {}\n", name, buffer);
  entry += fmt::format("  {0} = load ptr, ptr {0}.at, align 8\n", name);
  return name;
}

/// The mask of a node together with that of the lanes; empty when all lanes take part.
std::string Emitter::full_mask(Id mask) {
  if (mask == kNone) return lanes_.mask;
  std::string own = operand(mask, lanes_.width);
  if (lanes_.mask.empty()) return own;
  return simple("and", DType::boolean, lanes_.width, own, lanes_.mask);
}

// ---- Scalars ----

/// Where a uniform mask is false the load goes to a constant zero instead.
std::string Emitter::scalar_load(int buffer, const std::string& index, Id mask) {
  DType t = kernel_.buffers[buffer].dtype;
  std::string e = element_type(buffer);
  std::string pointer = op("getelementptr {}, ptr {}, i64 {}", e, pointer_of(buffer), index);
  if (mask != kNone) {
    module_.declarations.insert("@croton.zero = internal constant i64 0, align 8\n");
    pointer = op("select i1 {}, ptr {}, ptr @croton.zero", scalar(mask), pointer);
  }
  std::string value = op("load {}, ptr {}, align {}{}", e, pointer, size_of(t), invariant(buffer));
  return loaded(t, 0, value);
}

/// Where a uniform mask is false the store goes to a word that nobody reads.
void Emitter::scalar_store(int buffer, const std::string& index, const std::string& value,
                           Id mask) {
  DType t = kernel_.buffers[buffer].dtype;
  std::string e = element_type(buffer);
  std::string pointer = op("getelementptr {}, ptr {}, i64 {}", e, pointer_of(buffer), index);
  if (mask != kNone) {
    if (!sink_) frames_[0].body += "  %sink = alloca i64, align 8\n";
    sink_ = true;
    pointer = op("select i1 {}, ptr {}, ptr %sink", scalar(mask), pointer);
  }
  std::string stored = storable(t, 0, value);
  line("  store {} {}, ptr {}, align {}\n", e, stored, pointer, size_of(t));
}

// ---- Vectors ----

/// Does the rest of a lanes go through memory of its own? Where the machine has no masked access of
/// this width LLVM makes a branch for each lane, which takes long to compile and to run.
bool Emitter::copies_rest(DType t, const std::string& mask) const {
  if (mask.empty() || mask != lanes_.mask || lanes_.rest.empty()) return false;
  return target_.vector_bits < (size_of(t) < 4 ? 512 : 256);
}

void Emitter::copy_rest(DType t, const std::string& to, const std::string& from) {
  if (!rest_) {
    frames_[0].body += fmt::format("  %rest = alloca [{} x i8], align 64\n", kRestBytes);
  }
  rest_ = true;
  module_.declarations.insert("declare ptr @memcpy(ptr, ptr, i64) nounwind\n");
  std::string bytes = op("mul i64 {}, {}", lanes_.rest, size_of(t));
  line("  call ptr @memcpy(ptr {}, ptr {}, i64 {})\n", to, from, bytes);
}

void Emitter::prefetch(const std::string& pointer) {
  module_.declarations.insert("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n");
  std::string ahead = op("getelementptr i8, ptr {}, i64 {}", pointer, kAheadBytes);
  line("  call void @llvm.prefetch.p0(ptr {}, i32 0, i32 3, i32 1)\n", ahead);
}

std::string Emitter::vector_load(int buffer, const std::string& pointer, const std::string& mask) {
  DType t = kernel_.buffers[buffer].dtype;
  int width = lanes_.width;
  std::string full = type(element_type(buffer), width);
  std::string value;
  if (mask.empty()) {
    if (streams_ahead_ && invariant_[buffer]) prefetch(pointer);
    value = op("load {}, ptr {}, align {}{}", full, pointer, size_of(t), invariant(buffer));
  } else if (copies_rest(t, mask)) {
    line("  store {} zeroinitializer, ptr %rest, align 64\n", full);
    copy_rest(t, "%rest", pointer);
    value = op("load {}, ptr %rest, align 64", full);
  } else {
    value =
        op("call {} @llvm.masked.load.{}.p0(ptr {}, i32 {}, {} {}, {} zeroinitializer)", full,
           suffix(stored_mangled(t), width), pointer, size_of(t), type("i1", width), mask, full);
  }
  return loaded(t, width, value);
}

void Emitter::vector_store(int buffer, const std::string& pointer, const std::string& value,
                           const std::string& mask, bool streaming) {
  DType t = kernel_.buffers[buffer].dtype;
  int width = lanes_.width;
  std::string full = type(element_type(buffer), width);
  std::string stored = storable(t, width, value);
  if (copies_rest(t, mask)) {
    line("  store {} {}, ptr %rest, align 64\n", full, stored);
    copy_rest(t, pointer, "%rest");
    return;
  }
  // Of a loop that masks each vector, most are whole: an ordinary store then, or a streaming one.
  bool branch = !mask.empty() && mask == lanes_.mask && !lanes_.full.empty();
  std::string whole, part, stored_label;
  if (branch) {
    whole = fresh_label("whole"), part = fresh_label("part"), stored_label = fresh_label("stored");
    line("  br i1 {}, label %{}, label %{}\n{}:\n", lanes_.full, whole, part, part);
  }
  if (!mask.empty()) {
    line("  call void @llvm.masked.store.{}.p0({} {}, ptr {}, i32 {}, {} {})\n",
         suffix(stored_mangled(t), width), full, stored, pointer, size_of(t), type("i1", width),
         mask);
    if (!branch) return;
    line("  br label %{}\n{}:\n", stored_label, whole);
  }
  std::size_t alignment = size_of(t);
  if (streaming) {
    alignment = static_cast<std::size_t>(streaming_alignment(width * size_of(t)));
    streams_ = true;
  }
  line("  store {} {}, ptr {}, align {}{}\n", full, stored, pointer, alignment,
       streaming ? ", !nontemporal !1" : "");
  if (!branch) return;
  line("  br label %{}\n", stored_label);
  begin_block(stored_label);
}

std::string Emitter::vector_gather(int buffer, const std::string& pointers,
                                   const std::string& mask) {
  DType t = kernel_.buffers[buffer].dtype;
  int width = lanes_.width;
  std::string full = type(element_type(buffer), width);
  std::string lanes = type("i1", width);
  std::string value =
      op("call {0} @llvm.masked.gather.{1}.v{2}p0({3} {4}, i32 {5}, {6} {7}, {0} zeroinitializer)",
         full, suffix(stored_mangled(t), width), width, type("ptr", width), pointers, size_of(t),
         lanes, mask.empty() ? "splat (i1 true)" : mask);
  return loaded(t, width, value);
}

void Emitter::vector_scatter(int buffer, const std::string& pointers, const std::string& value,
                             const std::string& mask) {
  DType t = kernel_.buffers[buffer].dtype;
  int width = lanes_.width;
  std::string stored = storable(t, width, value);
  line("  call void @llvm.masked.scatter.{}.v{}p0({} {}, {} {}, i32 {}, {} {})\n",
       suffix(stored_mangled(t), width), width, type(element_type(buffer), width), stored,
       type("ptr", width), pointers, size_of(t), type("i1", width),
       mask.empty() ? "splat (i1 true)" : mask);
}

std::string Emitter::reversed(std::string_view element, const std::string& x) {
  std::string full = type(element, lanes_.width);
  std::string order;
  for (int i = lanes_.width - 1; i >= 0; --i) order += fmt::format("i32 {}{}", i, i ? ", " : "");
  return op("shufflevector {0} {1}, {0} poison, <{2} x i32> <{3}>", full, x, lanes_.width, order);
}

/// The address of element `base`, computed before the lanes where base allows it, once for both
/// the whole vectors and the rest.
std::string Emitter::base_pointer(Id id, const Node& n) {
  std::string pointer = pointer_of(n.index);
  std::int64_t base = 0;
  if (constant(n.in[0], &base) && base == 0) return pointer;
  auto known = pointers_.find(id);
  if (known != pointers_.end()) return known->second;
  at_ = std::max({values_[n.in[0]].depth, buffer_depth(n.index), lanes_.depth - 1});
  bool before = at_ < lanes_.depth;
  pointer = op("getelementptr {}, ptr {}, i64 {}", element_type(n.index), pointer, scalar(n.in[0]));
  at_ = depth();
  if (before) pointers_[id] = pointer;
  return pointer;
}

std::string Emitter::contiguous_pointer(Id id, const Node& n, bool reverse) {
  std::string base = base_pointer(id, n);
  std::string offset = lanes_.counter;
  if (reverse) offset = op("sub i64 {}, {}", -(lanes_.width - 1), lanes_.counter);
  if (offset == "0") return base;
  return op("getelementptr {}, ptr {}, i64 {}", element_type(n.index), base, offset);
}

/// The addresses of the lanes of a load or store with any stride.
std::string Emitter::strided_pointers(Id id, const Node& n) {
  std::string base = base_pointer(id, n);
  std::string e = element_type(n.index);
  std::string first = op("mul i64 {}, {}", lanes_.counter, scalar(n.in[1]));
  std::string start = op("getelementptr {}, ptr {}, i64 {}", e, base, first);
  std::string offsets;
  std::int64_t stride = 0;
  if (constant(n.in[1], &stride)) {
    offsets = iota("i64", stride);
  } else {
    std::string all = operand(n.in[1], lanes_.width);
    at_ = std::max(values_[n.in[1]].depth, lanes_.depth - 1);
    offsets = simple("mul", DType::int64, lanes_.width, all, iota("i64", 1));
    at_ = depth();
  }
  return op("getelementptr {}, ptr {}, {} {}", e, start, type("i64", lanes_.width), offsets);
}

/// 0, step, 2 * step ... in the lanes.
std::string Emitter::iota(std::string_view element, std::int64_t step) const {
  std::string text = "<";
  for (int i = 0; i < lanes_.width; ++i) {
    text += fmt::format("{}{} {}", i ? ", " : "", element, i * step);
  }
  return text + ">";
}

// ---- Nodes ----

void Emitter::emit_load(Id id) {
  const Node& n = node(id);
  std::int64_t stride = 0;
  bool fixed = constant(n.in[1], &stride);
  bool varying_mask = n.in[2] != kNone && node(n.in[2]).varying;
  if (lanes_.depth == 0 || (fixed && stride == 0 && !varying_mask)) {
    // What is the same for all lanes of a lanes that runs at all is read before it.
    bool before =
        lanes_.depth == depth() && n.in[2] == kNone && values_[n.in[0]].depth < lanes_.depth;
    at_ = before && lanes_.depth > 0 ? lanes_.depth - 1 : depth();
    int place = at_;
    std::string value = scalar_load(n.index, scalar(n.in[0]), n.in[2]);
    at_ = depth();
    set(id, value, place);
    return;
  }
  at_ = depth();
  std::string mask = full_mask(n.in[2]);
  std::string value;
  if (fixed && stride == 1) {
    value = vector_load(n.index, contiguous_pointer(id, n, false), mask);
  } else if (fixed && stride == -1) {
    std::string pointer = contiguous_pointer(id, n, true);
    std::string turned = mask.empty() ? mask : reversed("i1", mask);
    value = reversed(element(n.dtype), vector_load(n.index, pointer, turned));
  } else {
    value = vector_gather(n.index, strided_pointers(id, n), mask);
  }
  set(id, value, depth());
}

/// In a loop that masks each vector a masked load takes a vector unit beside the load itself. So
/// what the body reads in order comes first, with ordinary loads where the vector is whole.
void Emitter::emit_early_loads(int region) {
  std::vector<Id> loads;
  for (Id id : kernel_.regions[region]) {
    const Node& n = node(id);
    std::int64_t stride = 0;
    bool plain = n.op == Op::load && invariant_[n.index] && n.in[2] == kNone &&
                 constant(n.in[1], &stride) && (stride == 1 || stride == -1);
    if (plain && values_[n.in[0]].known && values_[n.in[0]].depth < lanes_.depth) {
      loads.push_back(id);
    }
  }
  if (loads.empty()) return;
  std::string whole = fresh_label("whole"), part = fresh_label("part"),
              joined = fresh_label("loaded");
  std::string mask = std::exchange(lanes_.mask, "");
  line("  br i1 {}, label %{}, label %{}\n{}:\n", lanes_.full, whole, part, whole);
  std::vector<std::string> plain_values;
  for (Id id : loads) {
    emit_load(id);
    plain_values.push_back(values_[id].text);
  }
  lanes_.mask = mask;
  line("  br label %{}\n{}:\n", joined, part);
  for (Id id : loads) emit_load(id);
  line("  br label %{}\n", joined);
  begin_block(joined);
  for (std::size_t i = 0; i < loads.size(); ++i) {
    Id id = loads[i];
    std::string value = op("phi {} [ {}, %{} ], [ {}, %{} ]", type(node(id).dtype, lanes_.width),
                           plain_values[i], whole, values_[id].text, part);
    set(id, value, depth());
  }
}

void Emitter::emit_gather(Id id) {
  const Node& n = node(id);
  at_ = depth();
  if (!n.varying) {
    set(id, scalar_load(n.index, scalar(n.in[0]), n.in[1]), depth());
    return;
  }
  std::string index = operand(n.in[0], lanes_.width);
  std::string pointers = op("getelementptr {}, ptr {}, {} {}", element_type(n.index),
                            pointer_of(n.index), type("i64", lanes_.width), index);
  std::string mask = full_mask(n.in[1]);
  set(id, vector_gather(n.index, pointers, mask), depth());
}

void Emitter::emit_store(Id id) {
  const Node& n = node(id);
  at_ = depth();
  std::int64_t stride = 0;
  bool fixed = constant(n.in[1], &stride);
  bool varying = node(n.in[2]).varying || (n.in[3] != kNone && node(n.in[3]).varying);
  if (lanes_.depth == 0 || (fixed && stride == 0 && !varying)) {
    scalar_store(n.index, scalar(n.in[0]), scalar(n.in[2]), n.in[3]);
    return;
  }
  std::string mask = full_mask(n.in[3]);
  std::string value = operand(n.in[2], lanes_.width);
  if (fixed && stride == 1) {
    vector_store(n.index, contiguous_pointer(id, n, false), value, mask, n.streaming);
  } else if (fixed && stride == -1) {
    std::string pointer = contiguous_pointer(id, n, true);
    std::string turned = mask.empty() ? mask : reversed("i1", mask);
    std::string value_turned = reversed(element(n.dtype), value);
    vector_store(n.index, pointer, value_turned, turned, false);
  } else {
    vector_scatter(n.index, strided_pointers(id, n), value, mask);
  }
}

void Emitter::emit_scatter(Id id) {
  const Node& n = node(id);
  internal_check(n.sub == 0, "emit_llvm: a scatter that adds");
  at_ = depth();
  bool varying =
      node(n.in[0]).varying || node(n.in[1]).varying || (n.in[2] != kNone && node(n.in[2]).varying);
  if (!varying) {
    scalar_store(n.index, scalar(n.in[0]), scalar(n.in[1]), n.in[2]);
    return;
  }
  std::string index = operand(n.in[0], lanes_.width);
  std::string value = operand(n.in[1], lanes_.width);
  std::string pointers = op("getelementptr {}, ptr {}, {} {}", element_type(n.index),
                            pointer_of(n.index), type("i64", lanes_.width), index);
  std::string mask = full_mask(n.in[2]);
  vector_scatter(n.index, pointers, value, mask);
}

}  // namespace croton::codegen::llvm_ir
