#include "runtime/program.h"

#include <algorithm>

#include "croton/error.h"

namespace croton {

Program::Program(const std::shared_ptr<Runtime>& runtime, std::vector<Part> parts,
                 const Config& config) {
  std::vector<const Plan*> plans;
  std::vector<const SharedNeeds*> needs;
  for (Part& part : parts) {
    parts_.push_back({std::make_unique<Executable>(runtime, std::move(part.plan), config),
                      std::move(part.taken)});
    plans.push_back(&parts_.back().executable->plan());
    needs.push_back(&parts_.back().executable->shareds());
  }
  internal_check(!parts_.empty() && parts_.front().taken.empty(), "a program without a begin");
  for (std::size_t s = 0; s + 1 < plans.size(); ++s) {
    internal_check(plans[s]->updates.empty(), "only the last part of a program updates");
  }
  shareds_ = merged(needs);
}

void Program::run(std::span<const Array> arguments, std::span<Array> results) const {
  if (parts_.size() == 1) {
    parts_.front().executable->run(arguments, results);
  } else {
    run_parts(arguments, results);
  }
}

void Program::run_parts(std::span<const Array> arguments, std::span<Array> results) const {
  const SharedLocks locks(shareds_, refreshed_);
  std::vector<std::vector<Array>> given(parts_.size() - 1);
  for (std::size_t s = 0; s < parts_.size(); ++s) {
    const Linked& part = parts_[s];
    std::vector<Array> in(arguments.begin(), arguments.end());
    for (const Taken& taken : part.taken) {
      const Array& array =
          given[static_cast<std::size_t>(taken.part)][static_cast<std::size_t>(taken.output)];
      in.push_back(taken.size ? array.to_host() : array);
    }
    if (s + 1 < parts_.size()) given[s].resize(part.executable->plan().outputs.size());
    part.executable->run_locked(in, s + 1 < parts_.size() ? std::span(given[s]) : results);
  }
}

PlanStatistics Program::statistics() const {
  PlanStatistics sum = parts_.front().executable->statistics();
  for (std::size_t s = 1; s < parts_.size(); ++s) {
    const PlanStatistics one = parts_[s].executable->statistics();
    sum.steps += one.steps;
    sum.launches += one.launches;
    sum.library_calls += one.library_calls;
    sum.copies += one.copies;
    sum.messages += one.messages;
    sum.bytes_read += one.bytes_read;
    sum.bytes_written += one.bytes_written;
    sum.bytes_copied += one.bytes_copied;
    sum.bytes_in += one.bytes_in;
    sum.bytes_out += one.bytes_out;
    sum.arena_bytes = std::max(sum.arena_bytes, one.arena_bytes);
    sum.parallel_launches += one.parallel_launches;
    sum.streaming_launches += one.streaming_launches;
    sum.wide_launches += one.wide_launches;
    sum.on_caller = sum.on_caller && one.on_caller;
    sum.modules_compiled += one.modules_compiled;
    sum.compile_ms += one.compile_ms;
    sum.replays += one.replays;
    sum.specialisations += one.specialisations;
    sum.specialised += one.specialised;
    sum.frames += one.frames;
    sum.copied_arguments += one.copied_arguments;
    sum.refreshed_shareds += one.refreshed_shareds;
    sum.calls = one.calls;  // those of the last part are over
  }
  sum.refreshed_shareds += refreshed_.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace croton
