#include "runtime/slot_memory.h"

#include <algorithm>
#include <numeric>

#include "croton/error.h"
#include "runtime/arena.h"

namespace croton {
namespace {

constexpr std::int64_t kHostAlignment = 64;
constexpr std::int64_t kGpuAlignment = 256;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

SlotMemory::SlotMemory(const Plan& plan, std::span<Context* const> contexts,
                       std::span<const std::int64_t> slot_bytes, bool real)
    : plan_(plan), contexts_(contexts), bytes_(slot_bytes) {
  find_roots(real);
  find_lives();
}

void SlotMemory::find_roots(bool real) {
  root_.resize(plan_.slots.size());
  std::iota(root_.begin(), root_.end(), 0);
  const auto find = [&](std::int32_t slot) {
    while (root_[at(slot)] != slot) {
      root_[at(slot)] = root_[at(root_[at(slot)])];
      slot = root_[at(slot)];
    }
    return slot;
  };
  for (std::size_t i = 0; i < plan_.slots.size(); ++i) {
    if (plan_.slots[i].kind == SlotKind::view) root_[i] = plan_.slots[i].index;
  }
  const auto on_host = [&](std::int32_t slot) {
    return contexts_[at(plan_.slots[at(slot)].context)]->device().host_memory();
  };
  for (const Step& step : plan_.steps) {
    if (real || step.kind != Step::Kind::copy) continue;
    const std::int32_t target = find(step.slots[0]), source = find(step.slots[1]);
    if (target == source || !on_host(target) || !on_host(source)) continue;
    internal_check(bytes_[at(target)] == bytes_[at(source)], "a copy between slots of two sizes");
    // What outlives the call decides: a temporary that is copied out is made in its result block.
    if (kind(target) == SlotKind::result && kind(source) == SlotKind::temporary) {
      root_[at(source)] = target;
    } else {
      root_[at(target)] = source;
    }
  }
  for (std::size_t i = 0; i < root_.size(); ++i) root_[i] = find(static_cast<std::int32_t>(i));
}

void SlotMemory::find_lives() {
  life_.resize(plan_.slots.size());
  last_read_.assign(plan_.slots.size(), -1);
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    const Step& step = plan_.steps[s];
    if (step.kind == Step::Kind::copy && !moves(step)) continue;
    for (std::size_t k = 0; k < step.slots.size(); ++k) {
      const std::int32_t r = root(step.slots[k]);
      Life& life = life_[at(r)];
      if (life.first < 0) life.first = static_cast<std::int32_t>(s);
      life.last = static_cast<std::int32_t>(s);
      if (step.context != plan_.slots[at(r)].context) life.shared = true;
      // Copies to the host and to other devices run beside the steps that follow.
      if (step.kind == Step::Kind::copy) life.copied = true;
      if (k >= static_cast<std::size_t>(step.outputs)) {
        last_read_[at(r)] = static_cast<std::int32_t>(s);
      }
    }
  }
}

bool SlotMemory::may_share(const Step& step, std::int32_t index, std::int32_t output,
                           std::int32_t input, std::span<const std::int32_t> leader) const {
  if (kind(output) != SlotKind::temporary || kind(input) != SlotKind::temporary) return false;
  if (plan_.slots[at(output)].context != plan_.slots[at(input)].context) return false;
  if (bytes_[at(output)] != bytes_[at(input)]) return false;
  if (life_[at(output)].shared || life_[at(input)].shared) return false;
  if (life_[at(output)].first != index || life_[at(input)].last != index) return false;
  // The kernel must see that memory through this one argument.
  return std::count_if(step.slots.begin(), step.slots.end(), [&](std::int32_t slot) {
           return leader[at(root(slot))] == leader[at(input)];
         }) == 1;
}

void SlotMemory::share_in_place(std::span<std::int32_t> leader) {
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    const Step& step = plan_.steps[s];
    for (std::size_t o = 0; o < step.shares.size(); ++o) {
      if (step.shares[o] < 0) continue;
      const std::int32_t output = root(step.slots[o]);
      const std::int32_t input = root(step.slots[at(step.shares[o])]);
      if (!may_share(step, static_cast<std::int32_t>(s), output, input, leader)) continue;
      leader[at(output)] = leader[at(input)];
      Life& life = life_[at(leader[at(input)])];
      life.last = std::max(life.last, life_[at(output)].last);
    }
  }
}

void SlotMemory::lay_out(bool in_order, std::vector<Workspace>& workspaces) {
  const auto end = static_cast<std::int32_t>(plan_.steps.size());
  if (in_order) {
    for (Life& life : life_) life.shared = false;
  }
  for (std::size_t i = 0; i < life_.size(); ++i) {
    const bool host = contexts_[at(plan_.slots[i].context)]->device().host_memory();
    if (life_[i].copied && (!host || !in_order)) life_[i].last = end;
  }
  std::vector<std::int32_t> leader(plan_.slots.size());
  std::iota(leader.begin(), leader.end(), 0);
  share_in_place(leader);

  place_.assign(plan_.slots.size(), {});
  arena_bytes_.assign(contexts_.size(), 0);
  std::vector<std::vector<ArenaItem>> items(contexts_.size());
  std::vector<std::size_t> item_of(plan_.slots.size());
  for (std::size_t i = 0; i < plan_.slots.size(); ++i) {
    const Slot& slot = plan_.slots[i];
    if (root_[i] != static_cast<std::int32_t>(i)) continue;
    switch (slot.kind) {
      case SlotKind::input:
        place_[i] = {Place::Source::argument, slot.index, 0};
        break;
      case SlotKind::shared:
        place_[i] = {Place::Source::shared, static_cast<std::int32_t>(i), 0};
        break;
      case SlotKind::constant:
        place_[i] = {Place::Source::constant, slot.index, 0};
        break;
      case SlotKind::result:
        place_[i] = {Place::Source::result, static_cast<std::int32_t>(results_.size()), 0};
        results_.push_back({slot.context, static_cast<std::size_t>(bytes_[i])});
        break;
      case SlotKind::temporary: {
        place_[i] = {Place::Source::arena, slot.context, 0};
        const Life& life = life_[i];
        if (life.first < 0 || leader[i] != static_cast<std::int32_t>(i)) break;
        item_of[i] = items[at(slot.context)].size();
        items[at(slot.context)].push_back(
            {bytes_[i], life.shared ? 0 : life.first, life.shared ? end : life.last, 0});
        break;
      }
      case SlotKind::view:
        break;  // never a root
    }
  }
  for (Workspace& w : workspaces) {
    const std::int32_t context = plan_.steps[at(w.step)].context;
    w.place = {Place::Source::arena, context, static_cast<std::int64_t>(items[at(context)].size())};
    items[at(context)].push_back({w.bytes, w.step, w.step, 0});
  }
  for (std::size_t c = 0; c < contexts_.size(); ++c) {
    const bool host = contexts_[c]->device().host_memory();
    arena_bytes_[c] = croton::lay_out(items[c], host ? kHostAlignment : kGpuAlignment);
  }
  for (std::size_t i = 0; i < plan_.slots.size(); ++i) {
    if (root_[i] != static_cast<std::int32_t>(i) ||
        kind(static_cast<std::int32_t>(i)) != SlotKind::temporary || life_[i].first < 0) {
      continue;
    }
    const std::size_t c = at(plan_.slots[i].context);
    place_[i].offset = items[c][item_of[at(leader[i])]].offset;
  }
  for (Workspace& w : workspaces) {
    w.place.offset = items[at(w.place.index)][static_cast<std::size_t>(w.place.offset)].offset;
  }
}

}  // namespace croton
