#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace croton {

class DimTable;

/// An integer that a size depends on: a number, unknown, or a term of a DimTable.
///
/// Shape rules are written once over Dims. While a user builds a graph, sizes are numbers or
/// unknown, and unknown operands give unknown results. While a function is compiled, what is not a
/// number is a term over the sizes of the function's inputs, so that sizes can be compared,
/// and computed for any call without the graph.
class Dim {
 public:
  Dim() = default;  ///< unknown
  Dim(std::int64_t value) : kind_(Kind::number), value_(value) {}

  bool is_number() const { return kind_ == Kind::number; }
  bool is_unknown() const { return kind_ == Kind::unknown; }
  bool is(std::int64_t value) const { return is_number() && value_ == value; }
  std::int64_t number() const { return value_; }

  /// The same number or the same term; unknown equals nothing.
  bool same(const Dim& other) const {
    return kind_ == other.kind_ && kind_ != Kind::unknown && value_ == other.value_;
  }

  friend Dim operator+(Dim a, Dim b);
  friend Dim operator-(Dim a, Dim b);
  friend Dim operator*(Dim a, Dim b);
  friend Dim floor_div(Dim a, Dim b);
  friend Dim floor_mod(Dim a, Dim b);
  friend Dim min(Dim a, Dim b);
  friend Dim max(Dim a, Dim b);
  friend Dim less(Dim a, Dim b);  ///< 1 or 0

 private:
  friend class DimTable;
  enum class Kind : std::uint8_t { unknown, number, term };
  Kind kind_ = Kind::unknown;
  DimTable* table_ = nullptr;
  std::int64_t value_ = 0;  ///< the number, or the term's index
};

enum class DimOp : std::uint8_t {
  number,
  input_size,   ///< a: input, b: axis. Inputs count on into the plan's shared variables, whose
                ///< sizes are needed where they are resizable
  input_value,  ///< a: input or shared variable, an integer scalar read on the host
  add,
  sub,
  mul,
  floor_div,  ///< rounding down, as in Python; by 0 it gives 0
  floor_mod,
  min,
  max,
  less,  ///< 1 or 0
};

/// Index of a term in a DimTable.
using DimRef = std::int32_t;

/// Terms in an order in which each comes after its operands: data, evaluated in one sweep.
class DimTable {
 public:
  struct Term {
    DimOp op = DimOp::number;
    DimRef a = 0;
    DimRef b = 0;
    std::int64_t value = 0;
    bool operator==(const Term&) const = default;
  };

  Dim input_size(int input, int axis) { return intern({DimOp::input_size, input, axis, 0}); }
  Dim input_value(int input) { return intern({DimOp::input_value, input, 0, 0}); }
  Dim apply(DimOp op, Dim a, Dim b);

  /// The term of `dim`, which must not be unknown; numbers become terms.
  DimRef ref(Dim dim);
  Dim dim(DimRef ref);

  /// Declares two sizes equal from here on: later terms use one of them (a number where there is
  /// one). Gives false when both are different numbers.
  bool unify(Dim a, Dim b);
  Dim canonical(Dim dim);
  /// How often `unify` learnt something.
  std::int32_t unions() const { return unions_; }

  std::span<const Term> terms() const { return terms_; }

  /// Fills values[i] for each term i; leaves (input_size, input_value) must be filled before.
  void evaluate(std::span<std::int64_t> values) const;

  /// "in0.shape[1]", "(in0.shape[0] * 4)"
  std::string to_text(Dim dim) const;

 private:
  /// number + sum of coefficient * term: the normal form of sums.
  struct Linear {
    std::int64_t number = 0;
    std::vector<std::pair<DimRef, std::int64_t>> terms;
    void add(DimRef term, std::int64_t coefficient);
  };
  /// coefficient * product of terms: the normal form of products.
  struct Product {
    std::int64_t coefficient = 1;
    std::vector<DimRef> factors;
  };
  struct Hash {
    std::size_t operator()(const Term& term) const;
  };

  Dim intern(Term term);
  DimRef intern_ref(Term term);
  DimRef find(DimRef ref);
  DimRef rebuilt(DimRef ref);
  Linear linear(Dim dim, std::int64_t scale = 1);
  void flatten(DimRef ref, std::int64_t scale, Linear& into);
  Product product(Dim dim);
  void flatten(DimRef ref, Product& into);
  Dim build(Linear form);
  Dim build(Product form);
  Dim multiply(Dim a, Dim b);
  Dim divide(Dim a, Dim b);
  Dim modulo(Dim a, Dim b);
  Dim least(DimOp op, Dim a, Dim b);
  bool non_negative(const Linear& form) const;

  std::vector<Term> terms_;
  std::vector<DimRef> parent_;  ///< of unify
  std::unordered_map<Term, DimRef, Hash> index_;
  struct Facts {
    std::uint16_t width = 1;  ///< atoms in the normal form
    bool non_negative = false;
    bool opaque = false;       ///< too wide: itself an atom
    std::int32_t rebuilt = 0;  ///< `unions_` when its operands were last made canonical
  };
  std::vector<Facts> facts_;
  std::int32_t unions_ = 0;
};

}  // namespace croton
