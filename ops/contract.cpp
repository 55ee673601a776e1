#include "ops/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/graph/op.h"
#include "croton/tensor.h"
#include "ops/build.h"
#include "ops/sizes.h"

namespace croton {
namespace {

using Labels = std::vector<int>;

bool has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

int place_in(const Labels& labels, int label) {
  return static_cast<int>(std::find(labels.begin(), labels.end(), label) - labels.begin());
}

class Contraction {
 public:
  Contraction(std::string_view op, std::vector<Term> terms, Labels output, const Loc& loc)
      : op_(op), loc_(loc), terms_(std::move(terms)), output_(std::move(output)) {}

  Variable result() {
    for (Term& term : terms_) take_diagonals(term);
    find_sizes();
    for (Term& term : terms_) drop_stretched(term);
    for (std::size_t k = 0; k < terms_.size(); ++k) sum_lonely(k);
    while (terms_.size() > 1) join_best_pair();
    std::vector<int> order;
    for (const int label : output_) order.push_back(place_in(terms_[0].labels, label));
    return dimshuffle(terms_[0].value, order, loc_);
  }

 private:
  void clash(std::int64_t a, std::int64_t b) const {
    graph_error(op_, fmt::format("axes that run together have sizes {} and {}", a, b), loc_);
  }

  /// A label that a term has twice: its diagonal.
  void take_diagonals(Term& term) const {
    for (std::size_t k = 0; k < term.labels.size(); ++k) {
      const auto again = std::find(term.labels.begin() + static_cast<std::ptrdiff_t>(k) + 1,
                                   term.labels.end(), term.labels[k]);
      if (again == term.labels.end()) continue;
      const int first = static_cast<int>(k);
      const int second = static_cast<int>(again - term.labels.begin());
      std::vector<Size> sizes = sizes_of(term.value, loc_);
      const std::int64_t* a = sizes[first].number();
      const std::int64_t* b = sizes[second].number();
      if (a && b && *a != *b) clash(*a, *b);
      if (!a || !b) {
        sizes[a ? second : first] = sizes[a ? first : second];
        term.value = broadcast_sizes(term.value, sizes, loc_);
      }
      term.value = diagonal(Operand(term.value, loc_), 0, first, second);
      const int label = term.labels[k];
      term.labels.erase(again);
      term.labels.erase(term.labels.begin() + first);
      term.labels.push_back(label);
      --k;
    }
  }

  /// For each label a size that is not known to be 1, where there is one; known ones first.
  void find_sizes() {
    for (const Term& term : terms_) {
      for (std::size_t k = 0; k < term.labels.size(); ++k) {
        const std::int64_t own = term.value.static_shape()[k];
        const auto [entry, fresh] = sizes_.emplace(term.labels[k], own);
        std::int64_t& size = entry->second;
        if (fresh || own == 1 || size == own) continue;
        if (size == 1 || (size == kAnyDim && own != kAnyDim)) {
          size = own;
        } else if (own != kAnyDim) {
          clash(size, own);
        }
      }
    }
  }

  /// Axes of size 1 that broadcast are left out.
  void drop_stretched(Term& term) const {
    std::vector<int> order;
    Labels kept;
    for (std::size_t k = 0; k < term.labels.size(); ++k) {
      if (term.value.static_shape()[k] == 1 && sizes_.at(term.labels[k]) != 1) continue;
      order.push_back(static_cast<int>(k));
      kept.push_back(term.labels[k]);
    }
    term = {dimshuffle(term.value, order, loc_), kept};
  }

  /// Whether the output or another term than those two has the label.
  bool is_wanted(int label, std::size_t first, std::size_t second) const {
    if (has(output_, label)) return true;
    for (std::size_t k = 0; k < terms_.size(); ++k) {
      if (k != first && k != second && has(terms_[k].labels, label)) return true;
    }
    return false;
  }

  /// Sums over labels that nothing else has.
  void sum_lonely(std::size_t number) {
    Term& term = terms_[number];
    std::vector<int> axes;
    Labels kept;
    for (std::size_t k = 0; k < term.labels.size(); ++k) {
      if (is_wanted(term.labels[k], number, number)) {
        kept.push_back(term.labels[k]);
      } else {
        axes.push_back(static_cast<int>(k));
      }
    }
    term = {sum_axes(term.value, axes, false, loc_), kept};
  }

  double elements(const Labels& labels) const {
    double count = 1;
    for (const int label : labels) {
      const std::int64_t size = sizes_.at(label);
      count *= size == kAnyDim ? 1024 : static_cast<double>(size);
    }
    return count;
  }

  /// Labels of two terms: those of both, wanted or not, and those of one of them.
  struct Pair {
    Labels batch, inner, left, right;
    Labels result() const {
      Labels labels = batch;
      labels.insert(labels.end(), left.begin(), left.end());
      labels.insert(labels.end(), right.begin(), right.end());
      return labels;
    }
  };

  Pair pair_of(std::size_t first, std::size_t second) const {
    Pair pair;
    for (const int label : terms_[first].labels) {
      if (!has(terms_[second].labels, label)) {
        pair.left.push_back(label);
      } else {
        (is_wanted(label, first, second) ? pair.batch : pair.inner).push_back(label);
      }
    }
    for (const int label : terms_[second].labels) {
      if (!has(terms_[first].labels, label)) pair.right.push_back(label);
    }
    return pair;
  }

  void join_best_pair() {
    std::size_t best_a = 0;
    std::size_t best_b = 1;
    std::pair<double, double> least;
    for (std::size_t a = 0; a < terms_.size(); ++a) {
      for (std::size_t b = a + 1; b < terms_.size(); ++b) {
        const Pair pair = pair_of(a, b);
        const double result = elements(pair.result());
        const std::pair<double, double> cost{
            result - elements(terms_[a].labels) - elements(terms_[b].labels),
            result * elements(pair.inner)};
        if ((a == 0 && b == 1) || cost < least) {
          least = cost;
          best_a = a;
          best_b = b;
        }
      }
    }
    const Pair pair = pair_of(best_a, best_b);
    const Term joined{product(terms_[best_a], terms_[best_b], pair), pair.result()};
    terms_.erase(terms_.begin() + static_cast<std::ptrdiff_t>(best_b));
    terms_[best_a] = joined;
  }

  /// The term's axes in the order of these labels; -1 where it does not have one.
  Variable ordered(const Term& term, std::initializer_list<const Labels*> groups) const {
    std::vector<int> order;
    for (const Labels* group : groups) {
      for (const int label : *group) {
        order.push_back(has(term.labels, label) ? place_in(term.labels, label) : -1);
      }
    }
    return dimshuffle(term.value, order, loc_);
  }

  Variable product(const Term& a, const Term& b, const Pair& pair) const {
    const Labels both = pair.result();
    if (pair.inner.empty()) {
      return apply("mul", {ordered(a, {&both}), ordered(b, {&both})}, {}, loc_);
    }
    return pair.left.empty() || pair.right.empty() ? summed(a, b, pair) : multiplied(a, b, pair);
  }

  /// Products summed in one loop; narrow floats in float32.
  Variable summed(const Term& a, const Term& b, const Pair& pair) const {
    const Labels both = pair.result();
    const DType dtype = a.value.dtype();
    const bool narrow = dtype == DType::float16 || dtype == DType::bfloat16;
    const DType work = narrow ? DType::float32 : dtype;
    const Variable y = apply("mul",
                             {cast_to(ordered(a, {&both, &pair.inner}), work, loc_),
                              cast_to(ordered(b, {&both, &pair.inner}), work, loc_)},
                             {}, loc_);
    std::vector<int> axes;
    for (std::size_t k = 0; k < pair.inner.size(); ++k) {
      axes.push_back(static_cast<int>(both.size() + k));
    }
    return cast_to(sum_axes(y, axes, false, loc_), dtype, loc_);
  }

  /// (batch, left, inner) times (batch, inner, right) as matrices.
  Variable multiplied(const Term& a, const Term& b, const Pair& pair) const {
    const int batch = static_cast<int>(pair.batch.size());
    const int left = static_cast<int>(pair.left.size());
    const int inner = static_cast<int>(pair.inner.size());
    const int right = static_cast<int>(pair.right.size());
    const Variable x = ordered(a, {&pair.batch, &pair.left, &pair.inner});
    Variable y = ordered(b, {&pair.batch, &pair.inner, &pair.right});
    const std::vector<Size> own = sizes_of(x, loc_);
    std::vector<Size> sizes(own.begin(), own.begin() + batch + left);
    std::vector<Size> more = sizes_of(y, loc_);
    if (inner > 1) {
      // Only the product of the merged sizes would be compared.
      bool open = false;
      for (int k = 0; k < inner; ++k) {
        const Size& mine = own[static_cast<std::size_t>(batch + left + k)];
        open |= !mine.number() || !more[static_cast<std::size_t>(batch + k)].number();
        more[static_cast<std::size_t>(batch + k)] = mine;
      }
      if (open) y = broadcast_sizes(y, more, loc_);
    }
    sizes.insert(sizes.end(), more.begin() + batch + inner, more.end());
    const Variable rows = merge_axes(merge_axes(x, batch + left, inner, loc_), batch, left, loc_);
    const Variable columns =
        merge_axes(merge_axes(y, batch + inner, right, loc_), batch, inner, loc_);
    const Variable z =
        apply("gemm", {rows, columns},
              {{"transpose_a", std::int64_t{0}}, {"transpose_b", std::int64_t{0}}}, loc_);
    return left == 1 && right == 1 ? z : reshape_sizes(z, sizes, loc_);
  }

  std::string_view op_;
  Loc loc_;
  std::vector<Term> terms_;
  Labels output_;
  std::map<int, std::int64_t> sizes_;
};

}  // namespace

Variable contracted(std::string_view op, std::vector<Term> terms, const std::vector<int>& output,
                    const Loc& loc) {
  return Contraction(op, std::move(terms), output, loc).result();
}

std::vector<Variable> factors(std::string_view op, const std::vector<Operand>& operands,
                              const Loc& loc) {
  std::vector<Variable> values = resolve(op, operands);
  DType dtype = values[0].dtype();
  for (const Variable& value : values) {
    dtype = promote(dtype, value.dtype(), build_settings().numpy_policy);
  }
  if (is_bool(dtype)) {
    graph_error(op, "bools have no products to sum: cast them, for instance to int32", loc);
  }
  for (Variable& value : values) value = cast_to(value, dtype, loc);
  return values;
}

}  // namespace croton
