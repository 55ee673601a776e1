// Shuffles, votes and other operations in which the lanes of a mask meet.
#include <algorithm>
#include <bit>

#include "tests/cuda_emulator/block.h"
#include "tests/cuda_emulator/report.h"
#include "tests/cuda_emulator/settings.h"

namespace emulator {
namespace {
constexpr std::uint32_t kNoLane = 32;

bool has(std::uint32_t mask, std::uint32_t lane) { return mask >> lane & 1; }
}  // namespace

std::uint64_t Machine::warp(WarpOp op, std::uint32_t mask, std::uint64_t value,
                            std::uint32_t argument, std::uint32_t width, const void* pc) {
  const std::uint32_t warp = current_ / 32, lane = current_ % 32;
  Warp& lanes = warps_[warp];
  if (op == WarpOp::active) return lanes.alive;
  if (!has(mask, lane)) {
    abandon(719, format("warp divergence: lane %u is not in its own mask %#x", lane, mask), pc);
  }
  if (width == 0 || width > 32 || (width & (width - 1))) {
    abandon(719, format("a shuffle of width %u, which is no power of two up to 32", width), pc);
  }
  for (std::uint32_t rest = lanes.waiting & mask; rest; rest &= rest - 1) {
    const auto i = static_cast<std::uint32_t>(std::countr_zero(rest));
    const Thread& other = threads_[warp * 32 + i];
    if (!has(other.mask, lane)) continue;
    if (other.mask != mask) {
      abandon(719,
              format("warp divergence: mask %#x, but lane %u waits with mask %#x at %s", mask, i,
                     other.mask, source_line(other.pc).c_str()),
              pc);
    }
    if (other.op != op || (other.pc != pc && source_line(other.pc) != source_line(pc))) {
      abandon(719, format("warp divergence: lane %u waits at %s", i, source_line(other.pc).c_str()),
              pc);
    }
  }
  Thread& me = threads_[current_];
  me.state = State::warp;
  me.pc = pc;
  me.op = op;
  me.mask = mask;
  me.value = value;
  me.argument = argument;
  me.width = width;
  lanes.waiting |= 1u << lane;
  meet(warp, mask, lane);
  if (me.state != State::running) suspend();
  return threads_[current_].result;
}

// Lets the lanes that wait with `mask` go on if all have come. Lanes that have returned are not
// waited for. `running` goes on at once.
void Machine::meet(std::uint32_t warp, std::uint32_t mask, std::uint32_t running) {
  Warp& all = warps_[warp];
  const std::uint32_t lanes = mask & all.alive;
  if (lanes & ~all.waiting) return;
  for (std::uint32_t rest = lanes; rest; rest &= rest - 1) {
    if (threads_[warp * 32 + static_cast<std::uint32_t>(std::countr_zero(rest))].mask != mask) {
      return;
    }
  }
  compute(warp, lanes);
  all.waiting &= ~lanes;
  for (std::uint32_t i = 0; i < 32; ++i) {
    const std::uint32_t at = settings().descending ? 31 - i : i;
    if (!has(lanes, at)) continue;
    Thread& t = threads_[warp * 32 + at];
    ++t.fiber->context->epoch;
    t.state = at == running ? State::running : State::ready;
    if (at != running) ready_.push_back(warp * 32 + at);
  }
}

// A lane has returned: others may have waited for it alone.
void Machine::leave(std::uint32_t warp, std::uint32_t lane) {
  Warp& all = warps_[warp];
  all.alive &= ~(1u << lane);
  for (std::uint32_t first = 0; first < 32 && all.waiting; ++first) {
    if (has(all.waiting, first)) meet(warp, threads_[warp * 32 + first].mask, kNoLane);
  }
}

std::uint64_t Machine::shuffled(std::uint32_t warp, std::uint32_t lane, std::uint32_t lanes) {
  const Thread& t = threads_[warp * 32 + lane];
  const std::uint32_t begin = lane & ~(t.width - 1), end = begin + t.width;
  std::int64_t from = lane;
  switch (t.op) {
    case WarpOp::shuffle_index:
      from = begin + (t.argument & (t.width - 1));
      break;
    case WarpOp::shuffle_up:
      from = static_cast<std::int64_t>(lane) - static_cast<std::int32_t>(t.argument);
      if (from < begin) from = lane;
      break;
    case WarpOp::shuffle_down:
      from = static_cast<std::int64_t>(lane) + static_cast<std::int32_t>(t.argument);
      if (from >= end) from = lane;
      break;
    default:
      from = lane ^ t.argument;
      if (from >= end) from = lane;
  }
  if (from < 0 || from > 31 || !has(lanes, static_cast<std::uint32_t>(from))) {
    abandon(719,
            format("a shuffle: lane %u reads lane %d, which is not in the mask %#x or has "
                   "returned",
                   lane, static_cast<int>(from), t.mask),
            t.pc);
  }
  return threads_[warp * 32 + static_cast<std::uint32_t>(from)].value;
}

std::uint64_t Machine::reduced(std::uint32_t warp, std::uint32_t lanes) const {
  bool first = true;
  std::uint32_t result = 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    if (!has(lanes, lane)) continue;
    const Thread& t = threads_[warp * 32 + lane];
    const auto v = static_cast<std::uint32_t>(t.value);
    const auto smaller = static_cast<std::int32_t>(v) < static_cast<std::int32_t>(result);
    if (first)
      result = v;
    else if (t.op == WarpOp::reduce_add)
      result += v;
    else if (t.op == WarpOp::reduce_min)
      result = std::min(result, v);
    else if (t.op == WarpOp::reduce_max)
      result = std::max(result, v);
    else if (t.op == WarpOp::reduce_min_signed)
      result = smaller ? v : result;
    else if (t.op == WarpOp::reduce_max_signed)
      result = smaller ? result : v;
    else if (t.op == WarpOp::reduce_and)
      result &= v;
    else if (t.op == WarpOp::reduce_or)
      result |= v;
    else
      result ^= v;
    first = false;
  }
  return result;
}

void Machine::compute(std::uint32_t warp, std::uint32_t lanes) {
  std::uint32_t votes = 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    if (has(lanes, lane) && threads_[warp * 32 + lane].value) votes |= 1u << lane;
  }
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    if (!has(lanes, lane)) continue;
    Thread& t = threads_[warp * 32 + lane];
    switch (t.op) {
      case WarpOp::sync:
      case WarpOp::active:
        break;
      case WarpOp::shuffle_index:
      case WarpOp::shuffle_up:
      case WarpOp::shuffle_down:
      case WarpOp::shuffle_xor:
        t.result = shuffled(warp, lane, lanes);
        break;
      case WarpOp::all:
        t.result = votes == lanes;
        break;
      case WarpOp::any:
        t.result = votes != 0;
        break;
      case WarpOp::ballot:
        t.result = votes;
        break;
      case WarpOp::match_any:
      case WarpOp::match_all:
        t.result = 0;
        for (std::uint32_t i = 0; i < 32; ++i) {
          if (has(lanes, i) && threads_[warp * 32 + i].value == t.value) t.result |= 1u << i;
        }
        break;
      default:
        t.result = reduced(warp, lanes);
    }
  }
}

}  // namespace emulator
