#include "runtime/link_copies.h"

#include <algorithm>
#include <map>
#include <utility>

namespace croton {
namespace {

constexpr std::int64_t kFirstBucket = std::int64_t{1} << 20;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

struct Bucket {
  std::vector<std::int32_t> copies;  ///< steps of the plan
  std::int64_t bytes = 0;
  std::int64_t most = 0;
  bool open = true;
};

class Linker {
 public:
  Linker(const BoundPlan& bound, const SlotMemory& memory, std::span<const std::int64_t> slot_bytes,
         Specialised& out)
      : bound_(bound),
        plan_(bound.plan),
        memory_(memory),
        slot_bytes_(slot_bytes),
        out_(out),
        steps_(plan_.steps.size()),
        bucket_of_(plan_.steps.size(), -1) {}

  void run() {
    for (const SpecialisedStep& s : out_.steps) steps_[at(s.index)].present = true;
    find_needs();
    fill_buckets();
    if (buckets_.empty()) return;
    out_.links.resize(bound_.contexts.size());
    out_.slot_bytes.assign(slot_bytes_.begin(), slot_bytes_.end());
    for (const Bucket& bucket : buckets_) use_link(bucket);
    rewrite();
  }

 private:
  struct Planned {
    bool present = false;
    std::vector<std::int32_t> needs;  ///< steps of any context
  };

  Device& device_of(std::int32_t slot) const {
    return bound_.contexts[at(plan_.slots[at(slot)].context)]->device();
  }

  bool linked(std::int32_t index) const {
    const Step& step = plan_.steps[at(index)];
    if (step.kind != Step::Kind::copy || !steps_[at(index)].present) return false;
    if (!memory_.moves(step) || slot_bytes_[at(step.slots[0])] == 0) return false;
    return bound_.links.slow() || !device_of(step.slots[0]).host_memory();
  }

  std::int32_t viewed(std::int32_t slot) const {
    while (plan_.slots[at(slot)].kind == SlotKind::view) slot = plan_.slots[at(slot)].index;
    return slot;
  }

  /// What the plan says, and what a change of queue adds: of the steps of one context that write a
  /// value, the last one.
  void find_needs() {
    std::vector<std::int32_t> writer(plan_.slots.size(), -1);
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const auto index = static_cast<std::int32_t>(i);
      if (!steps_[i].present) continue;
      const Step& step = plan_.steps[i];
      std::vector<std::int32_t>& needs = steps_[i].needs;
      for (const std::int32_t a : step.after) {
        if (steps_[at(a)].present) needs.push_back(a);
      }
      for (std::size_t k = 0; k < step.slots.size(); ++k) {
        const std::int32_t slot = viewed(step.slots[k]);
        if (k < at(step.outputs)) continue;
        const std::int32_t w = writer[at(slot)];
        if (w >= 0 && (linked(index) || linked(w))) needs.push_back(w);
      }
      for (std::int32_t k = 0; k < step.outputs; ++k) writer[at(viewed(step.slots[at(k)]))] = index;
      std::sort(needs.begin(), needs.end());
      needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
    }
  }

  void fill_buckets() {
    std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> latest;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const auto index = static_cast<std::int32_t>(i);
      for (const std::int32_t w : steps_[i].needs) {
        if (bucket_of_[at(w)] >= 0) buckets_[at(bucket_of_[at(w)])].open = false;
      }
      if (!linked(index)) continue;
      const Step& step = plan_.steps[i];
      const std::pair ends(step.context, plan_.slots[at(step.slots[0])].context);
      const std::int64_t bytes = slot_bytes_[at(step.slots[0])];
      auto found = latest.find(ends);
      const bool first = found == latest.end();
      if (!first) {
        const Bucket& bucket = buckets_[found->second];
        if (!bucket.open || bucket.bytes + bytes > bucket.most) found = latest.end();
      }
      if (found == latest.end()) {
        const std::int64_t most = bound_.links.bucket_bytes;
        buckets_.push_back({{}, 0, first ? std::min(kFirstBucket, most) : most, true});
        found = latest.insert_or_assign(ends, buckets_.size() - 1).first;
      }
      Bucket& bucket = buckets_[found->second];
      bucket.copies.push_back(index);
      bucket.bytes += bytes;
      bucket_of_[i] = static_cast<std::int32_t>(found->second);
    }
  }

  void use_link(const Bucket& bucket) {
    const Step& step = plan_.steps[at(bucket.copies.front())];
    const std::int32_t target = plan_.slots[at(step.slots[0])].context;
    UsedLink& used = out_.links[at(step.context)];
    Context& source = *bound_.contexts[at(step.context)];
    used.link = &source.link();
    used.last = std::max(used.last, bucket.copies.back());
    if (source.device().immediate()) return;
    for (const std::int32_t c : {step.context, target}) {
      const Device& device = bound_.contexts[at(c)]->device();
      if (device.target().backend != source.device().target().backend) continue;
      auto& ordered = used.ordered;
      if (std::find(ordered.begin(), ordered.end(), c) == ordered.end()) ordered.push_back(c);
      // Even those without steps.
      auto& active = out_.active;
      if (std::find(active.begin(), active.end(), c) == active.end()) active.push_back(c);
    }
  }

  /// The queue on which a step of the plan runs: of a context, or behind those of a link.
  std::int32_t queue_of(std::int32_t index) const {
    const std::int32_t context = plan_.steps[at(index)].context;
    return bucket_of_[at(index)] < 0 ? context
                                     : context + static_cast<std::int32_t>(bound_.contexts.size());
  }

  void add_waits(std::int32_t of, SpecialisedStep& s) const {
    for (const std::int32_t w : steps_[at(of)].needs) {
      if (queue_of(w) == queue_of(s.index)) continue;
      const std::int32_t bucket = bucket_of_[at(w)];
      const std::int32_t step = bucket < 0 ? w : buckets_[at(bucket)].copies.back();
      if (std::find(s.waits.begin(), s.waits.end(), step) == s.waits.end()) s.waits.push_back(step);
    }
  }

  void rewrite() {
    std::vector<SpecialisedStep> kept;
    std::vector<bool> awaited(plan_.steps.size());
    for (const UsedLink& used : out_.links) {
      if (used.last >= 0) awaited[at(used.last)] = true;
    }
    for (SpecialisedStep& s : out_.steps) {
      s.waits.clear();
      const std::int32_t bucket = bucket_of_[at(s.index)];
      if (bucket < 0) {
        add_waits(s.index, s);
      } else {
        const Bucket& mine = buckets_[at(bucket)];
        if (s.index != mine.copies.back()) continue;
        s.message = mine.copies;
        s.bytes = mine.bytes;
        for (const std::int32_t copy : mine.copies) add_waits(copy, s);
      }
      for (const std::int32_t w : s.waits) awaited[at(w)] = true;
      kept.push_back(std::move(s));
    }
    for (SpecialisedStep& s : kept) s.signals = awaited[at(s.index)];
    out_.steps = std::move(kept);
  }

  const BoundPlan& bound_;
  const Plan& plan_;
  const SlotMemory& memory_;
  const std::span<const std::int64_t> slot_bytes_;
  Specialised& out_;
  std::vector<Planned> steps_;
  std::vector<Bucket> buckets_;
  std::vector<std::int32_t> bucket_of_;  ///< by step of the plan, -1
};

}  // namespace

void link_copies(const BoundPlan& bound, const SlotMemory& memory,
                 std::span<const std::int64_t> slot_bytes, Specialised& out) {
  Linker(bound, memory, slot_bytes, out).run();
}

}  // namespace croton
