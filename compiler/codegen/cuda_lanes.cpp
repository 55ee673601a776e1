#include "compiler/codegen/cuda_lanes.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "compiler/kernel/limits.h"

namespace croton::codegen {
namespace {

using kernel::Binary;
using kernel::Id;
using kernel::Kernel;
using kernel::kNone;
using kernel::Node;
using kernel::Op;

constexpr int kAccessBytes = 16;
constexpr int kMostWidth = 8;
/// Nodes of a body times its width: beyond, programs take long to compile. Fewer where there are
/// checks, since such bodies wait for what they read anyway.
constexpr int kMostNodes = 384;
constexpr int kMostChecked = 96;

int bytes_of(DType dtype) { return static_cast<int>(size_of(dtype)); }

}  // namespace

class LaneLayouts::Chooser {
 public:
  explicit Chooser(const Kernel& kernel, LaneLayouts& out)
      : kernel_(kernel), out_(out), lanes_of_region_(kernel.regions.size(), kNone) {
    mark(0, kNone);
    region_of_.resize(kernel.nodes.size());
    for (std::size_t r = 0; r < kernel.regions.size(); ++r) {
      for (const Id id : kernel.regions[r]) region_of_[id] = static_cast<int>(r);
    }
    factors_.resize(kernel.nodes.size());
    for (Id id = 0; id < static_cast<Id>(kernel.nodes.size()); ++id) factors_[id] = find_factor(id);
  }

  void run() {
    for (Id id = 0; id < static_cast<Id>(kernel_.nodes.size()); ++id) {
      if (kernel_.nodes[id].op == Op::lanes) out_.layouts_[id] = choose(id);
    }
    keep_arrays();
    for (auto& [lanes, layout] : out_.layouts_) {
      if (layout.turns == 0 && layout.wide.empty()) layout = {};
    }
  }

 private:
  void mark(int region, Id lanes) {
    lanes_of_region_[region] = lanes;
    for (const Id id : kernel_.regions[region]) {
      const Node& n = kernel_.nodes[id];
      if (n.region >= 0) mark(n.region, n.op == Op::lanes ? id : lanes);
    }
  }

  /// The lanes around a node, or kNone.
  Id lanes_around(Id id) const { return lanes_of_region_[region_of_[id]]; }

  template <class F>
  void for_each(Id lanes, F&& visit) const {
    for (std::size_t r = 0; r < kernel_.regions.size(); ++r) {
      if (lanes_of_region_[r] != lanes) continue;
      for (const Id id : kernel_.regions[r]) visit(id);
    }
  }

  bool is_one(Id id) const {
    return kernel_.nodes[id].op == Op::constant && kernel_.nodes[id].bits == 1;
  }

  /// Loads and stores of neighbouring elements by neighbouring counters, without a mask.
  bool contiguous(Id id) const {
    const Node& n = kernel_.nodes[id];
    return (n.op == Op::load && is_one(n.in[1]) && n.in[2] == kNone) ||
           (n.op == Op::store && is_one(n.in[1]) && n.in[3] == kNone);
  }

  /// The same, or with a mask that is one for all counters taken together.
  bool neighbouring(Id id, const LaneLayout& layout) const {
    const Node& n = kernel_.nodes[id];
    if ((n.op != Op::load && n.op != Op::store) || !is_one(n.in[1])) return false;
    const Id mask = n.in[n.op == Op::load ? 2 : 3];
    return mask == kNone || !kernel_.nodes[mask].varying || layout.same.contains(mask);
  }

  /// The largest power of two up to 16 that surely divides a value.
  int factor(Id id) const { return factors_[static_cast<std::size_t>(id)]; }

  int find_factor(Id id) const {
    const Node& n = kernel_.nodes[id];
    switch (n.op) {
      case Op::constant:
        return 1 << std::min(4, std::countr_zero(n.bits));
      case Op::binary: {
        const int a = factor(n.in[0]), b = factor(n.in[1]);
        switch (static_cast<Binary>(n.sub)) {
          case Binary::add:
          case Binary::sub:
          case Binary::min:
          case Binary::max:
            return std::min(a, b);
          case Binary::mul:
            return std::min(16, a * b);
          default:
            return 1;
        }
      }
      case Op::select:
        return std::min(factor(n.in[1]), factor(n.in[2]));
      default:
        return 1;
    }
  }

  /// What must be a multiple of `width`, of values known outside of the lanes, so that `id` is;
  /// false where that cannot be told there.
  bool require(Id id, Id lanes, int width, std::vector<Id>& multiples) const {
    std::unordered_set<Id> seen;
    return require(id, lanes, width, multiples, seen);
  }

  /// `seen`: what the one that asks has already required, or else given up.
  bool require(Id id, Id lanes, int width, std::vector<Id>& multiples,
               std::unordered_set<Id>& seen) const {
    if (factor(id) >= width || !seen.insert(id).second) return true;
    const Node& n = kernel_.nodes[id];
    if (n.op == Op::constant) return false;
    const bool outside = lanes_around(id) == kNone;
    if (n.op == Op::binary) {
      const auto op = static_cast<Binary>(n.sub);
      if (op == Binary::add || op == Binary::sub) {
        return require(n.in[0], lanes, width, multiples, seen) &&
               require(n.in[1], lanes, width, multiples, seen);
      }
      if (op == Binary::mul && !outside) {
        for (const Id factor : {n.in[0], n.in[1]}) {
          if (lanes_around(factor) != kNone || kernel_.nodes[factor].op == Op::constant) continue;
          return require(factor, lanes, width, multiples, seen);
        }
        return false;
      }
    }
    if (!outside) return false;
    if (std::find(multiples.begin(), multiples.end(), id) == multiples.end()) {
      multiples.push_back(id);
    }
    return true;
  }

  LaneLayout choose(Id lanes) const {
    int largest = 0;
    bool arrays = false;
    for_each(lanes, [&](Id id) {
      const Node& n = kernel_.nodes[id];
      if ((n.op != Op::load && n.op != Op::store) || !is_one(n.in[1])) return;
      if (kernel_.buffers[n.index].argument) {
        largest = std::max(largest, bytes_of(n.dtype));
      } else {
        arrays = true;
      }
    });
    LaneLayout layout;
    if (largest == 0 && !arrays) return layout;
    int width = largest == 0 ? kMostWidth : std::min(kMostWidth, kAccessBytes / largest);
    if (largest == 0) {
      layout.width = width;  // as wide as others want that use the same arrays, or not at all
      return layout;
    }
    // What there is little of is better spread over many threads.
    const Node& extent = kernel_.nodes[kernel_.nodes[lanes].in[0]];
    const auto few = [&] {
      return extent.op == Op::constant &&
             extent.bits * 8 < static_cast<std::uint64_t>(width) * kernel_.threads * 7;
    };
    while (width > 1 && few()) width /= 2;
    set_width(lanes, width, layout);
    bool checks = false;
    for_each(lanes, [&](Id id) { checks = checks || kernel_.nodes[id].op == Op::check; });
    while (layout.width > 1 && nodes_of(lanes, layout) > (checks ? kMostChecked : kMostNodes)) {
      set_width(lanes, layout.width / 2, layout);
    }
    const bool pays = std::any_of(layout.wide.begin(), layout.wide.end(), [&](Id id) {
      return kernel_.buffers[kernel_.nodes[id].index].argument;
    });
    return pays ? layout : LaneLayout{};
  }

  /// How many nodes are printed for the lanes' body.
  int nodes_of(Id lanes, const LaneLayout& layout) const {
    int nodes = 0;
    for_each(lanes, [&](Id id) {
      const Node& n = kernel_.nodes[id];
      if (n.op == Op::result || n.op == Op::constant) return;
      nodes += n.varying && !layout.same.contains(id) ? layout.width : 1;
    });
    return nodes;
  }

  void set_width(Id lanes, int width, LaneLayout& layout) const {
    const Id extent = kernel_.nodes[lanes].in[0];
    layout = {};
    layout.width = width;
    layout.whole = factor(extent) >= width;
    if (width == 1) return;
    Followed followed{lanes, layout, {{lanes, {}}}};
    for_each(lanes, [&](Id id) { follow(id, followed); });
    for_each(lanes, [&](Id id) {
      if (!neighbouring(id, layout)) return;
      std::vector<Id> multiples = layout.multiples;
      if (!require(kernel_.nodes[id].in[0], lanes, width, multiples)) return;
      layout.multiples = std::move(multiples);
      layout.wide.insert(id);
    });
    if (layout.wide.empty()) layout = {};
  }

  /// Values that count up with the counter, and what must be multiples of the width for them to
  /// begin at one.
  struct Followed {
    Id lanes;
    LaneLayout& layout;
    std::unordered_map<Id, std::vector<Id>> counting;
  };

  static void add_all(std::vector<Id>& to, const std::vector<Id>& from) {
    for (const Id id : from) {
      if (std::find(to.begin(), to.end(), id) == to.end()) to.push_back(id);
    }
  }

  /// Finds what neighbouring counters share: quotients of what counts up, and all that comes from
  /// those alone.
  void follow(Id id, Followed& f) const {
    const Node& n = kernel_.nodes[id];
    if (!n.varying) return;
    LaneLayout& layout = f.layout;
    const bool pure = n.op == Op::unary || n.op == Op::binary || n.op == Op::fma ||
                      n.op == Op::select || n.op == Op::cast || n.op == Op::bitcast ||
                      n.op == Op::call || n.op == Op::gather;
    if (!pure) return;
    const bool all_same = std::all_of(n.in, n.in + 4, [&](Id operand) {
      return operand == kNone || !kernel_.nodes[operand].varying || layout.same.contains(operand);
    });
    if (all_same) {
      if (n.op != Op::gather || !kernel_.buffers[n.index].written) layout.same.insert(id);
      return;
    }
    const auto counts = f.counting.find(n.in[0]);
    if (n.op == Op::cast && counts != f.counting.end() && is_integer(n.dtype) &&
        size_of(n.dtype) == 8) {
      f.counting[id] = std::vector<Id>(counts->second);
      return;
    }
    if (n.op == Op::gather && counts != f.counting.end() && n.in[1] == kNone &&
        layout.ordinal.contains(n.in[0])) {
      layout.wide.insert(id);
      return;
    }
    if (n.op == Op::binary) follow_binary(id, f);
  }

  void follow_binary(Id id, Followed& f) const {
    const Node& n = kernel_.nodes[id];
    LaneLayout& layout = f.layout;
    const auto op = static_cast<Binary>(n.sub);
    for (int side = 0; side < 2 && op == Binary::add; ++side) {
      const auto counts = f.counting.find(n.in[side]);
      if (counts == f.counting.end() || kernel_.nodes[n.in[1 - side]].varying) continue;
      std::vector<Id> needs(counts->second);
      if (!require(n.in[1 - side], f.lanes, layout.width, needs)) return;
      f.counting[id] = std::move(needs);
      return;
    }
    const auto counts = f.counting.find(n.in[0]);
    const Node& right = kernel_.nodes[n.in[1]];
    if (counts == f.counting.end() || right.varying) return;
    std::vector<Id> needs(counts->second);
    const auto width = static_cast<std::uint64_t>(layout.width);
    const bool constant = right.op == Op::constant;
    if (op == Binary::shr) {
      if (!constant || right.bits >= 32 || (std::uint64_t{1} << right.bits) % width != 0) return;
      layout.same.insert(id);
    } else if (op == Binary::bit_and) {
      if (!constant || right.bits >= width) return;
      layout.ordinal.insert(id);
    } else if (op == Binary::div || op == Binary::rem) {
      if (!n.bounded && !small(n.in[0])) return;
      if (!require(n.in[1], f.lanes, layout.width, needs)) return;
      if (op == Binary::div) {
        layout.same.insert(id);
      } else {
        f.counting[id] = {};
        layout.ordinal.insert(id);
      }
    } else {
      return;
    }
    add_all(layout.multiples, needs);
  }

  /// Whether a value that counts up is surely not negative: the number of an element.
  bool small(Id id) const {
    const Node& n = kernel_.nodes[id];
    return n.op == Op::lanes || n.bounded;
  }

  /// The lanes that touch a block-local array, if each of their threads can keep its part: all
  /// accesses at the counter itself, in lanes over one constant extent.
  bool users_of(int buffer, std::vector<Id>& users) const {
    for (Id id = 0; id < static_cast<Id>(kernel_.nodes.size()); ++id) {
      const Node& n = kernel_.nodes[id];
      const bool memory =
          n.op == Op::load || n.op == Op::store || n.op == Op::gather || n.op == Op::scatter;
      if (!memory || n.index != buffer) continue;
      const Node& base = kernel_.nodes[n.in[0]];
      const Id lanes = lanes_around(id);
      if (lanes == kNone || !contiguous(id) || base.op != Op::constant || base.bits != 0) {
        return false;
      }
      const Id extent = kernel_.nodes[lanes].in[0];
      if (kernel_.nodes[extent].op != Op::constant) return false;
      if (!users.empty() &&
          kernel_.nodes[kernel_.nodes[users[0]].in[0]].bits != kernel_.nodes[extent].bits) {
        return false;
      }
      if (std::find(users.begin(), users.end(), lanes) == users.end()) users.push_back(lanes);
    }
    return !users.empty();
  }

  void keep_arrays() {
    if (kernel_.elastic) return;
    std::int64_t bytes = 0;
    for (int buffer = kernel_.arguments(); buffer < static_cast<int>(kernel_.buffers.size());
         ++buffer) {
      std::vector<Id> users;
      if (!users_of(buffer, users)) continue;
      const auto extent =
          static_cast<std::int64_t>(kernel_.nodes[kernel_.nodes[users[0]].in[0]].bits);
      int width = kMostWidth;
      for (const Id lanes : users) width = std::min(width, out_.layouts_[lanes].width);
      while (extent % width != 0) width /= 2;
      const std::int64_t sweep = std::int64_t{width} * kernel_.threads;
      const std::int64_t turns = (extent + sweep - 1) / sweep;
      const std::int64_t mine = turns * width * bytes_of(kernel_.buffers[buffer].dtype);
      if (bytes + mine > kernel::kThreadArrayBytes || !agree(users, width)) continue;
      bytes += mine;
      for (const Id lanes : users) {
        LaneLayout& layout = out_.layouts_[lanes];
        set_width(lanes, width, layout);
        layout.turns = static_cast<int>(turns);
      }
      out_.kept_[buffer] = static_cast<int>(turns * width);
    }
  }

  /// Whether the lanes can be written out at this width: they are not yet at another one, and no
  /// alignment needs to be tested.
  bool agree(const std::vector<Id>& users, int width) const {
    return std::all_of(users.begin(), users.end(), [&](Id lanes) {
      const LaneLayout& now = out_.layouts_.at(lanes);
      if (now.turns > 0) return now.width == width;
      LaneLayout layout;
      set_width(lanes, width, layout);
      return layout.multiples.empty();
    });
  }

  const Kernel& kernel_;
  LaneLayouts& out_;
  std::vector<Id> lanes_of_region_;
  std::vector<int> region_of_;
  std::vector<int> factors_;  ///< operands stand before those who use them
};

LaneLayouts::LaneLayouts(const Kernel& kernel) { Chooser(kernel, *this).run(); }

int LaneLayouts::kept(int buffer) const {
  const auto found = kept_.find(buffer);
  return found == kept_.end() ? 0 : found->second;
}

}  // namespace croton::codegen
