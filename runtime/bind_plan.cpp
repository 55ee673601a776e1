#include "runtime/bind_plan.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>

#include "croton/error.h"
#include "runtime/array_access.h"
#include "runtime/log.h"
#include "runtime/parallel.h"
#include "runtime/shared_state.h"

namespace croton {
namespace {

/// More would mostly wait for each other in the compilers.
constexpr int kCompileThreads = 8;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

/// Which inputs and shareds decide what the plan looks like, and where inputs are wanted.
void find_keys(BoundPlan& bound) {
  const Plan& plan = bound.plan;
  std::vector<bool> sized(plan.inputs.size() + plan.shareds.size());
  bound.reads_value.assign(sized.size(), false);
  for (const DimTable::Term& t : plan.dims.terms()) {
    if (t.op == DimOp::input_size) sized[at(t.a)] = true;
    if (t.op == DimOp::input_value) bound.reads_value[at(t.a)] = true;
  }
  for (std::size_t s = 0; s < plan.shareds.size(); ++s) {
    const std::size_t i = plan.inputs.size() + s;
    if ((sized[i] && plan.shareds[s]->resizable) || bound.reads_value[i]) {
      bound.keyed_shareds.push_back(static_cast<std::int32_t>(s));
    }
  }
}

/// Says where each input is wanted; memory of the host is one place, whatever contexts are on it.
void place_inputs(BoundPlan& bound) {
  Plan& plan = bound.plan;
  bound.input_context.assign(plan.inputs.size(), -1);
  const auto same_memory = [&](std::int32_t a, std::int32_t b) {
    return a == b || (bound.contexts[at(a)]->device().host_memory() &&
                      bound.contexts[at(b)]->device().host_memory());
  };
  for (Slot& slot : plan.slots) {
    if (slot.kind != SlotKind::input) continue;
    std::int32_t& context = bound.input_context[at(slot.index)];
    if (context < 0) context = slot.context;
    if (same_memory(context, slot.context)) continue;
    auto second = std::find_if(plan.seconds.begin(), plan.seconds.end(), [&](const auto& s) {
      return s.input == slot.index && s.context == slot.context;
    });
    if (second == plan.seconds.end()) {
      second = plan.seconds.insert(second, {slot.index, slot.context});
    }
    slot.index = static_cast<std::int32_t>(plan.inputs.size() +
                                           static_cast<std::size_t>(second - plan.seconds.begin()));
  }
}

/// Says where the values of shared variables are read and put.
void place_shareds(BoundPlan& bound) {
  const Plan& plan = bound.plan;
  for (const Slot& slot : plan.slots) {
    const bool shared = slot.kind == SlotKind::shared;
    bound.shared_values.push_back(
        shared ? plan.shareds[at(slot.index)]->place_on(*bound.contexts[at(slot.context)])
               : nullptr);
  }
  std::vector<std::int32_t> number(plan.shareds.size(), -1);
  for (const PlanUpdate& update : plan.updates) {
    SharedState& state = *plan.shareds[at(update.shared)];
    Context& context = update.context < 0 ? *state.home : *bound.contexts[at(update.context)];
    bound.updated.push_back({&context, state.place_on(context)});
    std::int32_t& n = number[at(update.shared)];
    if (n < 0) {
      n = static_cast<std::int32_t>(bound.updated_states.size());
      bound.updated_states.push_back({&state, {}});
    }
    auto& targets = bound.updated_states[at(n)].targets;
    const bool once =
        std::find(targets.begin(), targets.end(), bound.updated.back().value) == targets.end();
    internal_check(once, "a plan updates a shared variable twice on a context");
    targets.push_back(bound.updated.back().value);
  }
}

/// Constants become contiguous, and get a copy in each device memory where a slot has them.
void place_constants(BoundPlan& bound) {
  Plan& plan = bound.plan;
  for (Array& constant : plan.constants) constant = constant.contiguous();
  for (Slot& slot : plan.slots) {
    if (slot.kind != SlotKind::constant) continue;
    Context& context = *bound.contexts[at(slot.context)];
    if (context.device().host_memory()) continue;
    Array there = context.bring(plan.constants[at(slot.index)]);
    slot.index = static_cast<std::int32_t>(plan.constants.size());
    plan.constants.push_back(std::move(there));
  }
}

void load_module(BoundPlan& bound, std::size_t index) {
  const PlanModule& module = bound.plan.modules[index];
  bound.modules[index] =
      bound.cache->module(bound.contexts[at(module.context)]->device(), module.text, module.kernels,
                          bound.code_key, &bound.compilers);
}

void load_modules(BoundPlan& bound) {
  const Plan& plan = bound.plan;
  std::vector<bool> later(plan.modules.size());
  for (const PlanKernel& kernel : plan.kernels) {
    if (kernel.streaming_module >= 0) later[at(kernel.streaming_module)] = true;
  }
  for (const PlanKernel& kernel : plan.kernels) later[at(kernel.module)] = kernel.rare;
  std::vector<std::size_t> now;
  for (std::size_t m = 0; m < plan.modules.size(); ++m) {
    if (!later[m]) now.push_back(m);
  }
  bound.modules.resize(plan.modules.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&](std::exception_ptr& failure) {
    try {
      for (std::size_t i; (i = next++) < now.size();) load_module(bound, now[i]);
    } catch (...) {
      failure = std::current_exception();
    }
  };
  const std::size_t threads = std::min(
      {now.size(), static_cast<std::size_t>(available_cores()), std::size_t{kCompileThreads}});
  std::vector<std::exception_ptr> failures(std::max<std::size_t>(threads, 1));
  std::vector<std::thread> helpers;
  try {
    for (std::size_t t = 1; t < threads; ++t) helpers.emplace_back(work, std::ref(failures[t]));
  } catch (const std::system_error&) {
    // No more threads to be had: these do it all.
  }
  work(failures[0]);
  for (std::thread& helper : helpers) helper.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

/// Zeros that look like results are worth a word, once.
void warn_of_pretence(const Context& context) {
  static std::atomic<bool> said{false};
  if (!context.device().pretends() || said.exchange(true)) return;
  log_warning("context '" + std::string(context.name()) + "' is on the device " +
              context.device().name() + ", which computes nothing: results there are zeros");
}

}  // namespace

KernelHandle BoundPlan::kernel(std::int32_t kernel) {
  KernelHandle& handle = kernels[at(kernel)];
  if (handle != nullptr) return handle;
  const PlanKernel& k = plan.kernels[at(kernel)];
  const std::size_t m = at(k.module);
  if (!modules[m]) load_module(*this, m);
  handle = modules[m]->kernel(k.name);
  internal_check(handle != nullptr, "a module lacks one of its kernels");
  return handle;
}

KernelHandle BoundPlan::streaming_kernel(std::int32_t kernel) {
  const PlanKernel& k = plan.kernels[at(kernel)];
  const std::size_t m = at(k.streaming_module);
  if (!modules[m]) load_module(*this, m);
  const KernelHandle handle = modules[m]->kernel(k.name);
  internal_check(handle != nullptr, "a module lacks the streaming form of a kernel");
  return handle;
}

KernelHandle BoundPlan::wide_kernel(std::int32_t kernel) {
  const PlanKernel& k = plan.kernels[at(kernel)];
  const PlanModule& module = plan.modules[at(k.module)];
  wide_modules.resize(plan.modules.size());
  std::shared_ptr<Module>& wide = wide_modules[at(k.module)];
  if (!wide) {
    wide =
        cache->module(contexts[at(module.context)]->device(), std::string(kWideForm) + module.text,
                      module.kernels, code_key, &compilers);
  }
  const KernelHandle handle = wide->kernel(k.name);
  internal_check(handle != nullptr, "a module lacks the wide form of a kernel");
  return handle;
}

std::unique_ptr<BoundPlan> bind_plan(Runtime& runtime, Plan plan, const Config& config) {
  auto bound = std::make_unique<BoundPlan>();
  bound->plan = std::move(plan);
  bound->title = bound->plan.name.empty() ? "function" : bound->plan.name;
  bound->cache = &runtime.kernel_cache();
  bound->code_key = config.code_key();
  bound->replays = config.cuda_graphs();
  bound->links = {config.bucket_bytes(), config.link_latency_us(), config.link_bandwidth()};
  for (const std::string& name : bound->plan.contexts) {
    bound->contexts.push_back(&runtime.context(name));
    warn_of_pretence(*bound->contexts.back());
  }
  find_keys(*bound);
  place_inputs(*bound);
  place_shareds(*bound);
  place_constants(*bound);
  load_modules(*bound);
  bound->kernels.resize(bound->plan.kernels.size());
  for (std::size_t k = 0; k < bound->kernels.size(); ++k) {
    if (!bound->plan.kernels[k].rare) bound->kernel(static_cast<std::int32_t>(k));
  }
  return bound;
}

}  // namespace croton
