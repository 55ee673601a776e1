// Which slots of a plan are one piece of memory, and where it lies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/context.h"
#include "runtime/plan.h"

namespace croton {

/// Where the memory of a slot comes from.
struct Place {
  enum class Source : std::uint8_t { argument, shared, constant, arena, result };
  Source source = Source::arena;
  std::int32_t index = 0;   ///< which argument, constant, result; shared: slot; arena: context
  std::int64_t offset = 0;  ///< bytes, in an arena
};

struct ResultBlock {
  std::int32_t context = 0;
  std::size_t bytes = 0;
};

/// Scratch memory of one step.
struct Workspace {
  std::int32_t step = 0;
  std::int64_t bytes = 0;
  Place place;  ///< filled in
};

/// Views, and copies between contexts that share the host's memory unless they shall be `real`, are
/// the memory of another slot.
/// Temporaries lie in one arena a context, each from its first step to its last; what several
/// contexts touch stays for the whole call, unless steps run `in_order` of the plan.
class SlotMemory {
 public:
  SlotMemory(const Plan& plan, std::span<Context* const> contexts,
             std::span<const std::int64_t> slot_bytes, bool real = false);

  /// The slot whose memory `slot` is.
  std::int32_t root(std::int32_t slot) const { return root_[static_cast<std::size_t>(slot)]; }
  /// Whether a copy step moves nothing because both sides are the same memory.
  bool moves(const Step& copy) const { return root(copy.slots[0]) != root(copy.slots[1]); }
  /// Whether a later step than `step` reads what `slot` holds.
  bool read_after(std::int32_t slot, std::int32_t step) const {
    return last_read_[static_cast<std::size_t>(root(slot))] > step;
  }

  void lay_out(bool in_order, std::vector<Workspace>& workspaces);

  const Place& place(std::int32_t slot) const {
    return place_[static_cast<std::size_t>(root(slot))];
  }
  const std::vector<ResultBlock>& results() const { return results_; }
  const std::vector<std::int64_t>& arena_bytes() const { return arena_bytes_; }

 private:
  struct Life {
    std::int32_t first = -1;
    std::int32_t last = -1;
    bool shared = false;  ///< touched by another context than its own
    bool copied = false;  ///< read or written by a copy between contexts
  };

  SlotKind kind(std::int32_t slot) const {
    return plan_.slots[static_cast<std::size_t>(slot)].kind;
  }
  void find_roots(bool real);
  void find_lives();
  void share_in_place(std::span<std::int32_t> leader);
  bool may_share(const Step& step, std::int32_t index, std::int32_t output, std::int32_t input,
                 std::span<const std::int32_t> leader) const;

  const Plan& plan_;
  const std::span<Context* const> contexts_;
  const std::span<const std::int64_t> bytes_;
  std::vector<std::int32_t> root_;
  std::vector<std::int32_t> last_read_;
  std::vector<Life> life_;
  std::vector<Place> place_;
  std::vector<ResultBlock> results_;
  std::vector<std::int64_t> arena_bytes_;
};

}  // namespace croton
