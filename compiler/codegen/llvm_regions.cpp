#include <algorithm>
#include <bit>

#include "compiler/codegen/llvm_emitter.h"
#include "compiler/codegen/llvm_types.h"
#include "croton/error.h"

namespace croton::codegen::llvm_ir {

using kernel::kNone;
using kernel::Op;

namespace {

constexpr std::int64_t kMaxUnrolled = 8;
constexpr std::int64_t kMaxUnrolledNodes = 192;

/// From here on printing a body twice costs more, in compile time, than masking each vector does.
constexpr std::int64_t kLargeBody = 64;

/// Masked loads of all dtypes are single instructions: AVX-512.
bool has_masks(const TargetInfo& target) { return target.vector_bits >= 512; }

}  // namespace

void Emitter::emit_region(int region) {
  for (Id id : kernel_.regions[region]) emit_node(id);
}

/// Makes the values of a region unknown that were computed at `depth` or deeper, so that it can be
/// printed again.
void Emitter::forget(int region, int depth) {
  for (Id id : kernel_.regions[region]) {
    if (values_[id].depth >= depth) values_[id].known = false;
    if (node(id).region >= 0) {
      running_.erase(id);
      forget(node(id).region, depth);
    }
  }
}

std::int64_t Emitter::count_nodes(int region) const {
  std::int64_t count = 0;
  for (Id id : kernel_.regions[region]) {
    const Node& n = node(id);
    std::int64_t extent = 1;
    if (n.region >= 0) count += count_nodes(n.region) * (constant(n.in[0], &extent) ? 1 : 2);
    ++count;
  }
  return count;
}

void Emitter::emit_loop(Id id) {
  const Node& n = node(id);
  std::int64_t extent = -1;
  start_accumulators(id);
  bool fixed = constant(n.in[0], &extent);
  if (fixed && extent <= kMaxUnrolled && extent * count_nodes(n.region) <= kMaxUnrolledNodes) {
    emit_unrolled(id, extent);
    return;
  }
  std::string count = scalar(n.in[0]);
  std::string body = fresh_label("loop"), done = fresh_label("done"), counter = fresh();
  std::string outer = top().label;
  Carried carried = carried_through(id);
  Incoming start{outer, running_values(carried)};
  std::vector<Running> heads = fresh_values(carried);
  set_running(carried, heads);
  frames_.push_back({{}, {}, body});
  set(id, counter, depth());
  emit_region(n.region);
  Frame inner = std::move(frames_.back());
  frames_.pop_back();
  Incoming next{inner.label, running_values(carried)};

  std::string step = fresh(), more = fresh();
  top().body += inner.before;
  if (fixed) {
    line("  br label %{}\n", body);
  } else {
    std::string some = fresh();
    line("  {} = icmp sgt i64 {}, 0\n  br i1 {}, label %{}, label %{}\n", some, count, some, body,
         done);
  }
  line("{}:\n  {} = phi i64 [ 0, %{} ], [ {}, %{} ]\n", body, counter, outer, step, inner.label);
  top().body += phis(carried, heads, {start, next});
  top().body += inner.body;
  line("  {} = add nuw nsw i64 {}, 1\n  {} = icmp slt i64 {}, {}\n", step, counter, more, step,
       count);
  line("  br i1 {}, label %{}, label %{}\n", more, body, done);
  begin_block(done);
  if (!fixed) {
    std::vector<Running> ends = fresh_values(carried);
    top().body += phis(carried, ends, {start, next});
    set_running(carried, ends);
  }
  forget(n.region, depth() + 1);
}

/// A short loop of known extent, one iteration after the other.
void Emitter::emit_unrolled(Id id, std::int64_t extent) {
  for (std::int64_t i = 0; i < extent; ++i) {
    forget(node(id).region, depth());
    set(id, std::to_string(i), depth());
    emit_region(node(id).region);
  }
}

// ---- Lanes ----

Emitter::LanesText Emitter::plan_lanes(Id id) {
  const Node& n = node(id);
  LanesText lanes;
  std::int64_t extent = 0;
  lanes.fixed = constant(n.in[0], &extent);
  // The index of argmin and argmax takes two registers a vector: nothing is left to unroll into.
  bool pairs = false;
  for (int k = 0; k < static_cast<int>(n.accumulators.size()); ++k) pairs |= is_pair(id, k);
  int width = target_.lanes() * (pairs ? 1 : n.unroll);
  if (lanes.fixed) {
    // No wider than needed: a row of 10 is one vector of 16, not a part of 64.
    while (width > target_.lanes() && width / 2 >= extent) width /= 2;
    lanes.has_main = extent >= width;
    lanes.has_tail = extent % width != 0;
    lanes.whole = std::to_string(extent / width * width);
    lanes.rest = std::to_string(extent % width);
  } else {
    lanes.whole = fresh();
    lanes.rest = fresh();
  }
  if (lanes.has_main && lanes.has_tail && has_masks(target_)) {
    lanes.masked = count_nodes(n.region) > kLargeBody;
    lanes.has_tail = !lanes.masked;
  }
  lanes.extent = scalar(n.in[0]);
  lanes.counter = fresh();
  lanes.main = fresh_label("main");
  lanes.tail = fresh_label("tail");
  lanes.check = fresh_label("check");
  lanes.done = fresh_label("done");
  lanes_ = {};
  lanes_.depth = depth() + 1;
  lanes_.width = width;
  lanes.carried = carried_through(id);
  start_accumulators(id);
  lanes.start = {top().label, running_values(lanes.carried)};
  return lanes;
}

/// A mask of the first `count` lanes, at most all. By a comparison: made of scalar bits it would
/// run as fast, but LLVM thinks long about the bits.
std::string Emitter::mask_of_first(const std::string& count) {
  int width = lanes_.width;
  std::string narrow = op("trunc i64 {} to i32", count);
  std::string all = splat(narrow, "i32", width);
  return op("icmp ugt {} {}, {}", type("i32", width), all, iota("i32", 1));
}

/// The lanes after the whole vectors.
std::string Emitter::tail_mask(const LanesText& lanes) {
  if (!lanes.fixed) return mask_of_first(lanes.rest);
  std::string bits;
  for (int i = 0; i < lanes_.width; ++i) {
    bits += fmt::format("{}i1 {}", i ? ", " : "", i < std::stoi(lanes.rest));
  }
  return fmt::format("<{}>", bits);
}

/// The lanes of this vector that are below the extent; sets lanes_.full as well.
std::string Emitter::loop_mask(const LanesText& lanes) {
  int width = lanes_.width;
  std::string left = op("sub i64 {}, {}", lanes.extent, lanes_.counter);
  lanes_.full = op("icmp uge i64 {}, {}", left, width);
  return mask_of_first(op("select i1 {}, i64 {}, i64 {}", lanes_.full, width, left));
}

/// Prints the body once for the lanes from `counter` on; gives what reaches its end.
Emitter::Incoming Emitter::emit_lanes_body(Id id, const LanesText& lanes, bool tail) {
  const Node& n = node(id);
  top().body.clear();
  top().label = tail ? lanes.tail : lanes.main;
  at_ = depth();
  lanes_.counter = tail ? lanes.whole : lanes.counter;
  lanes_.rest = tail ? lanes.rest : "";
  lanes_.mask = tail ? tail_mask(lanes) : lanes.masked ? loop_mask(lanes) : "";
  if (lane_index_used_[id]) {
    std::string first = splat(lanes_.counter, "i64", lanes_.width);
    std::string all = simple("add", DType::int64, lanes_.width, first, iota("i64", 1));
    set(id, all, depth());
  } else {
    set(id, lanes_.counter, depth());
  }
  if (lanes.masked) emit_early_loads(n.region);
  emit_region(n.region);
  forget(n.region, depth());
  return {top().label, running_values(lanes.carried)};
}

void Emitter::emit_lanes(Id id) {
  LanesText lanes = plan_lanes(id);
  frames_.push_back({});
  std::vector<Running> heads = fresh_values(lanes.carried);
  Incoming main_end{{}, lanes.start.values}, tail_end;
  std::string main_text, tail_text;
  if (lanes.has_main) {
    set_running(lanes.carried, heads);
    main_end = emit_lanes_body(id, lanes, false);
    main_text = std::move(top().body);
  }
  // What reaches the rest: of a known extent the one way there is, else either of two.
  std::vector<Running> middle = lanes.fixed ? main_end.values : fresh_values(lanes.carried);
  if (lanes.has_tail) {
    set_running(lanes.carried, middle);
    tail_end = emit_lanes_body(id, lanes, true);
    tail_text = std::move(top().body);
  }
  std::string before = std::move(top().before);
  frames_.pop_back();
  if (lanes.fixed) {
    top().body += before;
    if (lanes.has_main) {
      line("  br label %{}\n", lanes.main);
      print_main(lanes, main_text, heads, lanes.start, main_end);
      begin_block(lanes.check);
    }
    if (lanes.has_tail) print_tail(lanes, tail_text, tail_end.label);
    set_running(lanes.carried, lanes.has_tail ? tail_end.values : main_end.values);
  } else {
    Incoming start = print_guard(lanes, before);
    print_main(lanes, main_text, heads, start, main_end);
    begin_block(lanes.check);
    if (lanes.masked) {
      middle = main_end.values;
    } else {
      top().body += phis(lanes.carried, middle, {start, main_end});
    }
    print_guarded_tail(lanes, tail_text, middle, tail_end);
  }
  finish_lanes_folds(id);
  lanes_ = {};
  splats_.clear();
  pointers_.clear();
}

/// The loop over whole vectors; it runs at least once and leaves to the block `check`.
void Emitter::print_main(const LanesText& lanes, const std::string& text,
                         const std::vector<Running>& heads, const Incoming& start,
                         const Incoming& end) {
  std::string step = fresh(), more = fresh();
  line("{}:\n  {} = phi i64 [ 0, %{} ], [ {}, %{} ]\n", lanes.main, lanes.counter, start.label,
       step, end.label);
  top().body += phis(lanes.carried, heads, {start, end});
  top().body += text;
  line("  {} = add nuw nsw i64 {}, {}\n", step, lanes.counter, lanes_.width);
  line("  {} = icmp ult i64 {}, {}\n", more, step, lanes.masked ? lanes.extent : lanes.whole);
  line("  br i1 {}, label %{}, label %{}\n", more, lanes.main, lanes.check);
}

void Emitter::print_tail(const LanesText& lanes, const std::string& text, const std::string& end) {
  line("  br label %{}\n{}:\n", lanes.tail, lanes.tail);
  top().body += text;
  top().label = end;
}

/// The start of a lanes of unknown extent: nothing of it runs when there are no lanes, and its main
/// loop only when there is a whole vector.
Emitter::Incoming Emitter::print_guard(const LanesText& lanes, const std::string& before) {
  std::string some = fresh(), full = fresh(), enter = fresh_label("lanes");
  line("  {} = icmp sgt i64 {}, 0\n", some, lanes.extent);
  line("  br i1 {}, label %{}, label %{}\n{}:\n", some, enter, lanes.done, enter);
  if (lanes.masked) {
    top().body += before;
    line("  br label %{}\n", lanes.main);
    return {enter, lanes.start.values};
  }
  line("  {} = and i64 {}, {}\n", lanes.whole, lanes.extent, -lanes_.width);
  line("  {} = and i64 {}, {}\n", lanes.rest, lanes.extent, lanes_.width - 1);
  top().body += before;
  line("  {} = icmp ne i64 {}, 0\n", full, lanes.whole);
  line("  br i1 {}, label %{}, label %{}\n", full, lanes.main, lanes.check);
  return {enter, lanes.start.values};
}

/// The rest of a lanes of unknown extent, from the block `check` to the block `done`.
void Emitter::print_guarded_tail(const LanesText& lanes, const std::string& text,
                                 const std::vector<Running>& middle, const Incoming& end) {
  std::vector<Incoming> incoming = {lanes.start, {lanes.check, middle}};
  if (lanes.has_tail) {
    std::string some = fresh();
    line("  {} = icmp ne i64 {}, 0\n", some, lanes.rest);
    line("  br i1 {}, label %{}, label %{}\n{}:\n", some, lanes.tail, lanes.done, lanes.tail);
    top().body += text;
    incoming.push_back(end);
  }
  line("  br label %{}\n", lanes.done);
  begin_block(lanes.done);
  std::vector<Running> ends = fresh_values(lanes.carried);
  top().body += phis(lanes.carried, ends, incoming);
  set_running(lanes.carried, ends);
}

}  // namespace croton::codegen::llvm_ir
