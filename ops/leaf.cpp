// Values that are not computed. Their types are given when they are made, so they have no rule.
#include "ops/registry.h"

namespace croton {

void register_leaf_ops(OpRegistry& registry) {
  registry.add({.name = "input", .doc = "An argument of a function.", .form = OpForm::leaf});
  registry.add({.name = "constant", .doc = "A value that never changes.", .form = OpForm::leaf});
  registry.add(
      {.name = "shared", .doc = "A value that lives between calls.", .form = OpForm::leaf});
}

}  // namespace croton
