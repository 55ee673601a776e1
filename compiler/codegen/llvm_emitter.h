// The state of printing one kernel as LLVM IR; split over llvm_arithmetic.cpp, llvm_cast.cpp,
// llvm_memory.cpp and llvm_regions.cpp by the kind of node.
#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "runtime/target.h"

namespace croton::codegen::llvm_ir {

/// What kernels of one module share: declarations and internal functions, printed once.
struct Module {
  std::set<std::string> declarations;
  std::map<std::string, std::string> functions;  ///< definition by name
};

class Emitter {
 public:
  Emitter(const kernel::Kernel& kernel, const TargetInfo& target, Module& module);

  /// The definition of the kernel's entry.
  std::string emit();

 private:
  using Id = kernel::Id;
  using Node = kernel::Node;

  /// An operand: its text and the depth of the innermost loop on which it depends (0: none).
  struct Value {
    std::string text;
    int depth = 0;
    bool known = false;
  };

  /// A loop under construction. Frame 0 is the entry of the function, frame 1 the loop over blocks.
  struct Frame {
    std::string before;  ///< straight-line code that runs once before the loop
    std::string body;
    std::string label;  ///< the basic block in which `body` ends
  };

  /// The `lanes` under construction.
  struct Lanes {
    int depth = 0;        ///< its frame; 0: none is open
    int width = 0;        ///< elements of a vector
    std::string counter;  ///< of the first lane
    std::string mask;     ///< which lanes exist; empty: all
    std::string rest;     ///< how many lanes the mask has, where it is that of the rest
    std::string full;     ///< with a mask: a bit that says whether it has all lanes; may be empty
  };

  /// The current value of an accumulator; `index` for argmin and argmax.
  struct Running {
    std::string value;
    std::string index;
  };

  // Streams.
  int depth() const { return static_cast<int>(frames_.size()) - 1; }
  Frame& top() { return frames_.back(); }
  std::string fresh() { return fmt::format("%v{}", next_++); }
  std::string fresh_label(std::string_view what) { return fmt::format("{}{}", what, next_++); }
  /// Prints `name = right` where depth `at_` is computed.
  void define(const std::string& name, std::string_view right);
  std::string define(std::string_view right);
  template <class... T>
  std::string op(fmt::format_string<T...> format, T&&... arguments) {
    return define(fmt::format(format, std::forward<T>(arguments)...));
  }
  template <class... T>
  void line(fmt::format_string<T...> format, T&&... arguments) {
    fmt::format_to(std::back_inserter(top().body), format, std::forward<T>(arguments)...);
  }
  void begin_block(const std::string& label);

  // Operands.
  const Node& node(Id id) const { return kernel_.nodes[id]; }
  bool constant(Id id, std::int64_t* value) const;
  const std::string& scalar(Id id) { return values_[id].text; }
  /// The operand in the form of a value of `width`: splat when it is uniform and width is not 0.
  std::string operand(Id id, int width);
  std::string splat(const std::string& scalar, std::string_view element, int width);
  int operand_depth(const Node& n) const;
  void set(Id id, std::string text, int depth) { values_[id] = {std::move(text), depth, true}; }

  // Nodes.
  void emit_region(int region);
  void emit_node(Id id);
  void emit_value(Id id);
  std::string any_lane(Id id);
  std::string emit_call(const Node& n, int width);

  // Arithmetic on operands that are printed already; width 0 is scalar.
  std::string unary(kernel::Unary op, DType t, int width, const std::string& x);
  std::string binary(kernel::Binary op, DType t, int width, const std::string& a,
                     const std::string& b);
  std::string compare(std::string_view predicate, DType t, int width, const std::string& a,
                      const std::string& b);
  std::string divide(bool remainder, DType t, int width, const std::string& a,
                     const std::string& b);
  std::string divide_in_float64(bool remainder, DType t, int width, const std::string& a,
                                const std::string& b);
  std::string shift(bool left, DType t, int width, const std::string& a, const std::string& b);
  std::string shift_by(bool left, DType t, int width, const std::string& a, std::uint64_t amount);
  std::string minimum(bool max, DType t, int width, const std::string& a, const std::string& b);
  std::string select(DType t, int width, const std::string& condition, const std::string& a,
                     const std::string& b);
  std::string intrinsic(std::string_view name, DType t, int width, const std::string& x,
                        std::string_view more = {});
  std::string constant_of(DType t, int width, std::uint64_t bits);
  std::string integer(DType t, int width, std::int64_t value);
  std::string simple(std::string_view instruction, DType t, int width, const std::string& a,
                     const std::string& b);
  std::string convert(std::string_view instruction, DType from, DType to, int width,
                      const std::string& x);

  std::string cast(DType from, DType to, int width, const std::string& x);
  std::string truncate(DType from, DType to, int width, const std::string& x);
  std::string cast_to_half(DType from, DType to, int width, const std::string& x);
  std::string narrow_to_odd(int width, const std::string& x);
  std::string half_of_float(DType to, int width, const std::string& x);
  std::string float_of_half(DType from, int width, const std::string& x);
  std::string integer_for_rounding(DType from, int width, const std::string& x);

  // Memory.
  void emit_load(Id id);
  void emit_early_loads(int region);
  void emit_gather(Id id);
  void emit_store(Id id);
  void emit_scatter(Id id);
  void emit_check(Id id);
  std::string scalar_load(int buffer, const std::string& index, Id mask);
  void scalar_store(int buffer, const std::string& index, const std::string& value, Id mask);
  bool copies_rest(DType t, const std::string& mask) const;
  void copy_rest(DType t, const std::string& to, const std::string& from);
  void prefetch(const std::string& pointer);
  std::string vector_load(int buffer, const std::string& pointer, const std::string& mask);
  void vector_store(int buffer, const std::string& pointer, const std::string& value,
                    const std::string& mask, bool streaming);
  std::string vector_gather(int buffer, const std::string& pointers, const std::string& mask);
  void vector_scatter(int buffer, const std::string& pointers, const std::string& value,
                      const std::string& mask);
  std::string contiguous_pointer(Id id, const Node& n, bool reverse);
  std::string strided_pointers(Id id, const Node& n);
  std::string base_pointer(Id id, const Node& n);
  std::string pointer_of(int buffer);
  std::string iota(std::string_view element, std::int64_t step) const;
  int buffer_depth(int buffer) const { return kernel_.buffers[buffer].argument ? 0 : 1; }
  std::string_view invariant(int buffer) const {
    return invariant_[buffer] ? ", !invariant.load !0" : "";
  }
  std::string full_mask(Id mask);
  std::string element_type(int buffer) const;
  std::string loaded(DType t, int width, const std::string& x);
  std::string storable(DType t, int width, const std::string& x);
  std::string reversed(std::string_view element, const std::string& x);

  // Folds.
  /// Accumulators that a loop carries: their owner and number.
  using Carried = std::vector<std::pair<Id, int>>;
  /// What they hold on the way from the block `label`.
  struct Incoming {
    std::string label;
    std::vector<Running> values;
  };
  bool is_pair(Id loop, int k) const;
  int accumulator_width(Id loop) const;
  void start_accumulators(Id loop);
  Running fold(kernel::Fold fold, DType t, int width, const Running& a, const Running& v);
  Running halve(kernel::Fold fold, DType t, int width, Running a);
  void emit_accumulate(Id id);
  void finish_lanes_folds(Id id);
  void find_carried(int region, std::set<std::pair<Id, int>>& carried) const;
  Carried carried_through(Id loop) const;
  std::vector<Running> running_values(const Carried& carried);
  std::vector<Running> fresh_values(const Carried& carried);
  void set_running(const Carried& carried, const std::vector<Running>& values);
  std::string phis(const Carried& carried, const std::vector<Running>& names,
                   const std::vector<Incoming>& incoming);

  // Regions.
  void emit_loop(Id id);
  void emit_unrolled(Id id, std::int64_t extent);
  void forget(int region, int depth);
  std::int64_t count_nodes(int region) const;

  /// The parts of a lanes: `whole` lanes run vector by vector in a main loop, then `rest` under a
  /// mask. Where the extent is known one of the two may be missing. A large body is printed once
  /// and not twice: then the main loop runs all lanes, each vector under a mask.
  struct LanesText {
    std::string extent, whole, rest, counter;
    bool fixed = false;
    bool has_main = true;
    bool has_tail = true;
    bool masked = false;
    std::string main, check, tail, done;  ///< blocks; `check` is where the main loop ends
    Carried carried;
    Incoming start;
  };
  void emit_lanes(Id id);
  LanesText plan_lanes(Id id);
  std::string mask_of_first(const std::string& count);
  std::string tail_mask(const LanesText& lanes);
  std::string loop_mask(const LanesText& lanes);
  Incoming emit_lanes_body(Id id, const LanesText& lanes, bool tail);
  Incoming print_guard(const LanesText& lanes, const std::string& before);
  void print_main(const LanesText& lanes, const std::string& text,
                  const std::vector<Running>& heads, const Incoming& start, const Incoming& end);
  void print_tail(const LanesText& lanes, const std::string& text, const std::string& end);
  void print_guarded_tail(const LanesText& lanes, const std::string& text,
                          const std::vector<Running>& middle, const Incoming& end);

  // The function around the body.
  std::string size_argument(int index);
  void emit_local(Id id);
  std::string print_locals();

  const kernel::Kernel& kernel_;
  const TargetInfo& target_;
  Module& module_;
  int next_ = 0;
  int at_ = 0;  ///< depth at which arithmetic is printed
  std::vector<Frame> frames_;
  std::vector<Value> values_;
  std::map<std::pair<std::string, std::string>, std::string> splats_;  ///< by element and scalar
  std::map<Id, std::string> pointers_;  ///< base pointers computed before the lanes, by node
  std::map<Id, std::vector<Running>> running_;
  std::vector<bool> invariant_;
  std::vector<bool> fetched_;          ///< buffers and sizes whose argument is loaded already
  std::vector<bool> lane_index_used_;  ///< by node: a lanes whose counter is an operand
  std::vector<Id> locals_;
  Lanes lanes_;
  bool streams_ = false;
  bool streams_ahead_ = false;  ///< some store is streaming: reads miss the caches as well
  bool sink_ = false;
  bool rest_ = false;
  bool frees_ = false;
};

}  // namespace croton::codegen::llvm_ir
