#pragma once

#include <vector>

#include "compiler/fuse/grower.h"

namespace croton {

/// Groups in an order in which each comes after those that it reads from: older ones first, except
/// that a group which frees more memory than it takes does not wait. So what the last gradient of a
/// weight needs goes as soon as that is there, not when all others are.
///
/// A transfer between contexts is sent as soon as its value is there. What needs one comes behind
/// all that needs none or an earlier one: contexts do what they can while values travel, and take
/// them up in the order in which they arrive.
std::vector<FusionGroup> in_step_order(std::vector<FusionGroup> groups, const FusionGraph& fusion);

}  // namespace croton
