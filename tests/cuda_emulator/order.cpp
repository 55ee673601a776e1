#include "tests/cuda_emulator/order.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace emulator {
namespace {
constexpr std::size_t kMostNodes = std::size_t{1} << 27;
}

void* reserve(std::size_t bytes, bool accessible) {
  void* memory = mmap(nullptr, bytes, accessible ? PROT_READ | PROT_WRITE : PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "[cuda emulator] no address space for %zu bytes\n", bytes);
    std::_Exit(2);
  }
  return memory;
}

void Clock::join(const Clock& other) {
  if (ticks.size() < other.ticks.size()) ticks.resize(other.ticks.size());
  for (std::size_t i = 0; i < other.ticks.size(); ++i) {
    ticks[i] = std::max(ticks[i], other.ticks[i]);
  }
  chain = std::max(chain, other.chain);
}

void Clock::join(Place place) {
  if (ticks.size() <= place.component) ticks.resize(place.component + 1);
  ticks[place.component] = std::max(ticks[place.component], place.tick);
}

Order::Order()
    : places_(static_cast<Place*>(reserve(kMostNodes * sizeof(Place), true))),
      names_(static_cast<const char**>(reserve(kMostNodes * sizeof(char*), true))) {}

std::uint32_t Order::add(std::uint32_t component, Clock& clock, const char* name) {
  if (nodes_ == kMostNodes) {
    std::fprintf(stderr, "[cuda emulator] too many operations for one process\n");
    std::_Exit(2);
  }
  if (last_tick_.size() <= component) last_tick_.resize(component + 1);
  const Place place{component, ++last_tick_[component]};
  clock.join(place);
  places_[nodes_] = place;
  names_[nodes_] = name;
  return nodes_++;
}

const char* Order::name(std::uint32_t node) const {
  if (node < kSeveralNodes) return node && node < nodes_ ? names_[node] : "the host";
  return name(sets_[node - kSeveralNodes].back());
}

bool Order::after(const Clock& clock, std::uint32_t node) const {
  if (node == 0) return true;
  if (node < kSeveralNodes) return clock.after(places_[node]);
  const auto& set = sets_[node - kSeveralNodes];
  return std::all_of(set.begin(), set.end(),
                     [&](std::uint32_t n) { return clock.after(places_[n]); });
}

std::uint32_t Order::both(std::uint32_t readers, std::uint32_t node) {
  const auto [at, added] = pairs_.try_emplace({readers, node}, 0);
  if (!added) return at->second;
  std::vector<std::uint32_t> set;
  if (readers >= kSeveralNodes)
    set = sets_[readers - kSeveralNodes];
  else
    set.push_back(readers);
  if (std::find(set.begin(), set.end(), node) != set.end()) return at->second = readers;
  set.push_back(node);
  sets_.push_back(std::move(set));
  return at->second = kSeveralNodes + static_cast<std::uint32_t>(sets_.size() - 1);
}

const char* Order::keep(const std::string& name) {
  const auto [at, added] = kept_.try_emplace(name, nullptr);
  if (added) at->second = at->first.c_str();
  return at->second;
}

}  // namespace emulator
