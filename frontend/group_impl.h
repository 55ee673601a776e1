// What functions and collectives of a group share: the values of its ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "croton/group.h"

namespace croton {

class Runtime;
struct SharedState;

struct Group::Impl {
  std::shared_ptr<Runtime> runtime;
  std::vector<std::string> contexts;

  int size() const { return static_cast<int>(contexts.size()); }
  /// The shared variable that stands for another on a rank.
  Variable on_rank(const Variable& shared, int rank);
  Shared on_rank(const Shared& shared, int rank) {
    return rank == 0 ? shared : replica(shared, rank);
  }
  SharedState& state(const Variable& shared, int rank);
  Shape shape(const Variable& shared, int rank);
  Shared replica(const Variable& shared, int rank);

  struct Replicas {
    Variable original;         ///< lives as long as they do
    std::vector<Shared> list;  ///< of the ranks from 1 on
  };
  std::mutex mutex;
  std::map<const SharedState*, Replicas> replicas;
  /// Of collectives, by what they do with which shared variables.
  std::map<std::vector<std::uintptr_t>, Function> collectives;
};

}  // namespace croton
