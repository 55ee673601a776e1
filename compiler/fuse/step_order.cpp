#include "compiler/fuse/step_order.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <unordered_set>

#include "compiler/graph/op.h"
#include "croton/error.h"

namespace croton {
namespace {

/// Roughly; a size that is not known counts 1024.
double bytes_of(const Variable& v) {
  double bytes = static_cast<double>(size_of(v.dtype()));
  for (const std::int64_t size : v.static_shape()) {
    bytes *= size == kAnyDim ? 1024.0 : static_cast<double>(size);
  }
  return bytes;
}

/// The value whose memory a value is in.
Variable root_of(Variable v) {
  while (v.node()->op->view) v = v.node()->inputs[0];
  return v;
}

/// A value that one group makes and others read.
struct Held {
  double bytes = 0;
  int readers = 0;            ///< to come
  std::int64_t last_one = 0;  ///< the sum of their numbers, so the number of the last one
};

class StepOrder {
 public:
  StepOrder(std::vector<FusionGroup> groups, const FusionGraph& fusion)
      : groups_(std::move(groups)), fusion_(fusion), steps_(groups_.size()) {
    for (std::size_t g = 0; g < groups_.size(); ++g) note(static_cast<int>(g));
  }

  std::vector<FusionGroup> run() {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (steps_[g].waiting == 0) make_ready(static_cast<int>(g));
    }
    std::vector<FusionGroup> result;
    result.reserve(groups_.size());
    for (int g = -1; (g = next()) >= 0;) {
      if (std::exchange(steps_[g].done, true)) continue;
      finish(g);
      result.push_back(std::move(groups_[g]));
    }
    internal_check(result.size() == groups_.size(), "fusion made groups that need one another");
    return result;
  }

 private:
  struct Step {
    int arrivals = 0;  ///< transfers that must have come: all up to this one
    int age = 0;
    int waiting = 0;  ///< for groups that it reads from
    std::vector<int> users;
    std::vector<int> reads;  ///< numbers of values
    double takes = 0;        ///< bytes of results
    bool ready = false;
    bool done = false;
  };
  /// Arrivals, age, number.
  using Entry = std::tuple<int, int, int>;
  using Queue = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;

  int next() {
    if (!transfers_.empty()) {
      const int g = transfers_.front();
      transfers_.pop();
      return g;
    }
    if (ready_.empty() && freeing_.empty()) return -1;
    const bool frees = !freeing_.empty() &&
                       (ready_.empty() || std::get<0>(freeing_.top()) <= std::get<0>(ready_.top()));
    Queue& queue = frees ? freeing_ : ready_;
    const int g = std::get<2>(queue.top());
    queue.pop();
    return g;
  }

  /// What a group waits for, reads and makes.
  void note(int g) {
    Step& step = steps_[g];
    std::unordered_set<int> needs;
    std::unordered_set<int> reads;
    for (const Node* node : groups_[g].nodes) {
      step.age = std::max(step.age, fusion_.number.at(node));
      for (const Variable& input : node->inputs) {
        const int other = fusion_.group_of[fusion_.number.at(input.node())];
        if (other >= 0 && other != g) needs.insert(other);
        if (groups_[g].kind == GroupKind::view) continue;
        const Variable root = root_of(input);
        const int number = fusion_.number.at(root.node());
        const int maker = fusion_.group_of[number];
        // Arguments, parameters and results of the function stay.
        if (maker >= 0 && maker != g && !fusion_.is_output[number]) reads.insert(value(root));
      }
    }
    step.waiting = static_cast<int>(needs.size());
    for (const int other : needs) steps_[other].users.push_back(g);
    for (const int v : reads) {
      ++values_[v].readers;
      values_[v].last_one += g;
      step.reads.push_back(v);
    }
    if (groups_[g].kind == GroupKind::view) return;
    for (const Variable& output : groups_[g].outputs) step.takes += bytes_of(output);
  }

  int value(const Variable& v) {
    const auto [it, first] = numbers_.emplace(v, static_cast<int>(values_.size()));
    if (first) values_.push_back({bytes_of(v), 0, 0});
    return it->second;
  }

  void make_ready(int g) {
    if (groups_[g].kind == GroupKind::copy) return transfers_.push(g);
    steps_[g].ready = true;
    ready_.emplace(steps_[g].arrivals, steps_[g].age, g);
    ask(g);
  }

  /// Puts a group that can run among those that free memory, if it does. It will then, too.
  void ask(int g) {
    const Step& step = steps_[g];
    if (!step.ready || step.done) return;
    double frees = 0;
    for (const int v : step.reads) {
      if (values_[v].readers == 1) frees += values_[v].bytes;
    }
    if (frees > step.takes) freeing_.emplace(step.arrivals, step.age, g);
  }

  void finish(int g) {
    for (const int v : steps_[g].reads) {
      Held& held = values_[v];
      held.last_one -= g;
      if (--held.readers == 1) ask(static_cast<int>(held.last_one));
    }
    int arrivals = steps_[g].arrivals;
    if (groups_[g].kind == GroupKind::copy) arrivals = ++sent_;
    for (const int user : steps_[g].users) {
      steps_[user].arrivals = std::max(steps_[user].arrivals, arrivals);
      if (--steps_[user].waiting == 0) make_ready(user);
    }
  }

  std::vector<FusionGroup> groups_;
  const FusionGraph& fusion_;
  std::vector<Step> steps_;
  VariableMap<int> numbers_;
  std::vector<Held> values_;
  std::queue<int> transfers_;
  int sent_ = 0;
  Queue ready_;
  Queue freeing_;
};

}  // namespace

std::vector<FusionGroup> in_step_order(std::vector<FusionGroup> groups, const FusionGraph& fusion) {
  return StepOrder(std::move(groups), fusion).run();
}

}  // namespace croton
