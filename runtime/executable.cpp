#include "runtime/executable.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "croton/error.h"
#include "runtime/arguments.h"
#include "runtime/array_access.h"
#include "runtime/bind_plan.h"
#include "runtime/frame.h"
#include "runtime/per_thread.h"
#include "runtime/runtime.h"
#include "runtime/shared_locks.h"

namespace croton {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

/// After an update: what other places hold is the old value.
void keep_only(SharedState& state, const std::vector<const Array*>& targets) noexcept {
  const auto check = [&](Array& place) {
    if (std::find(targets.begin(), targets.end(), &place) == targets.end()) place = Array();
  };
  check(state.value);
  for (SharedCopy& copy : state.others) check(copy.value);
}

}  // namespace

struct Executable::Impl final : private ForkAware {
  std::shared_ptr<Runtime> runtime;
  std::unique_ptr<BoundPlan> bound;
  SharedNeeds shareds;
  std::size_t most_specialised = 64;

  /// The frame of the latest call: a call with the same shapes takes it without any lock.
  std::atomic<Frame*> latest{nullptr};
  std::mutex mutex;  ///< of all below
  std::vector<std::shared_ptr<Specialised>> specialised;
  std::shared_ptr<const Specialised> last_made_or_used;
  std::uint64_t clock = 0;
  std::int64_t specialisations = 0;
  std::int64_t frames = 0;
  std::int64_t copied_arguments = 0;
  std::atomic<std::int64_t> calls{0};
  std::atomic<std::int64_t> refreshed{0};

  Impl(std::shared_ptr<Runtime> the_runtime, Plan plan, const Config& config);
  ~Impl();

  void run(std::span<const Array> arguments, std::span<Array> results, SharedLocks* locks);
  bool matches(const Frame& frame, std::span<const Array> arguments) const;
  Frame* take_frame(std::span<const Array> arguments);
  void give_back(Frame* frame) noexcept;
  void put_idle(Frame* frame) noexcept;
  std::shared_ptr<Specialised> specialise(const std::vector<std::int64_t>& key);
  void check_lost() const;
  void update(Frame& frame, std::span<const Array> arguments);

  void before_fork() noexcept override { mutex.lock(); }
  void after_fork(bool) noexcept override { mutex.unlock(); }
};

Executable::Impl::Impl(std::shared_ptr<Runtime> the_runtime, Plan plan, const Config& config)
    : ForkAware(ForkLevel::executable),
      runtime(std::move(the_runtime)),
      bound(bind_plan(*runtime, std::move(plan), config)),
      most_specialised(static_cast<std::size_t>(config.plan_cache_size())) {
  shareds = needs_of(*bound);
  internal_check(shareds.locked.size() == bound->plan.shareds.size(),
                 "a shared variable twice in a plan");
}

Executable::Impl::~Impl() {
  if (Frame* frame = latest.exchange(nullptr, std::memory_order_acquire)) put_idle(frame);
}

bool Executable::Impl::matches(const Frame& frame, std::span<const Array> arguments) const {
  const Specialised& s = frame.plan;
  if (arguments.size() != s.arguments.size() || !bound->plan.seconds.empty()) return false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!fits(arguments[i], s.arguments[i])) return false;
  }
  for (std::size_t k = 0; k < s.shareds.size(); ++k) {
    if (!fits(bound->plan.shareds[at(bound->keyed_shareds[k])]->any(), s.shareds[k])) return false;
  }
  return true;
}

void Executable::Impl::put_idle(Frame* frame) noexcept {
  // May be the last that kept the specialised plan, which owns its idle frames.
  std::shared_ptr<Specialised> keep = std::move(frame->keep);
  const std::lock_guard hold(mutex);
  keep->last_used = ++clock;
  keep->idle.emplace_back(frame);
}

void Executable::Impl::give_back(Frame* frame) noexcept {
  frame->clear();
  Frame* expected = nullptr;
  if (!latest.compare_exchange_strong(expected, frame, std::memory_order_release,
                                      std::memory_order_relaxed)) {
    put_idle(frame);
  }
}

std::shared_ptr<Specialised> Executable::Impl::specialise(const std::vector<std::int64_t>& key) {
  for (const auto& s : specialised) {
    if (s->key == key) {
      s->last_used = ++clock;
      return s;
    }
  }
  auto made = std::make_shared<Specialised>(*bound, key);
  ++specialisations;
  if (specialised.size() >= most_specialised) {
    specialised.erase(
        std::min_element(specialised.begin(), specialised.end(),
                         [](const auto& a, const auto& b) { return a->last_used < b->last_used; }));
  }
  made->last_used = ++clock;
  specialised.push_back(made);
  return made;
}

/// A frame for shapes other than those of the latest call, or for a second thread.
Frame* Executable::Impl::take_frame(std::span<const Array> arguments) {
  // Keeps its memory from call to call.
  auto& key = per_thread<std::vector<std::int64_t>, struct PlanKey>();
  plan_key(*bound, arguments, key);
  const std::lock_guard hold(mutex);
  const std::shared_ptr<Specialised> s = specialise(key);
  last_made_or_used = s;
  if (!s->idle.empty()) {
    Frame* frame = s->idle.back().release();
    s->idle.pop_back();
    frame->keep = s;
    return frame;
  }
  ++frames;
  s->idle.reserve(static_cast<std::size_t>(frames));
  return new Frame(*bound, s);
}

void Executable::Impl::check_lost() const {
  for (const Locked& s : shareds.locked) {
    const SharedState& state = *s.state;
    if (state.value.has_value() && state.lost.empty() && !state.home->device().failed()) continue;
    const std::string why = state.why_lost();
    if (why.empty()) continue;
    throw DeviceError("[" + bound->title + "] the value of " + state.title() + " was lost: " + why +
                      "; give it a new one with set_value");
  }
}

void Executable::Impl::update(Frame& frame, std::span<const Array> arguments) {
  const auto& updates = bound->plan.updates;
  for (std::size_t u = 0; u < updates.size(); ++u) {
    const Leaving& leaving = frame.plan.updates[u];
    frame.updated[u] = frame.value(leaving, arguments);
    if (leaving.place.source == Place::Source::argument) {
      // The caller may have borrowed that memory from somebody.
      Context& home = *bound->updated[u].context;
      const Array& from = frame.updated[u];
      BlockRef block = home.pool().allocate(from.nbytes());
      {
        const std::lock_guard hold(home.queue_mutex());
        const QueueUse use(home.queue());
        home.queue().copy(block->data, from.raw_data(), from.nbytes());
        home.queue().synchronize();
      }
      frame.updated[u] =
          ArrayAccess::wrap(leaving.dtype, leaving.shape, std::move(block), nullptr, leaving.home);
    }
  }
  // Nothing below can fail.
  for (std::size_t u = 0; u < updates.size(); ++u) {
    std::swap(*bound->updated[u].value, frame.updated[u]);
    frame.want_again(frame.plan.updates[u].place, frame.updated[u]);
  }
  for (const UpdatedState& s : bound->updated_states) {
    if (!s.state->others.empty()) keep_only(*s.state, s.targets);
  }
}

void Executable::Impl::run(std::span<const Array> arguments, std::span<Array> results,
                           SharedLocks* locks) {
  internal_check(results.size() == bound->plan.outputs.size(),
                 "as many results as a plan has outputs");
  if (!shareds.locked.empty()) check_lost();
  struct Guard {
    Impl& impl;
    std::vector<Array>& placed;
    Frame* frame;
    ~Guard() {
      placed.clear();
      if (frame != nullptr) impl.give_back(frame);
    }
  };
  // Likewise; empty between calls.
  auto& placed = per_thread<std::vector<Array>, struct PlacedArguments>();
  Guard guard{*this, placed, latest.exchange(nullptr, std::memory_order_acquire)};
  Frame*& frame = guard.frame;
  if (frame == nullptr || !matches(*frame, arguments)) {
    if (frame != nullptr) put_idle(std::exchange(frame, nullptr));
    check_arguments(*bound, arguments);
    int copied = 0;
    placed_arguments(*bound, arguments, copied, placed);
    frame = take_frame(placed);
    arguments = placed;
    if (copied > 0) {
      const std::lock_guard hold(mutex);
      copied_arguments += copied;
    }
  }
  frame->prepare(arguments);
  frame->execute(runtime->post_mutex_);
  for (std::size_t o = 0; o < results.size(); ++o) {
    results[o] = frame->value(frame->plan.outputs[o], arguments);
  }
  if (!bound->plan.updates.empty()) update(*frame, arguments);
  calls.fetch_add(1, std::memory_order_relaxed);
  if (locks != nullptr) locks->release();
}

Executable::Executable(std::shared_ptr<Runtime> runtime, Plan plan, const Config& config)
    : impl_(std::make_unique<Impl>(std::move(runtime), std::move(plan), config)) {}

Executable::~Executable() = default;

const Plan& Executable::plan() const { return impl_->bound->plan; }
const SharedNeeds& Executable::shareds() const { return impl_->shareds; }

void Executable::run(std::span<const Array> arguments, std::span<Array> results) const {
  SharedLocks locks(impl_->shareds, impl_->refreshed);
  impl_->run(arguments, results, &locks);
}

void Executable::run_locked(std::span<const Array> arguments, std::span<Array> results) const {
  impl_->run(arguments, results, nullptr);
}

PlanStatistics Executable::statistics() const {
  const std::lock_guard hold(impl_->mutex);
  PlanStatistics s;
  if (impl_->last_made_or_used) s = impl_->last_made_or_used->statistics;
  s.calls = impl_->calls.load(std::memory_order_relaxed);
  s.modules_compiled = impl_->bound->compilers.modules.load(std::memory_order_relaxed);
  s.compile_ms =
      static_cast<double>(impl_->bound->compilers.nanoseconds.load(std::memory_order_relaxed)) /
      1e6;
  s.replays = impl_->bound->replayed.load(std::memory_order_relaxed);
  s.specialisations = impl_->specialisations;
  s.specialised = static_cast<std::int64_t>(impl_->specialised.size());
  s.frames = impl_->frames;
  s.refreshed_shareds = impl_->refreshed.load(std::memory_order_relaxed);
  s.copied_arguments = impl_->copied_arguments;
  return s;
}

std::string Executable::to_text() const {
  const std::lock_guard hold(impl_->mutex);
  return impl_->last_made_or_used ? impl_->last_made_or_used->to_text(*impl_->bound)
                                  : std::string();
}

}  // namespace croton
