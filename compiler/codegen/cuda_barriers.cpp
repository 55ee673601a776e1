#include "compiler/codegen/cuda_barriers.h"

#include <algorithm>
#include <set>

namespace croton::codegen {
namespace {

using kernel::Id;
using kernel::Kernel;
using kernel::Node;
using kernel::Op;

// The buffers that may have been accessed since the last barrier, by whom and how.
struct Pending {
  std::set<int> read;         // by any thread
  std::set<int> written;      // by any thread
  std::set<int> first_wrote;  // by the first thread of the block

  void join(const Pending& other) {
    read.insert(other.read.begin(), other.read.end());
    written.insert(other.written.begin(), other.written.end());
    first_wrote.insert(other.first_wrote.begin(), other.first_wrote.end());
  }
};

bool overlap(const std::set<int>& a, const std::set<int>& b) {
  return std::any_of(a.begin(), a.end(), [&](int buffer) { return b.contains(buffer); });
}

bool conflict(const Pending& before, const Pending& now) {
  return overlap(now.read, before.written) || overlap(now.read, before.first_wrote) ||
         overlap(now.written, before.read) || overlap(now.written, before.written) ||
         overlap(now.written, before.first_wrote) || overlap(now.first_wrote, before.read) ||
         overlap(now.first_wrote, before.written);
}

class Analysis {
 public:
  Analysis(const Kernel& kernel, const LaneLayouts& layouts)
      : kernel_(kernel), layouts_(layouts), before_(kernel.nodes.size()) {}

  std::vector<bool> run() {
    Pending pending;
    walk(kernel_.regions[0], pending);
    return before_;
  }

 private:
  // The shared memory through which a `lanes` folds is a buffer of its own.
  static int scratch_of(Id lanes) { return -1 - lanes; }

  Pending accesses(Id id, bool in_lanes) const {
    const Node& node = kernel_.nodes[id];
    Pending found;
    const bool memory = node.op == Op::load || node.op == Op::gather || node.op == Op::store ||
                        node.op == Op::scatter;
    if (memory && layouts_.kept(node.index) > 0) return found;  // each thread has its own
    if (node.op == Op::load || node.op == Op::gather) found.read.insert(node.index);
    if (node.op == Op::store || node.op == Op::scatter) {
      (in_lanes ? found.written : found.first_wrote).insert(node.index);
    }
    if (node.op == Op::lanes || node.op == Op::loop) {
      for (const Id inner : kernel_.regions[node.region]) found.join(accesses(inner, true));
    }
    if (node.op == Op::lanes && folds_over_block(kernel_, node))
      found.written.insert(scratch_of(id));
    return found;
  }

  void walk(const kernel::Region& region, Pending& pending) {
    for (const Id id : region) {
      const Node& node = kernel_.nodes[id];
      if (node.op == Op::loop) {
        walk_loop(kernel_.regions[node.region], pending);
        continue;
      }
      Pending now = accesses(id, false);
      if (before_[id] || conflict(pending, now)) {
        before_[id] = true;
        pending = {};
      }
      if (node.op == Op::lanes && folds_over_block(kernel_, node)) {
        pending = {};
        pending.read.insert(scratch_of(id));
      } else {
        pending.join(now);
      }
    }
  }

  // Once for the first iteration and once for one that follows another; or none runs.
  void walk_loop(const kernel::Region& body, Pending& pending) {
    const Pending skipped = pending;
    walk(body, pending);
    pending.join(skipped);
    walk(body, pending);
    pending.join(skipped);
  }

  const Kernel& kernel_;
  const LaneLayouts& layouts_;
  std::vector<bool> before_;
};

}  // namespace

bool folds_over_block(const Kernel& kernel, const Node& lanes) {
  return !lanes.accumulators.empty() && kernel.threads > 32;
}

std::vector<bool> barriers_before(const Kernel& kernel, const LaneLayouts& layouts) {
  return Analysis(kernel, layouts).run();
}

}  // namespace croton::codegen
