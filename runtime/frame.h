// The working memory of one call of a specialised plan; kept and used again.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/context.h"
#include "runtime/replay.h"
#include "runtime/specialize.h"

namespace croton {

struct Frame {
  Frame(const BoundPlan& bound, std::shared_ptr<Specialised> specialised);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  /// Fills in addresses and takes memory for results and temporaries.
  void prepare(std::span<const Array> arguments);
  /// Runs all steps; throws the first thing that went wrong once nothing runs any more.
  void execute(std::mutex& post_mutex);
  /// The value that leaves the call.
  Array value(const Leaving& leaving, std::span<const Array> arguments) const;
  /// The next call's `result` should lie where `old` is, an array that goes: values that calls swap
  /// then alternate between two places, and recordings of the two are all that is needed.
  void want_again(const Place& result, const Array& old);
  /// Gives up what belongs to one call; keeps the rest.
  void clear() noexcept;

  const BoundPlan& bound;
  std::shared_ptr<Specialised> keep;  ///< while a call holds the frame
  const Specialised& plan;
  std::vector<BlockRef> results;
  std::vector<Array> updated;    ///< new values, then old ones
  std::vector<Array> converted;  ///< arguments that had to be copied

 private:
  class Segment;

  void take_memory(std::span<const Array> arguments);
  std::string largest_memory() const;
  void take_arenas();
  void find_replays();
  void run_step(std::size_t step, Queue& queue);
  void copy_step(const SpecialisedStep& step, Queue& queue);
  void copy_pair(const Step& copy, void* const* operands, std::size_t bytes, Queue& queue,
                 bool on_link);
  void send_message(const SpecialisedStep& step, Queue& queue);
  void run_replay(Replay& replay, Queue& queue);
  void await_inputs(const SpecialisedStep& step, const Device& device, Queue& queue);
  void begin_errors(std::int32_t context, Queue& queue);
  void finish_context(std::int32_t context, Queue& queue);
  void run_on_caller();
  void run_queue_on_caller(std::int32_t context);
  void run_on_workers(std::mutex& post_mutex);
  void run_segment(std::int32_t context);
  void run_link(std::int32_t context);
  template <class Work>
  void guarded(const Work& work) noexcept;
  std::int32_t start_of(std::int32_t context) const;
  void signal(std::int32_t point, Queue& queue) noexcept;
  void set_signal(std::int32_t point) noexcept;
  void await(std::int32_t point) const;
  void wait_for_links(std::int32_t context, Queue& queue);
  void fail() noexcept;
  void release_waiters(std::int32_t context, bool link) noexcept;
  void leave() noexcept;
  void check_errors();
  [[noreturn]] void throw_check(std::int32_t group) const;

  std::vector<void*> table_;
  std::vector<const void*> wanted_;  ///< by result: where it should lie, if that place is free
  std::vector<Launch> launches_;
  std::vector<BlockRef> arenas_;      ///< by context
  std::vector<std::byte*> arena_at_;  ///< what the table was filled in for
  std::vector<std::int64_t> errors_;  ///< three words a group
  std::vector<BlockRef>
      device_errors_;  ///< by context with checks, where the host's cannot be used
  std::vector<std::vector<std::int64_t>> fetched_errors_;  ///< by context, what those held
  std::vector<Replay> replays_;
  std::vector<std::int32_t> replay_of_;  ///< by step: the replay that it begins, -1; -2 inside one
  /// By step of the plan, and behind them by context: its start.
  std::unique_ptr<std::atomic<std::uint32_t>[]> signals_;
  std::vector<std::unique_ptr<Event>> events_;  ///< likewise
  std::vector<std::unique_ptr<Segment>> segments_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;          ///< of the two below
  std::int32_t running_ = 0;  ///< segments
  std::exception_ptr failure_;
  std::condition_variable ended_;
};

}  // namespace croton
