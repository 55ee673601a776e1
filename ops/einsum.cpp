// einsum, and products of batches of vectors and matrices.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "croton/error.h"
#include "croton/linalg.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/contract.h"

namespace croton {
namespace {

/// Labels of the axes for which an ellipsis stands, counted from the right; letters are below.
constexpr int kEllipsisLabel = 1000;

/// The text of one operand or of the result: letters before and behind the ellipsis, if any.
struct Subscript {
  std::vector<int> before;
  std::vector<int> behind;
  bool ellipsis = false;

  int letters() const { return static_cast<int>(before.size() + behind.size()); }
  std::vector<int> labels(int between) const {
    std::vector<int> all = before;
    for (int k = between; k-- > 0;) all.push_back(kEllipsisLabel + k);
    all.insert(all.end(), behind.begin(), behind.end());
    return all;
  }
};

struct Subscripts {
  std::vector<Subscript> operands;
  std::optional<Subscript> result;
};

class Parser {
 public:
  Parser(std::string_view text, const Loc& loc) : text_(text), loc_(loc) {}

  Subscripts parse() {
    Subscripts all;
    all.operands.push_back(subscript());
    while (next() == ',') {
      ++place_;
      all.operands.push_back(subscript());
    }
    if (next() == '\0') return all;
    if (next() != '-' || place_ + 1 >= text_.size() || text_[place_ + 1] != '>') {
      fail(fmt::format("'{}' at position {} is not a letter, a comma, ... or ->", next(), place_));
    }
    place_ += 2;
    all.result = subscript();
    if (next() != '\0') fail(fmt::format("'{}' behind the subscripts of the result", next()));
    return all;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    graph_error("einsum", fmt::format("{} in \"{}\"", what, text_), loc_);
  }

  char next() {
    while (place_ < text_.size() && text_[place_] == ' ') ++place_;
    return place_ < text_.size() ? text_[place_] : '\0';
  }

  Subscript subscript() {
    Subscript result;
    for (;;) {
      const char c = next();
      if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
        (result.ellipsis ? result.behind : result.before).push_back(c);
        ++place_;
      } else if (c == '.') {
        if (text_.substr(place_, 3) != "...") fail("an ellipsis has three dots");
        if (result.ellipsis) fail("an operand has two ellipses");
        result.ellipsis = true;
        place_ += 3;
      } else {
        return result;
      }
    }
  }

  std::string_view text_;
  const Loc& loc_;
  std::size_t place_ = 0;
};

/// The result where none is given: the axes of the ellipses, then letters that occur once, in
/// alphabetical order.
std::vector<int> implied_result(const std::vector<Term>& terms, int between) {
  std::map<int, int> count;
  for (const Term& term : terms) {
    for (const int label : term.labels) ++count[label];
  }
  std::vector<int> labels = Subscript{{}, {}, true}.labels(between);
  for (const auto& [label, times] : count) {
    if (label < kEllipsisLabel && times == 1) labels.push_back(label);
  }
  return labels;
}

void check_result(std::string_view text, const Subscripts& subscripts,
                  const std::vector<Term>& terms, int between, const Loc& loc) {
  const Subscript& result = *subscripts.result;
  if (between > 0 && !result.ellipsis) {
    graph_error("einsum",
                fmt::format("the result in \"{}\" needs the ellipsis that operands have", text),
                loc);
  }
  std::vector<int> seen;
  for (const int label : result.labels(0)) {
    const char letter = static_cast<char>(label);
    if (std::find(seen.begin(), seen.end(), label) != seen.end()) {
      graph_error("einsum", fmt::format("the result in \"{}\" has '{}' twice", text, letter), loc);
    }
    seen.push_back(label);
    const bool known = std::any_of(terms.begin(), terms.end(), [&](const Term& term) {
      return std::find(term.labels.begin(), term.labels.end(), label) != term.labels.end();
    });
    if (!known) {
      graph_error("einsum",
                  fmt::format("the result in \"{}\" has '{}', which no operand has", text, letter),
                  loc);
    }
  }
}

std::vector<int> counted(int first, int count) {
  std::vector<int> labels;
  for (int k = 0; k < count; ++k) labels.push_back(first + k);
  return labels;
}

/// Products over labels of two operands of any rank.
Variable of_two(std::string_view op, const Operand& a, const Operand& b, std::vector<int> labels_a,
                std::vector<int> labels_b, const std::vector<int>& result) {
  const Loc loc = a.loc().named(op);
  const std::vector<Variable> values = factors(op, {a, b}, loc);
  return contracted(op, {{values[0], std::move(labels_a)}, {values[1], std::move(labels_b)}},
                    result, loc);
}

void check_rank(std::string_view op, const Operand& x, int least, std::string_view what) {
  if (x.variable().ndim() >= least) return;
  graph_error(
      op,
      fmt::format("{} with at least {} axes is expected: got {}", what, least, x.variable().ndim()),
      x.loc());
}

/// Labels of `rank` axes of which the last ones are given; those in front are the same for both.
std::vector<int> with_front(int rank, const std::vector<int>& last) {
  std::vector<int> labels;
  for (int k = rank - static_cast<int>(last.size()); k-- > 0;) labels.push_back(kEllipsisLabel + k);
  labels.insert(labels.end(), last.begin(), last.end());
  return labels;
}

/// A product over the last axes, the others broadcasting.
Variable broadcast_product(std::string_view op, const Operand& a, const Operand& b,
                           const std::vector<int>& last_a, const std::vector<int>& last_b,
                           const std::vector<int>& last) {
  check_rank(op, a, static_cast<int>(last_a.size()), "an operand");
  check_rank(op, b, static_cast<int>(last_b.size()), "an operand");
  const int rank_a = a.variable().ndim();
  const int rank_b = b.variable().ndim();
  const int front =
      std::max(rank_a - static_cast<int>(last_a.size()), rank_b - static_cast<int>(last_b.size()));
  return of_two(op, a, b, with_front(rank_a, last_a), with_front(rank_b, last_b),
                with_front(front + static_cast<int>(last.size()), last));
}

}  // namespace

Variable einsum(std::string_view text, const Parts& parts) {
  if (parts.list.empty()) throw GraphError("[einsum] at least one operand is expected");
  const Loc loc = parts.list[0].loc().named("einsum");
  const Subscripts subscripts = Parser(text, loc).parse();
  if (subscripts.operands.size() != parts.list.size()) {
    graph_error("einsum",
                fmt::format("\"{}\" is for {} operands: got {}", text, subscripts.operands.size(),
                            parts.list.size()),
                loc);
  }
  const std::vector<Variable> values = factors("einsum", parts.list, loc);
  std::vector<Term> terms;
  int between = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const Subscript& subscript = subscripts.operands[k];
    const int rest = values[k].ndim() - subscript.letters();
    if (rest < 0 || (rest > 0 && !subscript.ellipsis)) {
      graph_error("einsum",
                  fmt::format("operand {} of \"{}\" has {} axes: got {}", k + 1, text,
                              subscript.letters(), values[k].ndim()),
                  loc);
    }
    between = std::max(between, rest);
    terms.push_back({values[k], subscript.labels(rest)});
  }
  if (!subscripts.result) {
    const std::vector<int> result = implied_result(terms, between);
    return contracted("einsum", std::move(terms), result, loc);
  }
  check_result(text, subscripts, terms, between, loc);
  return contracted("einsum", std::move(terms), subscripts.result->labels(between), loc);
}

Variable vecdot(const Operand& a, const Operand& b) {
  return broadcast_product("vecdot", a, b, {0}, {0}, {});
}

Variable matvec(const Operand& a, const Operand& b) {
  return broadcast_product("matvec", a, b, {1, 0}, {0}, {1});
}

Variable vecmat(const Operand& a, const Operand& b) {
  return broadcast_product("vecmat", a, b, {0}, {0, 1}, {1});
}

Variable batched_dot(const Operand& a, const Operand& b) {
  check_rank("batched_dot", a, 2, "a batch");
  check_rank("batched_dot", b, 2, "a batch");
  // Axis 0 is label 0, what is summed over label 1.
  const int rank_a = a.variable().ndim();
  const int rank_b = b.variable().ndim();
  std::vector<int> left = counted(2, rank_a - 2);
  std::vector<int> right = counted(2 + rank_a, rank_b - 2);
  std::vector<int> result{0};
  result.insert(result.end(), left.begin(), left.end());
  result.insert(result.end(), right.begin(), right.end());
  left.insert(left.begin(), 0);
  left.push_back(1);
  right.insert(right.end() - (rank_b > 2 ? 1 : 0), 1);
  right.insert(right.begin(), 0);
  return of_two("batched_dot", a, b, std::move(left), std::move(right), result);
}

Variable batched_tensordot(const Operand& a, const Operand& b, const std::vector<int>& axes_a,
                           const std::vector<int>& axes_b) {
  const Loc loc = a.loc().named("batched_tensordot");
  const int rank_a = a.variable().ndim();
  const int rank_b = b.variable().ndim();
  if (axes_a.size() != axes_b.size()) {
    graph_error("batched_tensordot", "as many axes of the one operand as of the other are expected",
                loc);
  }
  check_rank("batched_tensordot", a, 1, "a batch");
  check_rank("batched_tensordot", b, 1, "a batch");
  checked_axes("batched_tensordot", Axis(axes_a), rank_a, loc);
  checked_axes("batched_tensordot", Axis(axes_b), rank_b, loc);
  std::vector<int> left = counted(1, rank_a);
  std::vector<int> right = counted(1 + rank_a, rank_b);
  left[0] = 0;
  right[0] = 0;
  for (std::size_t k = 0; k < axes_a.size(); ++k) {
    const int i = checked_axis("batched_tensordot", axes_a[k], rank_a, loc);
    const int j = checked_axis("batched_tensordot", axes_b[k], rank_b, loc);
    if (i == 0 || j == 0) graph_error("batched_tensordot", "axis 0 is that of the batch", loc);
    right[j] = left[i];
  }
  std::vector<int> result;
  for (const int label : left) {
    if (label == 0 || std::find(right.begin(), right.end(), label) == right.end()) {
      result.push_back(label);
    }
  }
  for (const int label : right) {
    if (std::find(left.begin(), left.end(), label) == left.end()) result.push_back(label);
  }
  return of_two("batched_tensordot", a, b, std::move(left), std::move(right), result);
}

}  // namespace croton
