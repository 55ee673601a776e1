// Each op that is cut along rows gives what one device gives: there, ops are compared with values
// from outside.
#include <catch2/catch.hpp>

#include "tests/parallel/parallel.h"

using namespace croton;
using namespace croton::test;

namespace {

struct Symbols {
  Variable x = tensor("x", DType::float32, {kAnyDim, 4});     // rows
  Variable y = vector("y");                                   // rows
  Variable k = vector("k", DType::int64);                     // rows, 0 to 3
  Variable z = tensor("z", DType::float32, {kAnyDim, 3, 4});  // rows
  Variable v = vector("v");                                   // all, as long as there are rows
  Variable w = tensor("w", DType::float32, {4, 5});           // all
};

using Expressions = std::vector<std::pair<const char*, Variable>>;

Expressions expressions(const Symbols& s) {
  const auto& [x, y, k, z, v, w] = s;
  const Variable n = x.shape(0);
  const Variable positions = arange(n).astype(DType::float32);
  const Variable table = w * 2;
  return {
      {"what all have, by rows", y * v},
      {"its gradient", grad(sum(square(y * v)), v)},
      {"positions", y + positions},
      {"positions as rows", x * reshape(positions, {n, 1})},
      {"a size", y / n.astype(DType::float32)},
      {"a product with all", dot(x, w)},
      {"a product over rows", dot(transpose(x), x)},
      {"a product of rows with rows", dot(x, transpose(x))},
      {"a product over rows with what all have", dot(v, x)},
      {"batched products", matmul(z, transpose(z, {0, 2, 1}))},
      {"batched products with all", matmul(z, w)},
      {"einsum", einsum("nij,nj->ni", {z, x})},
      {"einsum over rows", einsum("nij,n->ij", {z, y})},
      {"sums", sum(z, {0, 2})},
      {"sums that stay", sum(x, 1, {.keepdims = true}) + x},
      {"products", prod(x * 0.5f, 0)},
      {"largest", max(z, 0)},
      {"smallest", min(y)},
      {"any and all", concatenate({any(gt(x, 0.5f), 0), all(lt(x, 0.9f), 0)}, 0)},
      {"variance", var(x, 0, {.ddof = 1})},
      {"argmax beside rows", argmax(x, 1)},
      {"argmax over rows", argmax(x, 0)},
      {"softmax", softmax(x, 1)},
      {"log_softmax over rows", log_softmax(x, 0)},
      {"logsumexp", logsumexp(z, 2)},
      {"running sums beside rows", cumsum(x, 1)},
      {"running sums over rows", cumsum(y, 0)},
      {"sorted beside rows", sort(x, 1)},
      {"places of entries", argsort(x, 1)},
      {"rows of a table", table(k)},
      {"its gradient by rows", grad(sum(table(k) * sum(x, 1, {.keepdims = true})), w)},
      {"columns", take(x, Array{3, 0, 0}, 1)},
      {"an entry of each row", take_along_axis(x, reshape(k, {n, 1}), 1)},
      {"rows picked", x(k % n)},
      {"cross-entropy", mean(cross_entropy_from_logits(x, k))},
      {"its gradient by logits", grad(mean(cross_entropy_from_logits(x, k)), x)},
      {"slices beside rows", z(Slice(), Slice(1, none), Slice(none, none, 2))},
      {"slices of rows", x(Slice(1, none, 2))},
      {"a row", x(0)},
      {"written beside rows", set_subtensor(x(Slice(), 1), y)},
      {"added beside rows", inc_subtensor(z(Slice(), 0), x)},
      {"joined beside rows", concatenate({x, x * 2}, 1)},
      {"joined along rows", concatenate({y, v}, 0)},
      {"other order", transpose(z, {2, 0, 1})},
      {"merged axes", reshape(z, {n, 12})},
      {"merged rows", reshape(z, {-1, 4})},
      {"merged rows and back", reshape(exp(reshape(z, {-1, 4})), {n, 3, -1})},
      {"flat", flatten(x)},
      {"ones like rows", ones_like(x) + broadcast_to(sum(y), {n, 4})},
      {"searched", searchsorted(Array{0, 1, 2}, k)},
      {"one-hot", one_hot(k, 4)},
      {"reversed rows", flip(y, 0)},
      {"a norm", norm(x)},
      {"shape", shape(z)},
      {"rows squared", square(n)},
      {"below the diagonal", tril(x)},
      {"sums before rows", sum(transpose(z, {2, 0, 1}), 0)},
      {"sums around rows", sum(transpose(z, {2, 0, 1}), {0, 2})},
      {"logsumexp before rows", logsumexp(transpose(x), 0)},
      {"rows of a table at a matrix of places", table(stack({k, 3 - k}))},
      {"columns of a table by rows", take(table, k, 1)},
      {"softmax before rows", softmax(transpose(x), 0)},
      {"joined before rows", concatenate({transpose(x), transpose(x)}, 0)},
      {"rows in a second factor", dot(transpose(w), transpose(x))},
      {"a column of columns", take(transpose(x), Array{2, 0}, 0)},
  };
}

}  // namespace

TEST_CASE("each rule of cutting keeps the values of one device", "[data_parallel]") {
  const Symbols s;
  const Expressions all = expressions(s);
  std::vector<ParallelOutput> outputs;
  std::vector<Variable> plain;
  for (const auto& [name, value] : all) {
    outputs.emplace_back(name, value);
    plain.push_back(value);
  }
  const DataParallel f = data_parallel({s.x, s.y, s.k, s.z, to_all(s.v), to_all(s.w)}, outputs,
                                       {.contexts = first_contexts(3)});
  const Function one = function({s.x, s.y, s.k, s.z, s.v, s.w}, plain);
  for (const int rows : {2, 3, 7}) {
    std::vector<std::int64_t> labels;
    for (int i = 0; i < rows; ++i) labels.push_back(i * 3 % 4);
    const std::vector<Array> arguments{
        numbers({rows, 4}, 1),    numbers({rows}, 2), Array::from<std::int64_t>(labels),
        numbers({rows, 3, 4}, 3), numbers({rows}, 4), numbers({4, 5}, 5)};
    const Outputs wanted = one.call(arguments);
    for (const int slices : {1, 2}) {
      const Outputs got = f.call(arguments, {.num_slices = slices});
      for (std::size_t i = 0; i < all.size(); ++i) {
        INFO(all[i].first << ", " << rows << " rows, " << slices << " slices");
        // Sums of at most 28 terms of sizes up to 10.
        CHECK(within(got[i], wanted[i], 2 * 28 * 0x1p-24));
      }
    }
  }
}
