#include "runtime/dim.h"

#include <fmt/format.h>

#include <algorithm>

#include "croton/error.h"

namespace croton {
namespace {

/// Sums and products of more atoms than this are not taken apart, which keeps the work per term
/// bounded.
constexpr int kMaxWidth = 32;

using U = std::uint64_t;
using S = std::int64_t;

// Sizes that overflow are found where memory is asked for; until then they wrap.
constexpr S wrap_add(S a, S b) { return static_cast<S>(U(a) + U(b)); }
constexpr S wrap_sub(S a, S b) { return static_cast<S>(U(a) - U(b)); }
constexpr S wrap_mul(S a, S b) { return static_cast<S>(U(a) * U(b)); }

constexpr S div_down(S a, S b) {
  if (b == 0) return 0;
  if (b == -1) return wrap_sub(0, a);
  const S q = a / b;
  return (a % b != 0 && (a % b < 0) != (b < 0)) ? q - 1 : q;
}

constexpr S mod_down(S a, S b) {
  if (b == 0 || b == -1) return 0;
  const S r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}

S fold(DimOp op, S a, S b) {
  switch (op) {
    case DimOp::add:
      return wrap_add(a, b);
    case DimOp::sub:
      return wrap_sub(a, b);
    case DimOp::mul:
      return wrap_mul(a, b);
    case DimOp::floor_div:
      return div_down(a, b);
    case DimOp::floor_mod:
      return mod_down(a, b);
    case DimOp::min:
      return std::min(a, b);
    case DimOp::max:
      return std::max(a, b);
    case DimOp::less:
      return a < b;
    case DimOp::number:
    case DimOp::input_size:
    case DimOp::input_value:
      break;
  }
  throw InternalError("internal error: a leaf of a size has no operands");
}

Dim combine(DimOp op, Dim a, Dim b, DimTable* table) {
  if (op == DimOp::mul && (a.is(0) || b.is(0))) return 0;
  if (a.is_unknown() || b.is_unknown()) return {};
  if (a.is_number() && b.is_number()) return fold(op, a.number(), b.number());
  return table->apply(op, a, b);
}

bool is_leaf(DimOp op) { return op <= DimOp::input_value; }

}  // namespace

#define CROTON_DIM_OPERATOR(name, op)                                           \
  Dim name(Dim a, Dim b) {                                                      \
    return combine(DimOp::op, a, b, a.table_ != nullptr ? a.table_ : b.table_); \
  }
CROTON_DIM_OPERATOR(operator+, add)
CROTON_DIM_OPERATOR(operator-, sub)
CROTON_DIM_OPERATOR(operator*, mul)
CROTON_DIM_OPERATOR(floor_div, floor_div)
CROTON_DIM_OPERATOR(floor_mod, floor_mod)
CROTON_DIM_OPERATOR(min, min)
CROTON_DIM_OPERATOR(max, max)
CROTON_DIM_OPERATOR(less, less)
#undef CROTON_DIM_OPERATOR

std::size_t DimTable::Hash::operator()(const Term& term) const {
  U h = U(term.op) * 0x9e3779b97f4a7c15ull;
  h = (h ^ U(std::uint32_t(term.a))) * 0x9e3779b97f4a7c15ull;
  h = (h ^ U(std::uint32_t(term.b))) * 0x9e3779b97f4a7c15ull;
  h = (h ^ U(term.value)) * 0x9e3779b97f4a7c15ull;
  return h ^ (h >> 32);
}

DimRef DimTable::intern_ref(Term term) {
  const auto [place, fresh] = index_.try_emplace(term, static_cast<DimRef>(terms_.size()));
  if (!fresh) return place->second;
  Facts facts;
  facts.rebuilt = unions_;
  const auto of = [&](DimRef r) -> const Facts& { return facts_[static_cast<std::size_t>(r)]; };
  int width = 1;
  switch (term.op) {
    case DimOp::number:
      width = 0, facts.non_negative = term.value >= 0;
      break;
    case DimOp::input_size:
    case DimOp::less:
      facts.non_negative = true;
      break;
    case DimOp::input_value:
      break;
    case DimOp::sub:
      width = of(term.a).width + of(term.b).width;
      break;
    case DimOp::add:
    case DimOp::mul:
      width = of(term.a).width + of(term.b).width;
      [[fallthrough]];
    case DimOp::floor_div:
    case DimOp::min:
      facts.non_negative = of(term.a).non_negative && of(term.b).non_negative;
      break;
    case DimOp::floor_mod:
      facts.non_negative = of(term.b).non_negative;
      break;
    case DimOp::max:
      facts.non_negative = of(term.a).non_negative || of(term.b).non_negative;
      break;
  }
  facts.opaque = width > kMaxWidth;
  facts.width = static_cast<std::uint16_t>(facts.opaque ? 1 : width);
  terms_.push_back(term);
  parent_.push_back(place->second);
  facts_.push_back(facts);
  return place->second;
}

Dim DimTable::intern(Term term) { return dim(find(intern_ref(term))); }

DimRef DimTable::ref(Dim dim) {
  internal_check(!dim.is_unknown(), "an unknown size has no term");
  if (dim.is_number()) return intern_ref({DimOp::number, 0, 0, dim.number()});
  return static_cast<DimRef>(dim.value_);
}

Dim DimTable::dim(DimRef ref) {
  const Term& term = terms_[static_cast<std::size_t>(ref)];
  if (term.op == DimOp::number) return term.value;
  Dim d;
  d.kind_ = Dim::Kind::term;
  d.table_ = this;
  d.value_ = ref;
  return d;
}

DimRef DimTable::find(DimRef ref) {
  while (parent_[static_cast<std::size_t>(ref)] != ref) {
    DimRef& up = parent_[static_cast<std::size_t>(ref)];
    up = parent_[static_cast<std::size_t>(up)];
    ref = up;
  }
  return ref;
}

/// The representative of `ref` after its operands were replaced by theirs.
DimRef DimTable::rebuilt(DimRef ref) {
  std::vector<DimRef> stack = {ref};
  while (!stack.empty()) {
    const DimRef r = find(stack.back());
    const Term term = terms_[static_cast<std::size_t>(r)];
    Facts& facts = facts_[static_cast<std::size_t>(r)];
    if (facts.rebuilt == unions_ || is_leaf(term.op)) {
      stack.pop_back();
      continue;
    }
    const std::size_t before = stack.size();
    for (DimRef operand : {term.a, term.b}) {
      const DimRef o = find(operand);
      if (facts_[static_cast<std::size_t>(o)].rebuilt != unions_ &&
          !is_leaf(terms_[static_cast<std::size_t>(o)].op)) {
        stack.push_back(o);
      }
    }
    if (stack.size() != before) continue;
    facts.rebuilt = unions_;
    stack.pop_back();
    const DimRef a = find(term.a), b = find(term.b);
    if (a == term.a && b == term.b) continue;
    const DimRef other = find(this->ref(apply(term.op, dim(a), dim(b))));
    // The same value in new terms; no new equality, so what was rebuilt stays so.
    if (other != r) parent_[static_cast<std::size_t>(r)] = other;
  }
  return find(ref);
}

Dim DimTable::canonical(Dim d) {
  if (d.is_unknown() || d.is_number()) return d;
  return dim(rebuilt(static_cast<DimRef>(d.value_)));
}

bool DimTable::unify(Dim a, Dim b) {
  if (a.is_unknown() || b.is_unknown()) return true;
  a = canonical(a);
  b = canonical(b);
  if (a.same(b)) return true;
  Linear difference = linear(a);
  for (const auto& [term, coefficient] : linear(b, -1).terms) difference.add(term, coefficient);
  difference.number = wrap_sub(difference.number, linear(b).number);
  if (difference.terms.empty()) return difference.number == 0;

  // x + 2 == y + 2 says x == y, and 2 * x == 6 says x == 3.
  const auto [x, c] = difference.terms.front();
  if (difference.terms.size() == 1 && mod_down(difference.number, c) == 0) {
    a = dim(x);
    b = div_down(wrap_sub(0, difference.number), c);
  } else if (difference.terms.size() == 1) {
    return false;
  } else if (difference.terms.size() == 2 && difference.number == 0 &&
             c == wrap_sub(0, difference.terms.back().second)) {
    a = dim(x);
    b = dim(difference.terms.back().first);
  }
  DimRef keep = ref(a), drop = ref(b);
  if (!a.is_number() && (b.is_number() || drop < keep)) std::swap(keep, drop);
  facts_[static_cast<std::size_t>(keep)].non_negative |=
      facts_[static_cast<std::size_t>(drop)].non_negative;
  parent_[static_cast<std::size_t>(drop)] = keep;
  ++unions_;
  return true;
}

void DimTable::Linear::add(DimRef term, std::int64_t coefficient) {
  for (auto t = terms.begin(); t != terms.end(); ++t) {
    if (t->first != term) continue;
    t->second = wrap_add(t->second, coefficient);
    if (t->second == 0) terms.erase(t);
    return;
  }
  if (coefficient != 0) terms.emplace_back(term, coefficient);
}

void DimTable::flatten(DimRef ref, std::int64_t scale, Linear& into) {
  ref = find(ref);
  const Term term = terms_[static_cast<std::size_t>(ref)];
  if (term.op == DimOp::number) {
    into.number = wrap_add(into.number, wrap_mul(scale, term.value));
    return;
  }
  if (!facts_[static_cast<std::size_t>(ref)].opaque) {
    if (term.op == DimOp::add || term.op == DimOp::sub) {
      flatten(term.a, scale, into);
      flatten(term.b, term.op == DimOp::add ? scale : wrap_sub(0, scale), into);
      return;
    }
    const Term& b = terms_[static_cast<std::size_t>(term.b)];
    if (term.op == DimOp::mul && b.op == DimOp::number) {
      flatten(term.a, wrap_mul(scale, b.value), into);
      return;
    }
  }
  into.add(ref, scale);
}

DimTable::Linear DimTable::linear(Dim d, std::int64_t scale) {
  Linear form;
  if (d.is_number()) {
    form.number = wrap_mul(d.number(), scale);
  } else {
    flatten(static_cast<DimRef>(d.value_), scale, form);
  }
  return form;
}

Dim DimTable::build(Linear form) {
  std::sort(form.terms.begin(), form.terms.end());
  if (form.terms.empty()) return form.number;
  const auto scaled = [&](DimRef term, S c) {
    return c == 1 ? term : intern_ref({DimOp::mul, term, ref(c), 0});
  };
  // What is added comes first, so that a - b reads like that.
  DimRef sum = -1;
  for (const auto& [term, c] : form.terms) {
    if (c <= 0) continue;
    const DimRef t = scaled(term, c);
    sum = sum < 0 ? t : intern_ref({DimOp::add, sum, t, 0});
  }
  if (sum < 0 || form.number > 0) {
    const DimRef n = ref(form.number);
    sum = sum < 0 ? n : intern_ref({DimOp::add, sum, n, 0});
    form.number = 0;
  }
  for (const auto& [term, c] : form.terms) {
    if (c < 0) sum = intern_ref({DimOp::sub, sum, scaled(term, wrap_sub(0, c)), 0});
  }
  if (form.number < 0) {
    sum = intern_ref({DimOp::sub, sum, ref(wrap_sub(0, form.number)), 0});
  }
  return dim(find(sum));
}

void DimTable::flatten(DimRef ref, Product& into) {
  ref = find(ref);
  const Term term = terms_[static_cast<std::size_t>(ref)];
  if (term.op == DimOp::number) {
    into.coefficient = wrap_mul(into.coefficient, term.value);
  } else if (term.op == DimOp::mul && !facts_[static_cast<std::size_t>(ref)].opaque) {
    flatten(term.a, into);
    flatten(term.b, into);
  } else {
    into.factors.push_back(ref);
  }
}

DimTable::Product DimTable::product(Dim d) {
  Product form;
  if (d.is_number()) {
    form.coefficient = d.number();
  } else {
    flatten(static_cast<DimRef>(d.value_), form);
  }
  std::sort(form.factors.begin(), form.factors.end());
  return form;
}

Dim DimTable::build(Product form) {
  if (form.factors.empty() || form.coefficient == 0) return form.coefficient;
  std::sort(form.factors.begin(), form.factors.end());
  DimRef result = form.factors.front();
  for (std::size_t i = 1; i < form.factors.size(); ++i) {
    result = intern_ref({DimOp::mul, result, form.factors[i], 0});
  }
  Linear scaled;
  flatten(result, form.coefficient, scaled);
  return build(std::move(scaled));
}

Dim DimTable::multiply(Dim a, Dim b) {
  if (a.is_number()) std::swap(a, b);
  if (b.is_number()) return build(linear(a, b.number()));
  Product p = product(a), q = product(b);
  p.coefficient = wrap_mul(p.coefficient, q.coefficient);
  p.factors.insert(p.factors.end(), q.factors.begin(), q.factors.end());
  return build(std::move(p));
}

Dim DimTable::divide(Dim a, Dim b) {
  if (b.is(0) || a.is(0)) return 0;
  if (b.is(1)) return a;
  if (b.is_number() && b.number() > 0) {
    const S n = b.number();
    Linear whole, rest;
    const Linear all = linear(a);
    for (const auto& [term, c] : all.terms) {
      if (c % n == 0) {
        whole.add(term, c / n);
      } else {
        rest.add(term, c);
      }
    }
    whole.number = div_down(all.number, n);
    rest.number = mod_down(all.number, n);
    if (rest.terms.empty()) return build(std::move(whole));
    Dim inner = build(std::move(rest));
    S divisor = n;
    const Term top = inner.is_number() ? Term{} : terms_[static_cast<std::size_t>(inner.value_)];
    if (top.op == DimOp::floor_div && dim(top.b).is_number() && dim(top.b).number() > 0) {
      inner = dim(find(top.a));
      divisor = wrap_mul(divisor, dim(top.b).number());
    }
    whole.add(find(intern_ref({DimOp::floor_div, ref(inner), ref(divisor), 0})), 1);
    return build(std::move(whole));
  }
  // (a * b) / a -> b. A size of 0 that is divided by itself comes out as 1, which is what a
  // reshape of no elements wants.
  Product p = product(a), q = product(b), top, bottom;
  top.coefficient = p.coefficient;
  bottom.coefficient = q.coefficient;
  std::set_difference(p.factors.begin(), p.factors.end(), q.factors.begin(), q.factors.end(),
                      std::back_inserter(top.factors));
  std::set_difference(q.factors.begin(), q.factors.end(), p.factors.begin(), p.factors.end(),
                      std::back_inserter(bottom.factors));
  if (top.factors.size() == p.factors.size()) {
    return intern({DimOp::floor_div, ref(a), ref(b), 0});
  }
  return combine(DimOp::floor_div, build(std::move(top)), build(std::move(bottom)), this);
}

Dim DimTable::modulo(Dim a, Dim b) {
  if (b.is(0) || b.is(1) || a.is(0)) return 0;
  if (b.is_number() && b.number() > 0) {
    Linear rest;
    const Linear all = linear(a);
    for (const auto& [term, c] : all.terms) {
      if (c % b.number() != 0) rest.add(term, c);
    }
    rest.number = mod_down(all.number, b.number());
    if (rest.terms.empty()) return rest.number;
    a = build(std::move(rest));
  } else {
    const Product p = product(a), q = product(b);
    if (q.coefficient != 0 && p.coefficient % q.coefficient == 0 &&
        std::includes(p.factors.begin(), p.factors.end(), q.factors.begin(), q.factors.end())) {
      return 0;
    }
  }
  return intern({DimOp::floor_mod, ref(a), ref(b), 0});
}

bool DimTable::non_negative(const Linear& form) const {
  return form.number >= 0 && std::all_of(form.terms.begin(), form.terms.end(), [&](const auto& t) {
           return t.second > 0 && facts_[static_cast<std::size_t>(t.first)].non_negative;
         });
}

Dim DimTable::least(DimOp op, Dim a, Dim b) {
  Linear difference = linear(a), negated = linear(b);
  for (const auto& [term, c] : linear(b, -1).terms) difference.add(term, c);
  difference.number = wrap_sub(difference.number, linear(b).number);
  for (const auto& [term, c] : linear(a, -1).terms) negated.add(term, c);
  negated.number = wrap_sub(negated.number, linear(a).number);
  if (op == DimOp::less) {
    if (non_negative(difference)) return 0;
    negated.number = wrap_sub(negated.number, 1);
    if (non_negative(negated)) return 1;
    return intern({op, ref(a), ref(b), 0});
  }
  if (non_negative(difference)) return op == DimOp::min ? b : a;
  if (non_negative(negated)) return op == DimOp::min ? a : b;
  DimRef x = ref(a), y = ref(b);
  for (int i = 0; i < 2; ++i, std::swap(x, y)) {
    const Term& t = terms_[static_cast<std::size_t>(x)];
    if (t.op == op && (find(t.a) == y || find(t.b) == y)) return dim(x);
  }
  if (y < x) std::swap(x, y);
  return intern({op, x, y, 0});
}

Dim DimTable::apply(DimOp op, Dim a, Dim b) {
  if (a.is_unknown() || b.is_unknown()) return {};
  if (a.is_number() && b.is_number()) return fold(op, a.number(), b.number());
  if (!a.is_number()) a = dim(find(static_cast<DimRef>(a.value_)));
  if (!b.is_number()) b = dim(find(static_cast<DimRef>(b.value_)));
  if (a.is_number() && b.is_number()) return fold(op, a.number(), b.number());
  switch (op) {
    case DimOp::add:
    case DimOp::sub: {
      const S sign = op == DimOp::add ? 1 : -1;
      Linear sum = linear(a);
      const Linear other = linear(b, sign);
      for (const auto& [term, c] : other.terms) sum.add(term, c);
      sum.number = wrap_add(sum.number, other.number);
      return build(std::move(sum));
    }
    case DimOp::mul:
      return multiply(a, b);
    case DimOp::floor_div:
      return divide(a, b);
    case DimOp::floor_mod:
      return modulo(a, b);
    case DimOp::min:
    case DimOp::max:
    case DimOp::less:
      return least(op, a, b);
    case DimOp::number:
    case DimOp::input_size:
    case DimOp::input_value:
      break;
  }
  throw InternalError("internal error: a leaf of a size has no operands");
}

void DimTable::evaluate(std::span<std::int64_t> values) const {
  internal_check(values.size() == terms_.size(), "one value for each term of a size");
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const Term& t = terms_[i];
    if (t.op == DimOp::number) {
      values[i] = t.value;
    } else if (!is_leaf(t.op)) {
      values[i] =
          fold(t.op, values[static_cast<std::size_t>(t.a)], values[static_cast<std::size_t>(t.b)]);
    }
  }
}

namespace {

std::string text_of(std::span<const DimTable::Term> terms, DimRef ref, int depth) {
  const DimTable::Term& t = terms[static_cast<std::size_t>(ref)];
  switch (t.op) {
    case DimOp::number:
      return fmt::format("{}", t.value);
    case DimOp::input_size:
      return fmt::format("in{}.shape[{}]", t.a, t.b);
    case DimOp::input_value:
      return fmt::format("in{}", t.a);
    default:
      break;
  }
  if (depth > 8) return "...";  // shared operands would make the text grow without bound
  const std::string a = text_of(terms, t.a, depth + 1), b = text_of(terms, t.b, depth + 1);
  switch (t.op) {
    case DimOp::add:
      return fmt::format("({} + {})", a, b);
    case DimOp::sub:
      return fmt::format("({} - {})", a, b);
    case DimOp::mul:
      return fmt::format("({} * {})", a, b);
    case DimOp::floor_div:
      return fmt::format("({} // {})", a, b);
    case DimOp::floor_mod:
      return fmt::format("({} % {})", a, b);
    case DimOp::min:
      return fmt::format("min({}, {})", a, b);
    case DimOp::max:
      return fmt::format("max({}, {})", a, b);
    default:
      return fmt::format("({} < {})", a, b);
  }
}

}  // namespace

std::string DimTable::to_text(Dim d) const {
  if (d.is_unknown()) return "?";
  if (d.is_number()) return fmt::format("{}", d.number());
  return text_of(terms_, static_cast<DimRef>(d.value_), 0);
}

}  // namespace croton
