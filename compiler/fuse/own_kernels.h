#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/fuse/group.h"
#include "runtime/target.h"

namespace croton {

/// Library ops that have kernels of their own run these on GPUs: there their groups become kernels.
void use_own_kernels(std::vector<FusionGroup>& groups,
                     const std::function<TargetInfo(const std::string& context)>& target);

}  // namespace croton
