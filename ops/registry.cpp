#include "ops/registry.h"

#include "compiler/graph/gradient_ops.h"

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
  register_scalar_float_ops(registry);
  register_scalar_log_ops(registry);
  register_scalar_special_ops(registry);
  register_scalar_incomplete_ops(registry);
  register_scalar_activation_ops(registry);
  register_softmax_ops(registry);
  register_pick_ops(registry);
  register_standardize_ops(registry);
  register_reduce_ops(registry);
  register_arg_reduce_ops(registry);
  register_cumulative_ops(registry);
  register_recurrence_ops(registry);
  register_sort_ops(registry);
  register_searchsorted_ops(registry);
  register_dimshuffle_ops(registry);
  register_reshape_ops(registry);
  register_broadcast_ops(registry);
  register_size_ops(registry);
  register_join_ops(registry);
  register_slice_ops(registry);
  register_take_ops(registry);
  register_put_ops(registry);
  register_nonzero_ops(registry);
  register_iota_ops(registry);
  register_philox_ops(registry);
  register_gemm_ops(registry);
  register_transfer_ops(registry);
  register_custom_gradient_ops(registry);
  register_remat_ops(registry);
}

}  // namespace croton
