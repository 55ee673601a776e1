#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "croton/error.h"

namespace croton::kernel {
namespace {

bool computes_in_float(DType t) { return t == DType::float32 || t == DType::float64; }
bool has_arithmetic(DType t) { return is_integer(t) || computes_in_float(t); }

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  void run() {
    check_buffers();
    check_placement();
    struct Open {
      int region;
      std::size_t position = 0;
    };
    std::vector<Open> open = {{0}};
    visible_.assign(kernel_.nodes.size(), State::unseen);
    while (!open.empty()) {
      Open& top = open.back();
      const Region& region = kernel_.regions[top.region];
      if (top.position == region.size()) {
        leave(region);
        open.pop_back();
        continue;
      }
      const Id id = region[top.position++];
      current_ = id;
      check_node(kernel_.nodes[id]);
      visible_[id] = State::value;
      if (kernel_.nodes[id].region >= 0) {
        visible_[id] = State::open;
        owners_.push_back(id);
        open.push_back({kernel_.nodes[id].region});
      }
    }
    require(next_local_ == static_cast<int>(kernel_.buffers.size()),
            "a block-local buffer without a local node");
  }

 private:
  // A node's value can be used, or it is a loop or lanes whose body we are in or which has ended.
  enum class State : std::uint8_t { unseen, value, open, ended, gone };

  [[noreturn]] void fail(std::string_view rule) const {
    std::string where = "kernel";
    if (current_ != kNone) {
      where = fmt::format("kernel node %{} ({})", current_, name_of(kernel_.nodes[current_].op));
    }
    throw InternalError(fmt::format("[{}] {}", where, rule));
  }

  void require(bool condition, std::string_view rule) const {
    if (!condition) fail(rule);
  }

  void check_buffers() {
    require(kernel_.threads > 0, "no threads");
    bool local = false;
    for (const Buffer& b : kernel_.buffers) {
      require(!(b.argument && local), "an argument after a block-local buffer");
      local = local || !b.argument;
      require(b.aliases >= -1 && b.aliases < kernel_.arguments(), "aliases is not an argument");
      if (b.aliases >= 0) {
        require(b.argument && b.written, "only an output argument may alias an input");
        require(!kernel_.buffers[b.aliases].written, "an output aliases another output");
      }
    }
    next_local_ = kernel_.arguments();
  }

  void check_placement() {
    require(!kernel_.regions.empty(), "no body");
    home_.assign(kernel_.nodes.size(), -1);
    owner_.assign(kernel_.regions.size(), kNone);
    for (std::size_t r = 0; r < kernel_.regions.size(); ++r) {
      for (Id id : kernel_.regions[r]) {
        require(id >= 0 && id < static_cast<Id>(kernel_.nodes.size()), "a region holds no node");
        require(home_[id] < 0, "a node stands in two regions");
        home_[id] = static_cast<int>(r);
      }
    }
    for (Id id = 0; id < static_cast<Id>(kernel_.nodes.size()); ++id) {
      current_ = id;
      const Node& n = kernel_.nodes[id];
      require(home_[id] >= 0, "a node stands in no region");
      const bool owner = n.op == Op::loop || n.op == Op::lanes;
      require(owner == (n.region >= 0), "a body without a loop or lanes, or the other way round");
      if (!owner) continue;
      require(n.region > 0 && n.region < static_cast<int>(owner_.size()), "the body is not there");
      require(owner_[n.region] == kNone, "two owners of one body");
      owner_[n.region] = id;
    }
    current_ = kNone;
    for (std::size_t r = 1; r < owner_.size(); ++r) {
      require(owner_[r] != kNone, "a body without owner");
    }
  }

  void leave(const Region& region) {
    for (Id id : region) visible_[id] = State::gone;
    if (owners_.empty()) return;
    visible_[owners_.back()] = State::ended;
    owners_.pop_back();
  }

  bool in_lanes() const { return in_lanes_at(current_); }

  // The operand's node; what it may be was checked.
  const Node& operand(const Node& n, int i) const {
    const Id id = n.in[i];
    require(id != kNone, "an operand is missing");
    require(id >= 0 && id < static_cast<Id>(kernel_.nodes.size()), "an operand is not there");
    check_visible(id);
    return kernel_.nodes[id];
  }

  void check_visible(Id id) const {
    const State state = visible_[id];
    require(state != State::unseen, "an operand comes later");
    require(state != State::gone, "an operand is out of scope");
    require(state != State::ended, "the counter of a loop or lanes is used after its end");
    const Op op = kernel_.nodes[id].op;
    require(op != Op::store && op != Op::scatter && op != Op::check && op != Op::local &&
                op != Op::accumulate,
            "an operand has no value");
  }

  void no_operands(const Node& n, int from) const {
    for (int i = from; i < 4; ++i) require(n.in[i] == kNone, "too many operands");
  }

  // Messages are made only when they are needed: most kernels hold.
  void typed(const Node& n, int i, DType dtype) const {
    if (operand(n, i).dtype != dtype) {
      fail(fmt::format("operand {} is not {}", i, name_of(dtype)));
    }
  }

  void uniform_int64(const Node& n, int i) const {
    typed(n, i, DType::int64);
    if (kernel_.nodes[n.in[i]].varying) fail(fmt::format("operand {} varies over the lanes", i));
  }

  void mask(const Node& n, int i) const {
    if (n.in[i] != kNone) typed(n, i, DType::boolean);
  }

  // Whether some operand varies.
  bool any_varying(const Node& n) const {
    for (Id id : n.in) {
      if (id != kNone && kernel_.nodes[id].varying) return true;
    }
    return false;
  }

  static bool is_any_lane(const Node& n) {
    return n.op == Op::unary && static_cast<Unary>(n.sub) == Unary::any_lane;
  }

  void varies(const Node& n, bool expected) const {
    require(n.varying == expected,
            expected ? "varies over the lanes but says uniform" : "is uniform but says varying");
  }

  void check_node(const Node& n) {
    require(!n.streaming || n.op == Op::store, "streaming on what is no store");
    require(n.accumulators.empty() || n.region >= 0, "accumulators on what is no loop or lanes");
    switch (n.op) {
      case Op::constant:
      case Op::size:
      case Op::block:
        return check_leaf(n);
      case Op::loop:
      case Op::lanes:
        return check_owner(n);
      case Op::accumulate:
        return check_accumulate(n);
      case Op::result:
        return check_result(n);
      case Op::unary:
      case Op::binary:
      case Op::fma:
      case Op::select:
      case Op::cast:
      case Op::bitcast:
      case Op::call:
        check_arithmetic(n);
        return varies(n, any_varying(n) && !is_any_lane(n));
      case Op::load:
      case Op::gather:
      case Op::store:
      case Op::scatter:
        return check_memory(n);
      case Op::local:
        return check_local(n);
      case Op::check:
        typed(n, 0, DType::boolean);
        typed(n, 1, DType::int64);
        typed(n, 2, DType::int64);
        no_operands(n, 3);
        return require(n.index >= 0 && n.index < static_cast<int>(kernel_.checks.size()),
                       "a check without message");
    }
  }

  void check_leaf(const Node& n) const {
    no_operands(n, 0);
    varies(n, false);
    if (n.op == Op::constant) {
      const std::size_t bytes = size_of(n.dtype);
      require(bytes == 8 || n.bits >> (8 * bytes) == 0, "a constant's bits do not fit its dtype");
      return require(!is_bool(n.dtype) || n.bits <= 1, "a bool that is neither 0 nor 1");
    }
    require(n.dtype == DType::int64, "is not int64");
    if (n.op == Op::size) {
      require(n.index >= 0 && n.index < kernel_.sizes, "a size argument that is not there");
    }
  }

  void check_owner(const Node& n) const {
    require(n.dtype == DType::int64, "the counter is not int64");
    uniform_int64(n, 0);
    no_operands(n, 1);
    const bool lanes = n.op == Op::lanes;
    varies(n, lanes);
    require(!lanes || !in_lanes(), "lanes inside of lanes");
    require(n.unroll == 1 || (lanes && (n.unroll == 2 || n.unroll == 4 || n.unroll == 8)),
            "unroll is 1, 2, 4 or 8, and 1 for a loop");
    for (const Accumulator& a : n.accumulators) {
      const bool logical = a.fold == Fold::any || a.fold == Fold::all;
      require(logical ? is_bool(a.dtype) : has_arithmetic(a.dtype),
              "an accumulator's dtype does not suit its fold");
      if (a.init == kNone) continue;
      require(!lanes, "an accumulator of lanes has a start value");
      require(a.fold < Fold::argmin, "argmin and argmax take no start value");
      require(a.init >= 0 && a.init < static_cast<Id>(kernel_.nodes.size()),
              "a start value is not there");
      check_visible(a.init);
      require(kernel_.nodes[a.init].dtype == a.dtype, "a start value has another dtype");
    }
  }

  const Accumulator& accumulator(const Node& n) const {
    const Id id = n.in[0];
    require(id >= 0 && id < static_cast<Id>(kernel_.nodes.size()), "an operand is not there");
    const Node& owner = kernel_.nodes[id];
    require(owner.region >= 0, "its first operand is neither loop nor lanes");
    require(n.index >= 0 && n.index < static_cast<int>(owner.accumulators.size()),
            "an accumulator that is not there");
    return owner.accumulators[n.index];
  }

  void check_accumulate(const Node& n) const {
    const Accumulator& a = accumulator(n);
    require(visible_[n.in[0]] == State::open, "outside of the body that owns the accumulator");
    for (std::size_t i = owners_.size(); owners_[i - 1] != n.in[0]; --i) {
      require(kernel_.nodes[owners_[i - 1]].op == Op::loop,
              "a loop's accumulator is folded into from lanes inside of it");
    }
    require(n.dtype == a.dtype, "has another dtype than its accumulator");
    typed(n, 1, a.dtype);
    if (a.fold == Fold::argmin || a.fold == Fold::argmax) {
      typed(n, 2, DType::int64);
      no_operands(n, 3);
    } else {
      no_operands(n, 2);
    }
  }

  void check_result(const Node& n) const {
    const Accumulator& a = accumulator(n);
    require(visible_[n.in[0]] == State::ended, "its loop has not ended or is out of scope");
    no_operands(n, 1);
    const bool indexed = a.fold == Fold::argmin || a.fold == Fold::argmax;
    require(n.part == 0 || (n.part == 1 && indexed), "a part that is not there");
    require(n.dtype == (n.part ? DType::int64 : a.dtype), "has another dtype than its accumulator");
    varies(n, kernel_.nodes[n.in[0]].op == Op::loop && in_lanes_at(n.in[0]));
  }

  // Whether a node stands inside of lanes.
  bool in_lanes_at(Id id) const {
    for (int region = home_[id]; region != 0; region = home_[owner_[region]]) {
      if (kernel_.nodes[owner_[region]].op == Op::lanes) return true;
    }
    return false;
  }

  void check_arithmetic(const Node& n) const {
    switch (n.op) {
      case Op::unary:
        return check_unary(n);
      case Op::binary:
        return check_binary(n);
      case Op::fma:
        require(computes_in_float(n.dtype), "fma is of float32 or float64");
        for (int i = 0; i < 3; ++i) typed(n, i, n.dtype);
        return no_operands(n, 3);
      case Op::select:
        typed(n, 0, DType::boolean);
        typed(n, 1, n.dtype);
        typed(n, 2, n.dtype);
        return no_operands(n, 3);
      case Op::cast:
        operand(n, 0);
        return no_operands(n, 1);
      case Op::bitcast: {
        const DType from = operand(n, 0).dtype;
        require(size_of(from) == size_of(n.dtype) && !is_bool(from) && !is_bool(n.dtype),
                "bitcast is between dtypes of one size, not bool");
        return no_operands(n, 1);
      }
      default:
        require(n.index >= 0 && n.index < static_cast<int>(kernel_.names.size()),
                "a function without name");
        require(computes_in_float(n.dtype), "call is of float32 or float64");
        typed(n, 0, n.dtype);
        if (n.in[1] != kNone) typed(n, 1, n.dtype);
        return no_operands(n, 2);
    }
  }

  void check_unary(const Node& n) const {
    require(n.sub <= static_cast<std::uint8_t>(Unary::any_lane), "no such unary operation");
    const auto op = static_cast<Unary>(n.sub);
    typed(n, 0, n.dtype);
    no_operands(n, 1);
    bool fits = has_arithmetic(n.dtype);
    if (op == Unary::logical_not || op == Unary::any_lane) {
      fits = is_bool(n.dtype);
    } else if (op >= Unary::sqrt) {
      fits = computes_in_float(n.dtype);
    }
    if (!fits) fail(fmt::format("no {} of {}", name_of(op), name_of(n.dtype)));
  }

  void check_binary(const Node& n) const {
    require(n.sub <= static_cast<std::uint8_t>(Binary::le), "no such binary operation");
    const auto op = static_cast<Binary>(n.sub);
    const DType t = operand(n, 0).dtype;
    typed(n, 1, t);
    no_operands(n, 2);
    require(n.dtype == (op >= Binary::eq ? DType::boolean : t), "has the wrong dtype");
    bool fits = has_arithmetic(t);
    if (op >= Binary::bit_and && op <= Binary::bit_xor) fits = is_integer(t) || is_bool(t);
    if (op == Binary::shl || op == Binary::shr) fits = is_integer(t);
    if (op == Binary::mul_hi) fits = t == DType::uint32;
    if (op == Binary::eq || op == Binary::ne) fits = has_arithmetic(t) || is_bool(t);
    if (!fits) fail(fmt::format("no {} of {}", name_of(op), name_of(t)));
  }

  void check_memory(const Node& n) const {
    require(n.index >= 0 && n.index < static_cast<int>(kernel_.buffers.size()),
            "a buffer that is not there");
    require(n.index < next_local_, "a block-local buffer is used before its local node");
    const Buffer& buffer = kernel_.buffers[n.index];
    require(n.dtype == buffer.dtype, "has another dtype than its buffer");
    const bool affine = n.op == Op::load || n.op == Op::store;
    const bool stores = n.op == Op::store || n.op == Op::scatter;
    int next = affine ? 2 : 1;
    if (affine) {
      uniform_int64(n, 0);
      uniform_int64(n, 1);
    } else {
      typed(n, 0, DType::int64);
    }
    if (stores) {
      require(buffer.written, "writes to a buffer that is only read");
      typed(n, next++, n.dtype);
    }
    mask(n, next++);
    no_operands(n, next);
    if (stores) return;
    bool varying = any_varying(n);
    if (affine && in_lanes()) {
      const Node& stride = kernel_.nodes[n.in[1]];
      varying = varying || stride.op != Op::constant || stride.bits != 0;
    }
    varies(n, varying);
  }

  void check_local(const Node& n) {
    require(owners_.empty(), "a block-local buffer is declared inside of a loop or lanes");
    require(n.index == next_local_ && n.index < static_cast<int>(kernel_.buffers.size()),
            "block-local buffers are not in the order of their local nodes");
    require(n.dtype == kernel_.buffers[n.index].dtype, "has another dtype than its buffer");
    uniform_int64(n, 0);
    no_operands(n, 1);
    ++next_local_;
  }

  const Kernel& kernel_;
  Id current_ = kNone;
  int next_local_ = 0;
  std::vector<State> visible_;
  std::vector<int> home_;  ///< the region that holds each node
  std::vector<Id> owner_;  ///< the loop or lanes whose body each region is
  std::vector<Id> owners_;
};

}  // namespace

void verify(const Kernel& kernel) { Verifier(kernel).run(); }

}  // namespace croton::kernel
