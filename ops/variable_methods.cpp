// The methods of Variable that stand for ops: each is the free function of its name.
#include "croton/reduce.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"

namespace croton {

Variable Variable::shape(Loc loc) const { return croton::shape(Operand(*this, loc)); }

Variable Variable::shape(int axis, Loc loc) const {
  return size_of_axis(*this, checked_axis("shape", axis, ndim(), loc), loc);
}

Variable Variable::size(Loc loc) const { return croton::size(Operand(*this, loc)); }

Variable Variable::transfer(std::string_view context, Loc loc) const {
  return croton::transfer(Operand(*this, loc), context);
}

Variable Variable::T(Loc loc) const { return transpose(Operand(*this, loc)); }

Variable Variable::sum(const Axis& axis, const ReduceOptions& options, Loc loc) const {
  return croton::sum(Operand(*this, loc), axis, options);
}
Variable Variable::sum(const Axis& axis, Loc loc) const {
  return croton::sum(Operand(*this, loc), axis);
}
Variable Variable::sum(Loc loc) const { return croton::sum(Operand(*this, loc)); }

Variable Variable::mean(const Axis& axis, const ReduceOptions& options, Loc loc) const {
  return croton::mean(Operand(*this, loc), axis, options);
}
Variable Variable::mean(const Axis& axis, Loc loc) const {
  return croton::mean(Operand(*this, loc), axis);
}
Variable Variable::mean(Loc loc) const { return croton::mean(Operand(*this, loc)); }

Variable Variable::prod(const Axis& axis, Loc loc) const {
  return croton::prod(Operand(*this, loc), axis);
}
Variable Variable::prod(Loc loc) const { return croton::prod(Operand(*this, loc)); }

Variable Variable::max(const Axis& axis, Loc loc) const {
  return croton::max(Operand(*this, loc), axis);
}
Variable Variable::max(Loc loc) const { return croton::max(Operand(*this, loc)); }

Variable Variable::min(const Axis& axis, Loc loc) const {
  return croton::min(Operand(*this, loc), axis);
}
Variable Variable::min(Loc loc) const { return croton::min(Operand(*this, loc)); }

Variable Variable::var(const Axis& axis, const VarOptions& options, Loc loc) const {
  return croton::var(Operand(*this, loc), axis, options);
}
Variable Variable::var(const Axis& axis, Loc loc) const {
  return croton::var(Operand(*this, loc), axis);
}
Variable Variable::var(Loc loc) const { return croton::var(Operand(*this, loc)); }

Variable Variable::std(const Axis& axis, const VarOptions& options, Loc loc) const {
  return croton::std(Operand(*this, loc), axis, options);
}
Variable Variable::std(const Axis& axis, Loc loc) const {
  return croton::std(Operand(*this, loc), axis);
}
Variable Variable::std(Loc loc) const { return croton::std(Operand(*this, loc)); }

Variable Variable::argmax(const Axis& axis, Loc loc) const {
  return croton::argmax(Operand(*this, loc), axis);
}
Variable Variable::argmax(Loc loc) const { return croton::argmax(Operand(*this, loc)); }

Variable Variable::reshape(const Sizes& sizes, Loc loc) const {
  return croton::reshape(Operand(*this, loc), sizes);
}

Variable Variable::flatten(Loc loc) const { return croton::flatten(Operand(*this, loc)); }

Variable Variable::dimshuffle(const std::vector<int>& order, Loc loc) const {
  return croton::dimshuffle(Operand(*this, loc), order);
}

}  // namespace croton
