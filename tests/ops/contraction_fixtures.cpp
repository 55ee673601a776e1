// einsum and products of batches against NumPy (tests/data/make_product_fixtures.py), and what is
// refused.
#include "croton/error.h"
#include "croton/linalg.h"
#include "tests/ops/array_fixtures.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

Builders builders() {
  Builders b;
  for (const ArrayBlock& block : read_array_blocks("contraction_values.txt")) {
    if (!block.title.starts_with("einsum ")) continue;
    const std::string subscripts = block.title.substr(7);
    b[block.title] = [subscripts](const Operands& x) { return Operands{einsum(subscripts, x)}; };
  }
  b["vecdot"] = [](const Operands& x) { return Operands{vecdot(x[0], x[1])}; };
  b["matvec"] = [](const Operands& x) { return Operands{matvec(x[0], x[1])}; };
  b["vecmat"] = [](const Operands& x) { return Operands{vecmat(x[0], x[1])}; };
  b["matmul"] = [](const Operands& x) { return Operands{matmul(x[0], x[1])}; };
  b["batched_dot"] = [](const Operands& x) { return Operands{batched_dot(x[0], x[1])}; };
  b["batched_tensordot 1,2 2,1"] = [](const Operands& x) {
    return Operands{batched_tensordot(x[0], x[1], {1, 2}, {2, 1})};
  };
  return b;
}

}  // namespace

TEST_CASE("contractions give NumPy's values", "[ops][product][fixtures]") {
  check_fixtures("contraction_values.txt", builders(), 1e-5);
}

TEST_CASE("gradients of contractions", "[ops][product][fixtures][grad]") {
  check_fixture_gradients("contraction_values.txt", builders());
}

TEST_CASE("the greatest contraction is a matrix product", "[ops][product]") {
  const Variable y = einsum("aij,ajk->aik", {floats({2, 3, 4}), floats({2, 4, 5})});
  const Variable outputs[] = {y};
  int products = 0;
  for (const Node* node : topological_order(outputs)) products += node->op->name == "gemm";
  CHECK(products == 1);
}

TEST_CASE("contractions that cannot be are refused", "[ops][product]") {
  const Variable x = floats({2, 3});
  const Variable v = floats({3}, "v");
  CHECK_THROWS_WITH(einsum("ij,j", {x}), Contains("[einsum]") && Contains("2 operands: got 1") &&
                                             Contains("contraction_fixtures.cpp"));
  CHECK_THROWS_WITH(einsum("ijk", {x}), Contains("has 3 axes: got 2"));
  CHECK_THROWS_WITH(einsum("i", {x}), Contains("has 1 axes: got 2"));
  CHECK_THROWS_WITH(einsum("ij,i->j", {x, v}), Contains("sizes 2 and 3"));
  CHECK_THROWS_WITH(einsum("ii->i", {x}), Contains("sizes 2 and 3"));
  CHECK_THROWS_WITH(einsum("ij->k", {x}), Contains("'k', which no operand has"));
  CHECK_THROWS_WITH(einsum("ij->ii", {x}), Contains("'i' twice"));
  CHECK_THROWS_WITH(einsum("...j->j", {x}), Contains("needs the ellipsis"));
  CHECK_THROWS_WITH(einsum("i1->i", {x}), Contains("'1' at position 1"));
  CHECK_THROWS_WITH(einsum("i..", {x}), Contains("three dots"));
  CHECK_THROWS_WITH(einsum("ij->ij->", {x}), Contains("behind the subscripts"));
  CHECK_THROWS_WITH(einsum("", std::vector<Variable>{}), Contains("at least one operand"));
  CHECK_THROWS_WITH(einsum("i", {input(DType::boolean, {2})}), Contains("cast them"));
  CHECK_THROWS_WITH(vecdot(x, floats({})), Contains("[vecdot]") && Contains("at least 1 axes"));
  CHECK_THROWS_WITH(matvec(v, v), Contains("[matvec]") && Contains("at least 2 axes"));
  CHECK_THROWS_WITH(batched_dot(v, v), Contains("[batched_dot]"));
  CHECK_THROWS_WITH(batched_tensordot(x, x, {0}, {0}), Contains("axis 0 is that of the batch"));
}
