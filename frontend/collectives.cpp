#include "croton/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "croton/context.h"
#include "croton/custom_gradient.h"
#include "croton/indexing.h"
#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/build.h"

namespace croton {
namespace {

/// The ranks of one collective: their values and contexts, checked.
class Ranks {
 public:
  Ranks(std::string_view name, const std::vector<Variable>& values,
        const CollectiveOptions& options, const Loc& loc)
      : name_(name), loc_(loc.named(name)), values_(values), options_(options) {
    if (values.empty()) fail("a value for each rank is expected: got none");
    if (!options.contexts.empty() && options.contexts.size() != values.size()) {
      fail(fmt::format("{} values and {} contexts: give one context a value", values.size(),
                       options.contexts.size()));
    }
    for (std::size_t r = 0; r < values.size(); ++r) check(r);
  }

  std::size_t size() const { return values_.size(); }
  const Loc& loc() const { return loc_; }
  const CollectiveOptions& options() const { return options_; }
  const std::string& context(std::size_t rank) const {
    return options_.contexts.empty() ? values_[rank].context() : options_.contexts[rank];
  }
  const Variable& value(std::size_t rank) const { return values_[rank]; }
  std::size_t root(int rank) const {
    if (rank < 0 || static_cast<std::size_t>(rank) >= size()) {
      fail(fmt::format("the root is rank {}, and there are {}", rank, size()));
    }
    return static_cast<std::size_t>(rank);
  }
  [[noreturn]] void fail(const std::string& what) const { graph_error(name_, what, loc_); }
  void need_rows() const {
    if (values_[0].ndim() == 0) fail("scalars have no rows: values with an axis are expected");
  }
  void need_total() const {
    if (options_.gradient == CollectiveGradient::total) return;
    fail("CollectiveGradient::once is for all_reduce and all_gather");
  }
  Variable there(const Variable& v, std::size_t rank) const {
    return transfer(Operand(v, loc_), context(rank));
  }

 private:
  void check(std::size_t r) const {
    const Variable& v = values_[r];
    if (!v.defined()) fail(fmt::format("the value of rank {} is an empty Variable", r));
    if (context(r).empty()) {
      fail(
          fmt::format("the value of rank {} names no context: give .contexts, or make it in a "
                      "ContextScope",
                      r));
    }
    if (v.dtype() != values_[0].dtype() || v.ndim() != values_[0].ndim()) {
      fail(fmt::format("the values differ in type: rank 0 has {}, rank {} has {}",
                       type_text(values_[0]), r, type_text(v)));
    }
  }
  static std::string type_text(const Variable& v) {
    return v.node()->outputs[v.output()].to_text();
  }

  const std::string_view name_;
  const Loc loc_;
  const std::vector<Variable>& values_;
  const CollectiveOptions& options_;
};

/// One of two values, elementwise.
Variable combined(CollectiveOp op, const Operand& a, const Operand& b) {
  switch (op) {
    case CollectiveOp::max:
      return maximum(a, b);
    case CollectiveOp::min:
      return minimum(a, b);
    case CollectiveOp::prod:
      return a.variable().dtype() == DType::boolean ? logical_and(a, b) : a * b;
    case CollectiveOp::sum:
    case CollectiveOp::mean:
      break;
  }
  return a.variable().dtype() == DType::boolean ? logical_or(a, b) : a + b;
}

void check_op(const Ranks& ranks, CollectiveOp op) {
  const std::vector<Variable>& weights = ranks.options().weights;
  if (op == CollectiveOp::mean && !is_float(ranks.value(0).dtype())) {
    ranks.fail(fmt::format("the mean of {} is no {}: cast the values to a float, or take the sum",
                           name_of(ranks.value(0).dtype()), name_of(ranks.value(0).dtype())));
  }
  if (weights.empty()) return;
  if (op != CollectiveOp::mean) ranks.fail("weights are for CollectiveOp::mean");
  if (weights.size() != ranks.size()) {
    ranks.fail(fmt::format("{} values and {} weights", ranks.size(), weights.size()));
  }
  for (const Variable& w : weights) {
    if (!w.defined() || w.ndim() != 0) ranks.fail("a weight must be a scalar");
  }
}

/// What the ranks make of `parts`, one of each, on the context of one rank.
Variable folded(const Ranks& ranks, CollectiveOp op, const std::vector<Variable>& parts,
                std::size_t at) {
  const Loc& loc = ranks.loc();
  const DType dtype = parts[0].dtype();
  const DType wide = is_narrow(dtype) ? DType::float32 : dtype;
  const std::vector<Variable>& weights = ranks.options().weights;
  std::vector<Variable> moved;
  for (const Variable& part : parts) moved.push_back(ranks.there(part, at));
  const ContextScope on(ranks.context(at));
  Variable total, weight;
  for (std::size_t r = 0; r < moved.size(); ++r) {
    Variable part = cast_to(moved[r], wide, loc);
    if (!weights.empty()) {
      const Variable w = cast_to(ranks.there(weights[r], at), wide, loc);
      const Operand one(w, loc);
      part = where(Operand(ne(one, 0), loc), Operand(part, loc) * one, 0);
      weight = r == 0 ? w : Operand(weight, loc) + one;
    }
    total = r == 0 ? part : combined(op, Operand(total, loc), Operand(part, loc));
  }
  if (!weights.empty()) {
    total = Operand(total, loc) / Operand(weight, loc);
  } else if (op == CollectiveOp::mean && moved.size() > 1) {
    total = Operand(total, loc) / static_cast<double>(moved.size());
  }
  return cast_to(total, dtype, loc);
}

/// The r-th of `count` shares of the rows: the first ones are longer by one.
Variable share_of(const Variable& v, std::size_t r, std::size_t count, const Loc& loc) {
  const auto ranks = static_cast<std::int64_t>(count);
  const auto edge = [&](std::size_t k) -> Bound {
    const auto rank = static_cast<std::int64_t>(k);
    const std::int64_t known = v.static_shape()[0];
    if (known != kAnyDim) return known / ranks * rank + std::min(rank, known % ranks);
    const Operand rows(size_of_axis(v, 0, loc), loc);
    const Operand whole(floor_divide(rows, ranks), loc), rest(mod(rows, ranks), loc);
    return Operand(whole * rank, loc) + Operand(minimum(rest, rank), loc);
  };
  return v(Index(Slice(edge(r), edge(r + 1)), loc));
}

/// The part of each value that one rank combines.
std::vector<Variable> shares(const Ranks& ranks, std::size_t at, bool flat) {
  std::vector<Variable> parts;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const ContextScope on(ranks.context(r));
    const Variable v = flat ? flatten(Operand(ranks.value(r), ranks.loc())) : ranks.value(r);
    parts.push_back(share_of(v, at, ranks.size(), ranks.loc()));
  }
  return parts;
}

std::vector<Variable> all_values(const Ranks& ranks) {
  std::vector<Variable> values;
  for (std::size_t r = 0; r < ranks.size(); ++r) values.push_back(ranks.value(r));
  return values;
}

Variable joined(const Ranks& ranks, const std::vector<Variable>& parts, std::size_t at,
                bool stacked) {
  std::vector<Variable> moved;
  for (const Variable& part : parts) moved.push_back(ranks.there(part, at));
  const ContextScope on(ranks.context(at));
  if (moved.size() == 1 && !stacked) return moved[0];
  const Parts list(moved, ranks.loc());
  return stacked ? stack(list) : concatenate(list);
}

/// The result on a rank, whose gradient goes to the value of that rank alone.
Variable counted_once(const Ranks& ranks, const Variable& result, std::size_t r,
                      const std::function<Variable(const Variable& gradient)>& back) {
  return custom_gradient(
      {ranks.value(r)}, result,
      [&](const std::vector<Variable>&, const Variable&, const Variable& gradient) {
        return std::vector{back(gradient)};
      },
      ranks.loc());
}

}  // namespace

std::vector<Variable> all_reduce(const std::vector<Variable>& values, CollectiveOp op,
                                 const CollectiveOptions& options, Loc loc) {
  const Ranks ranks("all_reduce", values, options, loc);
  check_op(ranks, op);
  const bool once = options.gradient == CollectiveGradient::once;
  if (once && op != CollectiveOp::sum && (op != CollectiveOp::mean || !options.weights.empty())) {
    ranks.fail("CollectiveGradient::once is for sums and means without weights");
  }
  std::vector<Variable> results;
  std::vector<Variable> reduced;
  const bool slices = ranks.size() > 2 && values[0].ndim() > 0;
  for (std::size_t r = 0; slices && r < ranks.size(); ++r) {
    reduced.push_back(folded(ranks, op, shares(ranks, r, true), r));
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    Variable result;
    if (slices) {
      const Variable flat = joined(ranks, reduced, r, false);
      const ContextScope on(ranks.context(r));
      result = reshape_sizes(flat, sizes_of(ranks.value(r), ranks.loc()), ranks.loc());
    } else {
      result = folded(ranks, op, all_values(ranks), r);
    }
    const double part = op == CollectiveOp::mean ? 1.0 / static_cast<double>(ranks.size()) : 1;
    results.push_back(once ? counted_once(ranks, result, r,
                                          [&](const Variable& g) {
                                            return part == 1 ? g : Operand(g, ranks.loc()) * part;
                                          })
                           : result);
  }
  return results;
}

Variable reduce(const std::vector<Variable>& values, CollectiveOp op, int root,
                const CollectiveOptions& options, Loc loc) {
  const Ranks ranks("reduce", values, options, loc);
  check_op(ranks, op);
  ranks.need_total();
  return folded(ranks, op, values, ranks.root(root));
}

std::vector<Variable> reduce_scatter(const std::vector<Variable>& values, CollectiveOp op,
                                     const CollectiveOptions& options, Loc loc) {
  const Ranks ranks("reduce_scatter", values, options, loc);
  check_op(ranks, op);
  ranks.need_total();
  ranks.need_rows();
  std::vector<Variable> results;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    results.push_back(folded(ranks, op, shares(ranks, r, false), r));
  }
  return results;
}

std::vector<Variable> all_gather(const std::vector<Variable>& values, bool stacked,
                                 const CollectiveOptions& options, Loc loc) {
  const Ranks ranks("all_gather", values, options, loc);
  if (!stacked) ranks.need_rows();
  std::vector<Variable> results;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Variable result = joined(ranks, values, r, stacked);
    if (options.gradient == CollectiveGradient::total) {
      results.push_back(result);
      continue;
    }
    const auto own = [&](const Variable& g) {
      if (stacked) return g(Index(static_cast<std::int64_t>(r), ranks.loc()));
      Variable first = size_of_axis(values[0], 0, ranks.loc());
      if (r == 0) return g(Index(Slice(0, first), ranks.loc()));
      for (std::size_t k = 1; k < r; ++k) {
        first = Operand(first, ranks.loc()) + Operand(size_of_axis(values[k], 0, ranks.loc()));
      }
      const Variable rows = size_of_axis(values[r], 0, ranks.loc());
      return g(Index(Slice(first, Operand(first, ranks.loc()) + Operand(rows, ranks.loc())),
                     ranks.loc()));
    };
    results.push_back(counted_once(ranks, result, r, own));
  }
  return results;
}

Variable gather(const std::vector<Variable>& values, int root, bool stacked,
                const CollectiveOptions& options, Loc loc) {
  const Ranks ranks("gather", values, options, loc);
  ranks.need_total();
  if (!stacked) ranks.need_rows();
  return joined(ranks, values, ranks.root(root), stacked);
}

std::vector<Variable> broadcast(const Variable& value, const std::vector<std::string>& contexts,
                                Loc loc) {
  const std::vector<Variable> copies(contexts.size(), value);
  const CollectiveOptions options{.contexts = contexts};
  const Ranks ranks("broadcast", copies, options, loc);
  std::vector<Variable> results;
  for (std::size_t r = 0; r < ranks.size(); ++r) results.push_back(ranks.there(value, r));
  return results;
}

std::vector<Variable> scatter(const Variable& value, const std::vector<std::string>& contexts,
                              Loc loc) {
  const std::vector<Variable> copies(contexts.size(), value);
  const CollectiveOptions options{.contexts = contexts};
  const Ranks ranks("scatter", copies, options, loc);
  ranks.need_rows();
  std::vector<Variable> results;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    results.push_back(ranks.there(share_of(value, r, ranks.size(), ranks.loc()), r));
  }
  return results;
}

std::vector<Variable> all_to_all(const std::vector<Variable>& values,
                                 const CollectiveOptions& options, Loc loc) {
  const Ranks ranks("all_to_all", values, options, loc);
  ranks.need_total();
  ranks.need_rows();
  std::vector<Variable> results;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    results.push_back(joined(ranks, shares(ranks, r, false), r, false));
  }
  return results;
}

}  // namespace croton
