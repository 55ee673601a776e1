// Shuffles, votes and other operations in which the lanes of a mask meet.
#include <algorithm>

#include "tests/cuda_emulator/block.h"
#include "tests/cuda_emulator/report.h"
#include "tests/cuda_emulator/settings.h"

namespace emulator {
namespace {
bool has(std::uint32_t mask, std::uint32_t lane) { return mask >> lane & 1; }
}  // namespace

std::uint32_t Machine::lanes_alive(std::uint32_t warp) const {
  std::uint32_t lanes = 0;
  const std::uint32_t in_warp = std::min(count_ - warp * 32, 32u);
  for (std::uint32_t lane = 0; lane < in_warp; ++lane) {
    if (threads_[warp * 32 + lane].state != State::done) lanes |= 1u << lane;
  }
  return lanes;
}

std::uint64_t Machine::warp(WarpOp op, std::uint32_t mask, std::uint64_t value,
                            std::uint32_t argument, std::uint32_t width, const void* pc) {
  const std::uint32_t warp = current_ / 32, lane = current_ % 32;
  if (op == WarpOp::active) return lanes_alive(warp);
  if (!has(mask, lane)) {
    abandon(719, format("warp divergence: lane %u is not in its own mask %#x", lane, mask), pc);
  }
  if (width == 0 || width > 32 || (width & (width - 1))) {
    abandon(719, format("a shuffle of width %u, which is no power of two up to 32", width), pc);
  }
  const std::uint32_t in_warp = std::min(count_ - warp * 32, 32u);
  for (std::uint32_t i = 0; i < in_warp; ++i) {
    const Thread& other = threads_[warp * 32 + i];
    if (other.state != State::warp || !(other.mask & mask)) continue;
    const bool each_other = has(mask, i) && has(other.mask, lane);
    if (!each_other) continue;
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
  meet(warp, lane);
  if (me.state != State::running) suspend();
  return threads_[current_].result;
}

// Lets the lanes go on that wait for no other. Lanes that have returned are not waited for.
bool Machine::meet(std::uint32_t warp, std::uint32_t lane) {
  const std::uint32_t alive = lanes_alive(warp);
  const std::uint32_t in_warp = std::min(count_ - warp * 32, 32u);
  bool met = false;
  for (std::uint32_t first = 0; first < in_warp; ++first) {
    const Thread& leader = threads_[warp * 32 + first];
    if (leader.state != State::warp) continue;
    const std::uint32_t lanes = leader.mask & alive;
    bool complete = true;
    for (std::uint32_t i = 0; i < in_warp && complete; ++i) {
      const Thread& t = threads_[warp * 32 + i];
      complete = !has(lanes, i) || (t.state == State::warp && t.mask == leader.mask);
    }
    if (!complete) continue;
    compute(warp, lanes);
    for (std::uint32_t i = 0; i < in_warp; ++i) {
      const std::uint32_t at = settings().descending ? in_warp - 1 - i : i;
      Thread& t = threads_[warp * 32 + at];
      if (!has(lanes, at)) continue;
      ++t.fiber->context->epoch;
      t.state = at == lane ? State::running : State::ready;
      if (at != lane) ready_.push_back(warp * 32 + at);
    }
    met = true;
  }
  return met;
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
