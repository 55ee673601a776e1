// What turns a list of nodes under construction into a finished kernel.
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace croton::kernel {
namespace {

bool acts(Op op) {
  return op == Op::store || op == Op::scatter || op == Op::check || op == Op::local;
}

// The region in which each node stands, and the loop or lanes that owns each region.
struct Positions {
  std::vector<int> region;
  std::vector<Id> owner;
};

Positions positions_of(const Kernel& kernel) {
  Positions p{std::vector<int>(kernel.nodes.size(), -1),
              std::vector<Id>(kernel.regions.size(), kNone)};
  for (std::size_t r = 0; r < kernel.regions.size(); ++r) {
    for (Id id : kernel.regions[r]) {
      p.region[id] = static_cast<int>(r);
      if (kernel.nodes[id].region >= 0) p.owner[kernel.nodes[id].region] = id;
    }
  }
  return p;
}

// Which nodes act or are needed by one that does. An accumulate is needed by its result.
std::vector<bool> live_nodes(const Kernel& kernel) {
  const Positions positions = positions_of(kernel);
  std::vector<bool> live(kernel.nodes.size());
  std::vector<Id> work;
  const auto mark = [&](Id id) {
    if (id == kNone || live[id]) return;
    live[id] = true;
    work.push_back(id);
  };
  std::unordered_map<Id, std::vector<Id>> folds;
  for (Id id = 0; id < static_cast<Id>(kernel.nodes.size()); ++id) {
    if (positions.region[id] < 0) continue;
    if (acts(kernel.nodes[id].op)) mark(id);
    if (kernel.nodes[id].op == Op::accumulate) folds[kernel.nodes[id].in[0]].push_back(id);
  }
  while (!work.empty()) {
    const Id id = work.back();
    work.pop_back();
    const Node& n = kernel.nodes[id];
    for (Id operand : n.in) mark(operand);
    for (const Accumulator& a : n.accumulators) mark(a.init);
    mark(positions.owner[positions.region[id]]);
    if (n.op != Op::result) continue;
    for (Id fold : folds[n.in[0]]) {
      if (kernel.nodes[fold].index == n.index) mark(fold);
    }
  }
  return live;
}

// Ids in the order of execution: an owner, then its body, then what follows.
std::vector<Id> execution_order(const Kernel& kernel) {
  std::vector<Id> order;
  std::vector<std::pair<int, std::size_t>> open = {{0, 0}};
  while (!open.empty()) {
    auto& [region, position] = open.back();
    if (position == kernel.regions[region].size()) {
      open.pop_back();
      continue;
    }
    const Id id = kernel.regions[region][position++];
    order.push_back(id);
    if (kernel.nodes[id].region >= 0) open.push_back({kernel.nodes[id].region, 0});
  }
  return order;
}

// A product or nothing: float32 or float64, used once, in the same region as its user.
class FmaFormer {
 public:
  explicit FmaFormer(Kernel& kernel) : kernel_(kernel), uses_(kernel.nodes.size()) {
    for (const Node& n : kernel.nodes) {
      for (Id id : n.in) {
        if (id != kNone) ++uses_[id];
      }
      for (const Accumulator& a : n.accumulators) {
        if (a.init != kNone) ++uses_[a.init];
      }
    }
    region_ = positions_of(kernel).region;
  }

  void run() {
    for (std::size_t r = 0; r < kernel_.regions.size(); ++r) {
      Region body;
      for (Id id : kernel_.regions[r]) {
        rewrite(id, body);
        body.push_back(id);
      }
      kernel_.regions[r] = std::move(body);
    }
  }

 private:
  bool is_product(Id id, Id user) const {
    const Node& n = kernel_.nodes[id];
    return n.op == Op::binary && n.sub == static_cast<std::uint8_t>(Binary::mul) &&
           (n.dtype == DType::float32 || n.dtype == DType::float64) && uses_[id] == 1 &&
           region_[id] == region_[user];
  }

  Id negated(Id id, Region& body) {
    const Node& x = kernel_.nodes[id];
    Node n;
    n.dtype = x.dtype;
    n.varying = x.varying;
    if (x.op == Op::constant) {
      n.op = Op::constant;
      n.bits = x.bits ^ (std::uint64_t{1} << (8 * size_of(x.dtype) - 1));
    } else if (x.op == Op::unary && x.sub == static_cast<std::uint8_t>(Unary::neg)) {
      return x.in[0];
    } else {
      n.op = Op::unary;
      n.sub = static_cast<std::uint8_t>(Unary::neg);
      n.in[0] = id;
    }
    kernel_.nodes.push_back(std::move(n));
    body.push_back(static_cast<Id>(kernel_.nodes.size()) - 1);
    return body.back();
  }

  void rewrite(Id id, Region& body) {
    const Node n = kernel_.nodes[id];
    const bool sum = n.sub == static_cast<std::uint8_t>(Binary::add);
    const bool difference = n.sub == static_cast<std::uint8_t>(Binary::sub);
    if (n.op != Op::binary || !(sum || difference) || n.in[0] == n.in[1]) return;
    const bool left = is_product(n.in[0], id);
    if (left == is_product(n.in[1], id)) return;
    const Node product = kernel_.nodes[left ? n.in[0] : n.in[1]];
    Node fused = n;
    fused.op = Op::fma;
    fused.sub = 0;
    fused.in[0] = product.in[0];
    fused.in[1] = product.in[1];
    fused.in[2] = left ? n.in[1] : n.in[0];
    if (difference) {
      Id& changed = left ? fused.in[2] : fused.in[1];
      changed = negated(changed, body);
    }
    kernel_.nodes[id] = std::move(fused);
  }

  Kernel& kernel_;
  std::vector<int> uses_;
  std::vector<int> region_;
};

}  // namespace

void compact(Kernel& kernel) {
  const std::vector<bool> live = live_nodes(kernel);
  std::vector<Id> renamed(kernel.nodes.size(), kNone);
  std::vector<Node> nodes;
  std::vector<Region> regions(1);
  // A body's new number is given when its owner is met, so regions come in order too.
  std::vector<int> region_of(kernel.regions.size(), 0);
  const std::vector<int> home = positions_of(kernel).region;
  const auto rename = [&](Id& id) {
    if (id != kNone) id = renamed[id];
  };
  for (Id id : execution_order(kernel)) {
    if (!live[id]) continue;
    renamed[id] = static_cast<Id>(nodes.size());
    Node node = std::move(kernel.nodes[id]);
    for (Id& operand : node.in) rename(operand);
    for (Accumulator& a : node.accumulators) rename(a.init);
    if (node.region >= 0) {
      region_of[node.region] = static_cast<int>(regions.size());
      node.region = region_of[node.region];
      regions.emplace_back();
    }
    regions[region_of[home[id]]].push_back(renamed[id]);
    nodes.push_back(std::move(node));
  }
  kernel.nodes = std::move(nodes);
  kernel.regions = std::move(regions);
}

void form_fma(Kernel& kernel) {
  FmaFormer(kernel).run();
  compact(kernel);
}

}  // namespace croton::kernel
