// A plan for one set of input shapes: every size, address and decision computed once, so that a
// call only fills in the memory of its arguments and results.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "croton/config.h"
#include "runtime/context.h"
#include "runtime/executable.h"
#include "runtime/kernel_cache.h"
#include "runtime/plan.h"
#include "runtime/slot_memory.h"

namespace croton {

struct Frame;

/// Where an update puts the new value of a shared variable.
struct SharedTarget {
  Context* context = nullptr;
  Array* value = nullptr;
};

/// A shared variable that a plan updates, and all the places where it does.
struct UpdatedState {
  SharedState* state = nullptr;
  std::vector<const Array*> targets;
};

/// How copies travel from context to context.
struct LinkSettings {
  std::int64_t bucket_bytes = 0;
  std::int64_t latency_us = 0;
  std::int64_t bandwidth = 0;  ///< bytes a second; 0: no limit

  bool slow() const { return latency_us > 0 || bandwidth > 0; }
  /// What a message takes at least.
  std::chrono::nanoseconds time(std::int64_t bytes) const;
};

/// A plan with its contexts opened and its modules loaded.
struct BoundPlan {
  Plan plan;
  std::string title;  ///< the plan's name, for messages
  std::vector<Context*> contexts;
  std::vector<KernelHandle> kernels;
  std::vector<std::shared_ptr<Module>> modules;       ///< by module; null where not loaded yet
  std::vector<std::shared_ptr<Module>> wide_modules;  ///< their wide forms, likewise
  KernelCache* cache = nullptr;
  std::string code_key;
  CompilerUse compilers;
  bool replays = true;  ///< the flag cuda_graphs
  LinkSettings links;
  mutable std::atomic<std::int64_t> replayed{0};

  std::vector<Array*> shared_values;  ///< by slot: where the value of the shared variable is
  std::vector<SharedTarget> updated;  ///< one for each of the plan's updates
  std::vector<UpdatedState> updated_states;

  std::vector<bool> reads_value;  ///< inputs whose value is part of the key, and shareds after them
  std::vector<std::int32_t> keyed_shareds;  ///< shareds whose shape or value is part of the key
  std::vector<std::int32_t> input_context;  ///< where each input is wanted; -1: anywhere

  /// A rare kernel is compiled on first use.
  KernelHandle kernel(std::int32_t kernel);
  /// The kernel with non-temporal stores; compiled on first use.
  KernelHandle streaming_kernel(std::int32_t kernel);
  /// The kernel of the module's wide form; compiled on first use.
  KernelHandle wide_kernel(std::int32_t kernel);
};

/// A pointer of the frame's table that depends on the call.
struct Patch {
  std::int32_t position = 0;
  Place place;
};

struct SpecialisedStep {
  Step::Kind kind = Step::Kind::launch;
  std::int32_t context = 0;
  std::int32_t index = 0;      ///< in the plan
  std::int32_t arguments = 0;  ///< where its pointers begin in the frame's table
  std::int32_t error = 0;      ///< group of error words; 0 is shared by launches without checks
  Launch launch;               ///< all but the addresses
  std::shared_ptr<PreparedCall> call;
  std::int32_t workspace = -1;  ///< position in the table, -1 for none
  std::int64_t bytes = 0;       ///< copy: 0 when both sides are the same memory
  bool signals = false;         ///< a step of another queue waits for it
  std::vector<std::int32_t> waits;
  /// Not empty: a message on the link of `context`, of these copies of the plan. `index` is the
  /// last of them, `bytes` is their sum.
  std::vector<std::int32_t> message;

  bool on_link() const { return !message.empty(); }
};

/// The link of a context of which a plan makes use.
struct UsedLink {
  Link* link = nullptr;  ///< null: no message leaves that context
  /// Contexts whose streams are ordered with that of the link: its messages come behind what they
  /// hold at the start of the call, and they go on behind its messages when the call is over.
  std::vector<std::int32_t> ordered;
  std::int32_t last = -1;  ///< its last message
};

/// A value that leaves the call.
struct Leaving {
  Place place;
  DType dtype = DType::float32;
  Shape shape;
  ArrayHome* home = nullptr;
};

/// What an argument must look like for the plan to be used as it is.
struct ArgumentKey {
  DType dtype = DType::float32;
  Shape shape;
  ArrayHome* home = nullptr;
  bool anywhere = false;     ///< the memory is not looked at
  bool host_memory = false;  ///< any memory that the host can read will do
  bool reads_value = false;
  std::int64_t value = 0;
};

class Specialised {
 public:
  /// `key`: for each input, then for each keyed shared, its sizes and, where that is read, its
  /// value. CallError when a check of the plan fails or a size is impossible.
  Specialised(BoundPlan& bound, std::vector<std::int64_t> key);
  ~Specialised();

  std::vector<std::int64_t> key;
  std::vector<ArgumentKey> arguments;
  std::vector<ArgumentKey> shareds;  ///< one for each of BoundPlan::keyed_shareds

  std::vector<SpecialisedStep> steps;  ///< without those that do nothing
  std::vector<std::int64_t> sizes;     ///< what the launches point into
  std::vector<void*> table;            ///< pointers as far as they are known: constants
  std::vector<Patch> patches;          ///< argument, shared, result
  std::vector<Patch> arena_patches;
  std::vector<std::int64_t> arena_bytes;  ///< by context
  std::vector<ResultBlock> results;
  std::vector<Leaving> outputs;
  std::vector<Leaving> updates;
  std::int32_t error_groups = 1;
  std::vector<std::int32_t> checked_steps;  ///< step of the plan for each error group
  std::vector<std::int32_t> active;         ///< contexts that have steps
  std::vector<UsedLink> links;              ///< by context; empty where there are no messages
  std::vector<std::size_t> slot_bytes;      ///< where there are messages
  std::vector<bool> has_checks;             ///< by context: launches there have checks
  std::vector<bool> awaited;  ///< by context: the call is over when its work is, not before
  bool on_caller = true;
  bool uses_threads = false;
  bool pretends = false;
  PlanStatistics statistics;
  std::uint64_t last_used = 0;

  std::string to_text(const BoundPlan& bound) const;

  /// Frames that nobody uses now; guarded by the executable.
  std::vector<std::unique_ptr<Frame>> idle;
};

}  // namespace croton
