#include "compiler/codegen/cuda_index.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/plan.h"

namespace croton::codegen {
namespace {

using kernel::Binary;
using kernel::Id;
using kernel::Kernel;
using kernel::kNone;
using kernel::Node;
using kernel::Op;

// Where a value lies; doubles hold what matters of such bounds.
struct Interval {
  double low = -HUGE_VAL;
  double high = HUGE_VAL;

  bool fits() const { return low >= -0x1p31 && high < 0x1p31; }
  double magnitude() const { return std::max(std::fabs(low), std::fabs(high)); }
};

constexpr double kSize = kWideFrom + 0x1p20;  // sizes are smaller, or the wide form runs

class Analysis {
 public:
  explicit Analysis(const Kernel& kernel)
      : kernel_(kernel), range_(kernel.nodes.size()), types_(kernel.nodes.size()) {}

  std::vector<IndexType> run() {
    for (Id id = 0; id < static_cast<Id>(kernel_.nodes.size()); ++id) {
      const Node& n = kernel_.nodes[id];
      if (n.dtype != DType::int64) continue;
      range_[id] = range(id);
      const bool computed = n.op == Op::size || n.op == Op::block || n.op == Op::loop ||
                            n.op == Op::lanes || n.op == Op::binary || n.op == Op::unary ||
                            n.op == Op::select || n.op == Op::cast;
      if (computed && range_[id].fits() && operands_fit(n)) types_[id] = IndexType::exact;
    }
    find_addresses();
    return types_;
  }

 private:
  bool operands_fit(const Node& n) const {
    if (n.op == Op::cast) return true;
    return std::all_of(n.in + (n.op == Op::select ? 1 : 0), n.in + 3, [&](Id id) {
      if (id == kNone) return true;
      return types_[id] == IndexType::exact ||
             (kernel_.nodes[id].op == Op::constant && range_[id].fits());
    });
  }

  Interval range(Id id) const {
    const Node& n = kernel_.nodes[id];
    const auto of = [&](int operand) { return range_[n.in[operand]]; };
    if (n.bounded) return {-kSize, kSize};
    switch (n.op) {
      case Op::constant: {
        const auto value = static_cast<double>(static_cast<std::int64_t>(n.bits));
        return {value, value};
      }
      case Op::size:
        return {-kSize, kSize};
      case Op::block:
        return {0, kSize};
      case Op::loop:
      case Op::lanes:
        return {0, std::max(of(0).high, 0.0)};
      case Op::unary:
        return static_cast<kernel::Unary>(n.sub) == kernel::Unary::neg
                   ? Interval{-of(0).high, -of(0).low}
                   : Interval{-of(0).magnitude(), of(0).magnitude()};
      case Op::binary:
        return binary(static_cast<Binary>(n.sub), of(0), of(1));
      case Op::select:
        return {std::min(of(1).low, of(2).low), std::max(of(1).high, of(2).high)};
      case Op::cast:
        return cast(kernel_.nodes[n.in[0]].dtype);
      default:
        return {};
    }
  }

  static Interval binary(Binary op, Interval a, Interval b) {
    switch (op) {
      case Binary::add:
        return {a.low + b.low, a.high + b.high};
      case Binary::sub:
        return {a.low - b.high, a.high - b.low};
      case Binary::mul: {
        const std::array<double, 4> corners{a.low * b.low, a.low * b.high, a.high * b.low,
                                            a.high * b.high};
        if (std::any_of(corners.begin(), corners.end(), [](double x) { return x != x; })) return {};
        const auto [low, high] = std::minmax_element(corners.begin(), corners.end());
        return {*low, *high};
      }
      case Binary::div:
        return {a.low < 0 || b.low < 0 ? -a.magnitude() : 0,
                a.low < 0 || b.low < 0 ? a.magnitude() : a.high};
      case Binary::rem: {
        const double most = std::min(a.magnitude(), b.magnitude());
        return {a.low < 0 ? -most : 0, most};
      }
      case Binary::min:
        return {std::min(a.low, b.low), std::min(a.high, b.high)};
      case Binary::max:
        return {std::max(a.low, b.low), std::max(a.high, b.high)};
      default:
        return {};
    }
  }

  static Interval cast(DType from) {
    if (is_bool(from)) return {0, 1};
    if (!is_integer(from) || size_of(from) > 4) return {};
    const double bits = 8.0 * static_cast<double>(size_of(from));
    if (is_unsigned(from)) return {0, std::exp2(bits) - 1};
    return {-std::exp2(bits - 1), std::exp2(bits - 1) - 1};
  }

  // Sums and products that are used in addresses alone: arithmetic modulo 2^32 is enough, since an
  // address that is used lies in its buffer. Later nodes are looked at first.
  void find_addresses() {
    std::vector<bool> elsewhere(kernel_.nodes.size());
    for (Id id = static_cast<Id>(kernel_.nodes.size()); id-- > 0;) {
      const Node& n = kernel_.nodes[id];
      if (wraps(n) && !elsewhere[id] && types_[id] == IndexType::none) {
        types_[id] = IndexType::address;
      }
      const bool passes_on = types_[id] == IndexType::address;
      for (int i = 0; i < 4; ++i) {
        if (n.in[i] == kNone) continue;
        if (!is_address(n, i) && !passes_on) elsewhere[n.in[i]] = true;
      }
      for (const auto& accumulator : n.accumulators) {
        if (accumulator.init != kNone) elsewhere[accumulator.init] = true;
      }
    }
  }

  static bool wraps(const Node& n) {
    if (n.op != Op::binary || n.dtype != DType::int64) return false;
    const auto op = static_cast<Binary>(n.sub);
    return op == Binary::add || op == Binary::sub || op == Binary::mul;
  }

  static bool is_address(const Node& n, int operand) {
    if (n.op == Op::load || n.op == Op::store) return operand <= 1;
    return (n.op == Op::gather || n.op == Op::scatter) && operand == 0;
  }

  const Kernel& kernel_;
  std::vector<Interval> range_;
  std::vector<IndexType> types_;
};

}  // namespace

std::vector<IndexType> index_types(const Kernel& kernel) { return Analysis(kernel).run(); }

}  // namespace croton::codegen
