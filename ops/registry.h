#pragma once

#include "compiler/graph/op.h"

namespace croton {

// One function a family of ops, each defined in the file of the family's name.
void register_leaf_ops(OpRegistry& registry);
void register_scalar_arithmetic_ops(OpRegistry& registry);
void register_scalar_divide_ops(OpRegistry& registry);
void register_scalar_compare_ops(OpRegistry& registry);
void register_scalar_logic_ops(OpRegistry& registry);
void register_scalar_select_ops(OpRegistry& registry);
void register_scalar_cast_ops(OpRegistry& registry);
void register_scalar_round_ops(OpRegistry& registry);
void register_scalar_exp_ops(OpRegistry& registry);
void register_scalar_trig_ops(OpRegistry& registry);
void register_scalar_float_ops(OpRegistry& registry);
void register_scalar_log_ops(OpRegistry& registry);
void register_scalar_special_ops(OpRegistry& registry);
void register_scalar_incomplete_ops(OpRegistry& registry);
void register_scalar_activation_ops(OpRegistry& registry);
void register_softmax_ops(OpRegistry& registry);
void register_pick_ops(OpRegistry& registry);
void register_standardize_ops(OpRegistry& registry);
void register_reduce_ops(OpRegistry& registry);
void register_arg_reduce_ops(OpRegistry& registry);
void register_cumulative_ops(OpRegistry& registry);
void register_recurrence_ops(OpRegistry& registry);
void register_sort_ops(OpRegistry& registry);
void register_searchsorted_ops(OpRegistry& registry);
void register_dimshuffle_ops(OpRegistry& registry);
void register_reshape_ops(OpRegistry& registry);
void register_broadcast_ops(OpRegistry& registry);
void register_size_ops(OpRegistry& registry);
void register_join_ops(OpRegistry& registry);
void register_slice_ops(OpRegistry& registry);
void register_take_ops(OpRegistry& registry);
void register_put_ops(OpRegistry& registry);
void register_nonzero_ops(OpRegistry& registry);
void register_iota_ops(OpRegistry& registry);
void register_philox_ops(OpRegistry& registry);
void register_gemm_ops(OpRegistry& registry);
void register_transfer_ops(OpRegistry& registry);

}  // namespace croton
