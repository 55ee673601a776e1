// The partial order of all work: which node comes after which, by vector clocks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/cuda_emulator/checks.h"

namespace emulator {

/// The newest tick of each component that comes before.
struct Clock {
  std::vector<std::uint32_t> ticks;
  std::uint64_t chain = 0;  ///< kernels, copies and the like, one after another, up to here
  void join(const Clock& other);
  void join(Place place);
  bool after(Place place) const {
    return place.component < ticks.size() && place.tick <= ticks[place.component];
  }
};

/// Names and places of all nodes ever made. A component is a stream or a branch of a graph.
class Order {
 public:
  Order();
  std::uint32_t new_component() { return components_++; }
  /// The next node of `component`, which comes after `clock`; it joins the clock.
  std::uint32_t add(std::uint32_t component, Clock& clock, const char* name);
  const Place* places() const { return places_; }
  const char* name(std::uint32_t node) const;
  bool after(const Clock& clock, std::uint32_t node) const;
  /// An id for `readers` and `node` together.
  std::uint32_t both(std::uint32_t readers, std::uint32_t node);
  /// A name that lives as long as the process.
  const char* keep(const std::string& name);

 private:
  Place* places_;
  const char** names_;
  std::uint32_t nodes_ = 1;
  std::uint32_t components_ = 0;
  std::vector<std::uint32_t> last_tick_;
  std::vector<std::vector<std::uint32_t>> sets_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> pairs_;
  std::map<std::string, const char*> kept_;
};

/// Address space that costs nothing until it is touched. Ends the process where there is none.
void* reserve(std::size_t bytes, bool accessible);

}  // namespace emulator
