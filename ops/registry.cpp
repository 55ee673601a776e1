#include "ops/registry.h"

namespace croton {

void register_ops(OpRegistry& registry) {
  register_leaf_ops(registry);
  register_scalar_arithmetic_ops(registry);
  register_scalar_divide_ops(registry);
  register_scalar_compare_ops(registry);
  register_scalar_logic_ops(registry);
  register_scalar_select_ops(registry);
  register_scalar_cast_ops(registry);
  register_scalar_round_ops(registry);
  register_scalar_exp_ops(registry);
  register_scalar_trig_ops(registry);
  register_scalar_activation_ops(registry);
  register_softmax_ops(registry);
  register_pick_ops(registry);
  register_standardize_ops(registry);
}

}  // namespace croton
