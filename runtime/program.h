#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/executable.h"
#include "runtime/shared_locks.h"

namespace croton {

/// What a function runs: its parts, one after the other, which is nearly always one.
class Program {
 public:
  struct Part {
    Plan plan;
    std::vector<Taken> taken;  ///< behind the arguments of the call
  };

  /// Throws what Executable's constructor throws.
  Program(const std::shared_ptr<Runtime>& runtime, std::vector<Part> parts, const Config& config);

  /// As Executable::run: nothing has changed where a part fails, and others see the shared
  /// variables before the first or after the last one.
  void run(std::span<const Array> arguments, std::span<Array> results) const;

  std::size_t parts() const { return parts_.size(); }
  const Plan& plan(std::size_t part) const { return parts_[part].executable->plan(); }
  /// Summed over the parts, what one hands to another included; calls are those of the program,
  /// working memory that of the part with most.
  PlanStatistics statistics() const;

 private:
  struct Linked {
    std::unique_ptr<Executable> executable;
    std::vector<Taken> taken;
  };
  void run_parts(std::span<const Array> arguments, std::span<Array> results) const;

  std::vector<Linked> parts_;
  SharedNeeds shareds_;  ///< of all parts
  mutable std::atomic<std::int64_t> refreshed_{0};
};

}  // namespace croton
