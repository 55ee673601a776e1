#include "runtime/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include "croton/error.h"
#include "runtime/array_access.h"
#include "runtime/bytes_text.h"
#include "runtime/per_thread.h"
#include "runtime/plan_check.h"
#include "runtime/shared_state.h"

namespace croton {
namespace {

/// Arenas up to this size stay with their frame; larger ones go back to the pool after each call.
constexpr std::int64_t kKeptArena = 256 << 10;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

/// The steps of one context for its worker, or the messages that leave it for that of its link.
class Frame::Segment final : public Job {
 public:
  Segment(Frame& frame, std::int32_t context, Link* link)
      : frame_(frame), context_(context), link_(link) {}
  void post() {
    if (link_ != nullptr) {
      link_->worker().post(this);
    } else {
      frame_.bound.contexts[at(context_)]->post(this);
    }
  }
  void give_up() noexcept {
    frame_.release_waiters(context_, link_ != nullptr);
    frame_.leave();
  }
  void run() noexcept override {
    try {
      if (link_ != nullptr) {
        frame_.run_link(context_);
      } else {
        frame_.run_segment(context_);
      }
    } catch (...) {
      frame_.fail();
      frame_.release_waiters(context_, link_ != nullptr);
    }
    frame_.leave();
  }

 private:
  Frame& frame_;
  const std::int32_t context_;
  Link* const link_;
};

Frame::Frame(const BoundPlan& the_bound, std::shared_ptr<Specialised> specialised)
    : bound(the_bound), keep(std::move(specialised)), plan(*keep) {
  results.resize(plan.results.size());
  wanted_.resize(plan.results.size());
  updated.resize(plan.updates.size());
  table_ = plan.table;
  arenas_.resize(bound.contexts.size());
  arena_at_.resize(bound.contexts.size());
  errors_.resize(3 * at(plan.error_groups));
  device_errors_.resize(bound.contexts.size());
  for (const SpecialisedStep& step : plan.steps) {
    Launch launch = step.launch;
    launch.buffers = table_.data() + step.arguments;
    launch.error = errors_.data() + 3 * step.error;
    launches_.push_back(launch);
  }
  if (!plan.on_caller) {
    const std::size_t points = bound.plan.steps.size() + bound.contexts.size();
    signals_ = std::make_unique<std::atomic<std::uint32_t>[]>(points);
    events_.resize(points);
    for (const std::int32_t c : plan.active) {
      segments_.push_back(std::make_unique<Segment>(*this, c, nullptr));
    }
    for (std::size_t c = 0; c < plan.links.size(); ++c) {
      if (plan.links[c].link == nullptr) continue;
      segments_.push_back(
          std::make_unique<Segment>(*this, static_cast<std::int32_t>(c), plan.links[c].link));
    }
  }
  fetched_errors_.resize(bound.contexts.size());
  for (const std::int32_t c : plan.active) {
    Context& context = *bound.contexts[at(c)];
    if (context.device().host_memory() || !plan.has_checks[at(c)]) continue;
    device_errors_[at(c)] = context.pool().allocate(errors_.size() * sizeof(std::int64_t));
    fetched_errors_[at(c)].resize(errors_.size());
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      if (plan.steps[i].context != c) continue;
      launches_[i].error =
          reinterpret_cast<std::int64_t*>(device_errors_[at(c)]->data) + 3 * plan.steps[i].error;
    }
  }
  find_replays();
}

Frame::~Frame() = default;

void Frame::take_arenas() {
  // All of them first: a context without memory leaves the table and what it was filled in for as
  // they were.
  for (std::size_t c = 0; c < arenas_.size(); ++c) {
    if (plan.arena_bytes[c] == 0 || arenas_[c]) continue;
    arenas_[c] = bound.contexts[c]->pool().allocate(static_cast<std::size_t>(plan.arena_bytes[c]));
  }
  bool moved = false;
  for (std::size_t c = 0; c < arenas_.size(); ++c) {
    if (!arenas_[c]) continue;
    moved |= arenas_[c]->data != arena_at_[c];
    arena_at_[c] = arenas_[c]->data;
    if (plan.pretends) {
      std::memset(arenas_[c]->data, 0, static_cast<std::size_t>(plan.arena_bytes[c]));
    }
  }
  if (!moved) return;
  for (const Patch& p : plan.arena_patches) {
    table_[at(p.position)] = arena_at_[at(p.place.index)] + p.place.offset;
  }
}

void Frame::prepare(std::span<const Array> arguments) {
  try {
    take_memory(arguments);
  } catch (const OutOfMemory& e) {
    throw OutOfMemory(
        fmt::format("{}\n  [{}] of this call: {}", e.what(), bound.title, largest_memory()));
  }
}

/// What of the memory that a call works with is largest, by name.
std::string Frame::largest_memory() const {
  std::vector<std::pair<std::int64_t, std::string>> all;
  for (const auto& state : bound.plan.shareds) {
    const auto add = [&](const Context& context, const Array& value) {
      if (!value.has_value()) return;
      all.emplace_back(static_cast<std::int64_t>(value.nbytes()),
                       fmt::format("{} on {}", state->title(), context.name()));
    };
    add(*state->home, state->value);
    for (const SharedCopy& copy : state->others) add(*copy.context, copy.value);
  }
  for (std::size_t c = 0; c < arenas_.size(); ++c) {
    all.emplace_back(plan.arena_bytes[c],
                     fmt::format("temporaries on {}", bound.contexts[c]->name()));
  }
  for (const ResultBlock& result : plan.results) {
    all.emplace_back(static_cast<std::int64_t>(result.bytes),
                     fmt::format("a result on {}", bound.contexts[at(result.context)]->name()));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 5); ++i) {
    text += fmt::format("{}{} for {}", i == 0 ? "" : ", ", bytes_text(all[i].first), all[i].second);
  }
  return text;
}

void Frame::take_memory(std::span<const Array> arguments) {
  for (std::size_t r = 0; r < results.size(); ++r) {
    const ResultBlock& wanted = plan.results[r];
    Pool& pool = bound.contexts[at(wanted.context)]->pool();
    results[r] = pool.allocate(wanted.bytes, wanted_[r]);
    if (!replays_.empty()) wanted_[r] = results[r]->data;
    if (plan.pretends) std::memset(results[r]->data, 0, wanted.bytes);
  }
  if (!plan.arena_patches.empty()) take_arenas();
  for (const Patch& p : plan.patches) {
    void*& address = table_[at(p.position)];
    switch (p.place.source) {
      case Place::Source::argument:
        address = ArrayAccess::impl(arguments[at(p.place.index)])->data;
        break;
      case Place::Source::shared:
        address = ArrayAccess::impl(*bound.shared_values[at(p.place.index)])->data;
        break;
      case Place::Source::result:
        address = results[at(p.place.index)]->data;
        break;
      case Place::Source::constant:
      case Place::Source::arena:
        break;  // filled in already
    }
  }
}

void Frame::want_again(const Place& result, const Array& old) {
  if (replays_.empty() || result.source != Place::Source::result || !old.has_value()) return;
  wanted_[at(result.index)] = ArrayAccess::impl(old)->data;
}

void Frame::run_step(std::size_t index, Queue& queue) {
  const SpecialisedStep& step = plan.steps[index];
  void* const* operands = table_.data() + step.arguments;
  switch (step.kind) {
    case Step::Kind::launch:
      if (step.launch.blocks > 0) queue.launch(launches_[index]);
      break;
    case Step::Kind::library:
      queue.call(*step.call, operands, step.workspace < 0 ? nullptr : table_[at(step.workspace)]);
      break;
    case Step::Kind::copy:
      if (step.bytes != 0) copy_step(step, queue);
      break;
  }
}

void Frame::copy_step(const SpecialisedStep& step, Queue& queue) {
  const Step& copy = bound.plan.steps[at(step.index)];
  copy_pair(copy, table_.data() + step.arguments, static_cast<std::size_t>(step.bytes), queue,
            false);
}

void Frame::copy_pair(const Step& copy, void* const* operands, std::size_t bytes, Queue& queue,
                      bool on_link) {
  const auto context_of = [&](std::int32_t slot) -> Context& {
    return *bound.contexts[at(bound.plan.slots[at(slot)].context)];
  };
  Context& target = context_of(copy.slots[0]);
  if (target.device().host_memory()) {
    queue.copy_to_host(operands[0], operands[1], bytes);
  } else if (context_of(copy.slots[1]).device().host_memory()) {
    // The source is the host, whose queue cannot reach the target's memory.
    target.queue().upload(operands[0], operands[1], bytes);
  } else if (on_link) {
    queue.send(target.queue(), operands[0], operands[1], bytes);
  } else {
    queue.copy_to(target.queue(), operands[0], operands[1], bytes);
  }
}

/// A slow link holds up its own worker: one message after the other, and no core is used.
void Frame::send_message(const SpecialisedStep& step, Queue& queue) {
  const bool slow = bound.links.slow();
  if (slow) {
    for (const std::int32_t w : step.waits) {
      if (events_[at(w)]) events_[at(w)]->wait_on_host();
    }
  }
  const auto arrival = std::chrono::steady_clock::now() + bound.links.time(step.bytes);
  void* const* operands = table_.data() + step.arguments;
  for (const std::int32_t m : step.message) {
    const Step& copy = bound.plan.steps[at(m)];
    copy_pair(copy, operands, plan.slot_bytes[at(copy.slots[0])], queue, true);
    operands += copy.slots.size();
  }
  if (!slow) return;
  queue.synchronize();
  std::this_thread::sleep_until(arrival);
}

/// Groups launches and library calls of a context that nothing comes between.
void Frame::find_replays() {
  replay_of_.assign(plan.steps.size(), -1);
  if (!bound.replays) return;
  for (const std::int32_t c : plan.active) {
    if (!bound.contexts[at(c)]->queue().captures()) continue;
    std::vector<std::int32_t> steps;
    const auto close = [&] {
      if (steps.size() > 1) {
        for (const std::int32_t s : steps) replay_of_[at(s)] = -2;
        replay_of_[at(steps.front())] = static_cast<std::int32_t>(replays_.size());
        replays_.emplace_back(std::move(steps));
      }
      steps.clear();
    };
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const SpecialisedStep& step = plan.steps[i];
      if (step.context != c || step.on_link()) continue;
      if (!step.waits.empty()) close();
      if (step.kind == Step::Kind::copy) {
        close();
        continue;
      }
      steps.push_back(static_cast<std::int32_t>(i));
      if (step.signals) close();
    }
    close();
  }
}

void Frame::run_replay(Replay& replay, Queue& queue) {
  // Contexts run side by side, each with replays of its own.
  auto& memory = per_thread<std::vector<void*>, struct ReplayedMemory>();
  memory.clear();
  for (const std::int32_t s : replay.steps()) {
    const SpecialisedStep& step = plan.steps[at(s)];
    const std::size_t slots = bound.plan.steps[at(step.index)].slots.size();
    void* const* operands = table_.data() + step.arguments;
    memory.insert(memory.end(), operands, operands + slots);
    if (step.workspace >= 0) memory.push_back(table_[at(step.workspace)]);
  }
  const auto launch = [&] {
    for (const std::int32_t s : replay.steps()) run_step(at(s), queue);
  };
  // By reference: its captures would not fit into the std::function without asking for memory.
  const bool replayed = replay.run(queue, memory, std::ref(launch));
  if (replayed) bound.replayed.fetch_add(1, std::memory_order_relaxed);
}

void Frame::begin_errors(std::int32_t context, Queue& queue) {
  const BlockRef& block = device_errors_[at(context)];
  if (block) queue.zero(block->data, errors_.size() * sizeof(std::int64_t));
}

/// The end of a context's steps: its error words and copies to the host arrive with one wait. What
/// leaves nothing on the host is not waited for.
void Frame::finish_context(std::int32_t context, Queue& queue) {
  const BlockRef& block = device_errors_[at(context)];
  if (block) {
    queue.copy_to_host(fetched_errors_[at(context)].data(), block->data,
                       errors_.size() * sizeof(std::int64_t));
  }
  if (plan.awaited[at(context)]) queue.synchronize();
}

void Frame::run_queue_on_caller(std::int32_t c) {
  Context& context = *bound.contexts[at(c)];
  const std::lock_guard hold(context.queue_mutex());
  Queue& queue = context.queue();
  const QueueUse use(queue, bound.title.c_str());
  try {
    begin_errors(c, queue);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const std::int32_t replay = replay_of_[i];
      if (replay >= 0) {
        run_replay(replays_[at(replay)], queue);
      } else if (replay == -1) {
        run_step(i, queue);
      }
    }
    finish_context(c, queue);
  } catch (...) {
    queue.drain();
    throw;
  }
}

void Frame::run_on_caller() {
  if (plan.steps.empty()) return;
  Context& first = *bound.contexts[at(plan.active.front())];
  if (!first.device().immediate()) return run_queue_on_caller(plan.active.front());
  if (plan.uses_threads) first.queue().begin();
  try {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      run_step(i, bound.contexts[at(plan.steps[i].context)]->queue());
    }
  } catch (...) {
    if (plan.uses_threads) first.queue().end();
    throw;
  }
  if (plan.uses_threads) first.queue().end();
}

void Frame::await(std::int32_t point) const {
  const std::atomic<std::uint32_t>& signal = signals_[at(point)];
  while (signal.load(std::memory_order_acquire) == 0) signal.wait(0, std::memory_order_acquire);
}

/// Whoever waits for steps of a context that will not run must go on and find out.
void Frame::release_waiters(std::int32_t context, bool link) noexcept {
  if (!link) set_signal(start_of(context));
  for (const SpecialisedStep& step : plan.steps) {
    if (step.context == context && step.on_link() == link && step.signals) set_signal(step.index);
  }
}

std::int32_t Frame::start_of(std::int32_t context) const {
  return static_cast<std::int32_t>(bound.plan.steps.size()) + context;
}

void Frame::set_signal(std::int32_t point) noexcept {
  signals_[at(point)].store(1, std::memory_order_release);
  signals_[at(point)].notify_all();
}

/// After a failure nothing more runs, but who waits must hear.
template <class Work>
void Frame::guarded(const Work& work) noexcept {
  if (failed_.load(std::memory_order_acquire)) return;
  try {
    work();
  } catch (...) {
    fail();
  }
}

void Frame::signal(std::int32_t point, Queue& queue) noexcept {
  events_[at(point)].reset();
  guarded([&] { events_[at(point)] = queue.record(); });
  set_signal(point);
}

void Frame::leave() noexcept {
  // The last touch: once the lock is free again the frame may belong to another call.
  const std::lock_guard hold(mutex_);
  if (--running_ == 0) ended_.notify_one();
}

void Frame::fail() noexcept {
  const std::lock_guard hold(mutex_);
  if (!failure_) failure_ = std::current_exception();
  failed_.store(true, std::memory_order_release);
}

void Frame::run_segment(std::int32_t c) {
  Context& context = *bound.contexts[at(c)];
  Queue& queue = context.queue();
  std::unique_lock<std::mutex> hold(context.queue_mutex(), std::defer_lock);
  if (!context.device().immediate()) hold.lock();
  const QueueUse use(queue, bound.title.c_str());
  if (!plan.links.empty()) signal(start_of(c), queue);
  guarded([&] { begin_errors(c, queue); });
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const SpecialisedStep& step = plan.steps[i];
    if (step.context != c || step.on_link()) continue;
    for (const std::int32_t w : step.waits) await(w);
    guarded([&] {
      await_inputs(step, context.device(), queue);
      const std::int32_t replay = replay_of_[i];
      if (replay >= 0) {
        run_replay(replays_[at(replay)], queue);
      } else if (replay == -1) {
        run_step(i, queue);
      }
    });
    if (step.signals) signal(step.index, queue);
  }
  wait_for_links(c, queue);
  guarded([&] { finish_context(c, queue); });
  if (failed_.load(std::memory_order_acquire)) queue.drain();
}

/// Work of later calls goes on behind messages that still use memory of the context.
void Frame::wait_for_links(std::int32_t c, Queue& queue) {
  for (const UsedLink& used : plan.links) {
    const auto& ordered = used.ordered;
    if (std::find(ordered.begin(), ordered.end(), c) == ordered.end()) continue;
    await(used.last);
    guarded([&] {
      if (events_[at(used.last)]) queue.wait(*events_[at(used.last)]);
    });
  }
}

void Frame::run_link(std::int32_t c) {
  const UsedLink& used = plan.links[at(c)];
  Queue& queue = used.link->queue();
  std::unique_lock<std::mutex> hold(used.link->queue_mutex(), std::defer_lock);
  std::optional<QueueUse> use;
  // Copies between memory of the host take no part in sharing its cores.
  if (!used.link->device().immediate()) {
    hold.lock();
    use.emplace(queue, bound.title.c_str());
  }
  for (const std::int32_t other : used.ordered) {
    await(start_of(other));
    guarded([&] {
      if (events_[at(start_of(other))]) queue.wait(*events_[at(start_of(other))]);
    });
  }
  for (const SpecialisedStep& step : plan.steps) {
    if (step.context != c || !step.on_link()) continue;
    for (const std::int32_t w : step.waits) await(w);
    guarded([&] {
      await_inputs(step, used.link->device(), queue);
      send_message(step, queue);
    });
    if (step.signals) signal(step.index, queue);
  }
  if (failed_.load(std::memory_order_acquire)) queue.drain();
}

/// Streams wait among themselves, a worker for another backend's event on the host.
void Frame::await_inputs(const SpecialisedStep& step, const Device& device, Queue& queue) {
  for (const std::int32_t w : step.waits) {
    const std::unique_ptr<Event>& event = events_[at(w)];
    if (!event) continue;
    const Device& other = bound.contexts[at(bound.plan.steps[at(w)].context)]->device();
    if (other.target().backend == device.target().backend) {
      queue.wait(*event);
    } else {
      event->wait_on_host();
    }
  }
}

void Frame::run_on_workers(std::mutex& post_mutex) {
  for (std::size_t s = 0; s < events_.size(); ++s) {
    signals_[s].store(0, std::memory_order_relaxed);
  }
  failed_.store(false, std::memory_order_relaxed);
  failure_ = nullptr;
  running_ = static_cast<std::int32_t>(segments_.size());
  {
    // All workers must see the calls in one order, or two calls could wait for each other.
    const std::lock_guard hold(post_mutex);
    std::size_t posted = 0;
    try {
      for (; posted < segments_.size(); ++posted) segments_[posted]->post();
    } catch (...) {  // no thread for a worker
      fail();
      for (; posted < segments_.size(); ++posted) segments_[posted]->give_up();
    }
  }
  {
    std::unique_lock hold(mutex_);
    ended_.wait(hold, [&] { return running_ == 0; });
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Frame::check_errors() {
  for (const std::int32_t c : plan.active) {
    const std::vector<std::int64_t>& fetched = fetched_errors_[at(c)];
    for (std::size_t i = 0; i < fetched.size(); ++i) {
      if (errors_[i] == 0) errors_[i] = fetched[i];
    }
  }
  for (std::int32_t g = 0; g < plan.error_groups; ++g) {
    if (errors_[3 * at(g)] != 0) throw_check(g);
  }
}

void Frame::throw_check(std::int32_t group) const {
  const std::int64_t* words = errors_.data() + 3 * at(group);
  if (words[0] < 0) {
    throw OutOfMemory(
        fmt::format("[{}] the host has no memory for the scratch space of a kernel", bound.title));
  }
  const Step& step = bound.plan.steps[at(plan.checked_steps[at(group)])];
  const auto& messages =
      step.checks.empty() ? bound.plan.kernels[at(step.kernel)].checks : step.checks;
  internal_check(static_cast<std::size_t>(words[0]) <= messages.size(), "an unknown check failed");
  std::string message =
      filled(filled(messages[static_cast<std::size_t>(words[0] - 1)], "value", words[1]), "bound",
             words[2]);
  if (!message.starts_with('[')) {
    message = fmt::format("[{}] {}", step.label.empty() ? bound.title : step.label, message);
  }
  throw CallError(message);
}

void Frame::execute(std::mutex& post_mutex) {
  std::memset(errors_.data(), 0, errors_.size() * sizeof(std::int64_t));
  if (plan.on_caller) {
    run_on_caller();
  } else {
    run_on_workers(post_mutex);
  }
  check_errors();
}

Array Frame::value(const Leaving& leaving, std::span<const Array> arguments) const {
  const auto wrap_like = [&](const Array& source) {
    const ArrayImpl& impl = *ArrayAccess::impl(source);
    if (impl.home == leaving.home && impl.shape == leaving.shape) return source;
    return ArrayAccess::wrap(leaving.dtype, leaving.shape, impl.block, impl.data, leaving.home);
  };
  switch (leaving.place.source) {
    case Place::Source::result:
      return ArrayAccess::wrap(leaving.dtype, leaving.shape, results[at(leaving.place.index)],
                               nullptr, leaving.home);
    case Place::Source::argument:
      return wrap_like(arguments[at(leaving.place.index)]);
    case Place::Source::shared:
      return wrap_like(*bound.shared_values[at(leaving.place.index)]);
    case Place::Source::constant:
      return wrap_like(bound.plan.constants[at(leaving.place.index)]);
    case Place::Source::arena:
      break;
  }
  throw InternalError("internal error: a temporary cannot leave a call");
}

void Frame::clear() noexcept {
  for (BlockRef& block : results) block.reset();
  for (Array& array : updated) array = Array();
  converted.clear();
  for (std::size_t c = 0; c < arenas_.size(); ++c) {
    if (arenas_[c] && plan.arena_bytes[c] > kKeptArena) arenas_[c].reset();
  }
}

}  // namespace croton
