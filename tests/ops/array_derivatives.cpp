// First and second derivatives of functions on arrays against JAX's
// (tests/data/make_array_gradient_fixtures.py): by the references of the ops that they are made of,
// and compiled; and whether each op that has a gradient is in one of them.
#include "croton/cumulative.h"
#include "croton/indexing.h"
#include "croton/linalg.h"
#include "croton/nn.h"
#include "croton/remat.h"
#include "croton/sort.h"
#include "croton/statistics.h"
#include "tests/ops/array_fixtures.h"

using namespace croton;
using namespace croton::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

template <class F>
auto made(F f) {
  return [f](const Operands& x) { return Operands{f(x)}; };
}

void add_reductions(Builders& b) {
  b["sum"] = made([](auto& x) { return sum(x[0]); });
  b["sum 0"] = made([](auto& x) { return sum(x[0], 0); });
  b["sum 1 keepdims"] = made([](auto& x) { return sum(x[0], 1, {.keepdims = true}); });
  b["mean 1"] = made([](auto& x) { return mean(x[0], 1); });
  b["prod"] = made([](auto& x) { return prod(x[0]); });
  b["prod 1"] = made([](auto& x) { return prod(x[0], 1); });
  b["max"] = made([](auto& x) { return max(x[0]); });
  b["max 0"] = made([](auto& x) { return max(x[0], 0); });
  b["min 1"] = made([](auto& x) { return min(x[0], 1); });
  b["var"] = made([](auto& x) { return var(x[0]); });
  b["var 0 ddof 1"] = made([](auto& x) { return var(x[0], 0, {.ddof = 1}); });
  b["std 1"] = made([](auto& x) { return croton::std(x[0], 1); });
  const Variable mask = make_constant(Array{true, false, true, true}, Loc::current());
  b["sum where"] = made([=](auto& x) { return sum(x[0], 1, {.where = mask}); });
  b["mean where"] = made([=](auto& x) { return mean(x[0], 1, {.where = mask}); });
  b["ptp 1"] = made([](auto& x) { return ptp(x[0], 1); });
  b["average 0"] = made([](auto& x) { return average(x[0], x[1], 0); });
  b["norm"] = made([](auto& x) { return norm(x[0]); });
  b["norm 0.5 1"] = made([](auto& x) { return norm(x[0], 0.5, 1); });
  for (const int p : {1, 2, 3}) {
    b["norm " + std::to_string(p) + " 1"] = made([p](auto& x) { return norm(x[0], p, 1); });
  }
  b["norm inf 0"] = made([](auto& x) { return norm(x[0], kInf, 0); });
  b["norm -inf 0"] = made([](auto& x) { return norm(x[0], -kInf, 0); });
  b["norm fro"] = made([](auto& x) { return norm(x[0], "fro", {0, 1}); });
  b["norm 1 of matrices"] = made([](auto& x) { return norm(x[0], 1, {0, 1}); });
  b["logsumexp"] = made([](auto& x) { return logsumexp(x[0], none, {}); });
  b["logsumexp 1 keepdims"] = made([](auto& x) { return logsumexp(x[0], 1, true); });
  b["logsumexp of -inf"] = made([](auto& x) { return logsumexp(x[0], 1); });
  b["nansum 1"] = made([](auto& x) { return nansum(x[0], 1); });
  b["nanprod 1"] = made([](auto& x) { return nanprod(x[0], 1); });
  b["nanmean 1"] = made([](auto& x) { return nanmean(x[0], 1); });
  b["nanvar 1"] = made([](auto& x) { return nanvar(x[0], 1); });
  b["nanstd 1"] = made([](auto& x) { return nanstd(x[0], 1); });
  b["nanmax 1"] = made([](auto& x) { return nanmax(x[0], 1); });
  b["nanmin 1"] = made([](auto& x) { return nanmin(x[0], 1); });
}

void add_shapes(Builders& b) {
  b["broadcast_to"] = made([](auto& x) { return broadcast_to(x[0], {4, 2, 3}); });
  b["transpose"] = made([](auto& x) { return transpose(x[0], {2, 0, 1}); });
  b["expand_dims"] = made([](auto& x) { return expand_dims(x[0], 1); });
  b["reshape"] = made([](auto& x) { return reshape(x[0], {3, 2}); });
  b["concatenate 1"] = made([](auto& x) { return concatenate({x[0], x[1], x[2]}, 1); });
  b["stack 1"] = made([](auto& x) { return stack({x[0], x[1]}, 1); });
  b["split 1"] = made([](auto& x) { return split(x[0], {1, 2}, 1)[1]; });
  b["tile 2,1"] = made([](auto& x) { return tile(x[0], {2, 1}); });
  b["repeat"] = made([](auto& x) { return repeat(x[0], Array{2, 0, 3}, 1); });
  b["roll"] = made([](auto& x) { return roll(x[0], {2}, 1); });
  b["flip 0"] = made([](auto& x) { return flip(x[0], 0); });
  b["rot90"] = made([](auto& x) { return rot90(x[0]); });
  const std::pair<std::string, PadMode> modes[] = {{"constant", PadMode::constant},
                                                   {"edge", PadMode::edge},
                                                   {"linear_ramp", PadMode::linear_ramp},
                                                   {"maximum", PadMode::maximum},
                                                   {"mean", PadMode::mean},
                                                   {"minimum", PadMode::minimum},
                                                   {"reflect", PadMode::reflect},
                                                   {"symmetric", PadMode::symmetric},
                                                   {"wrap", PadMode::wrap}};
  for (const auto& [name, mode] : modes) {
    b["pad " + name] = made([mode = mode](auto& x) { return pad(x[0], {{2, 3}, {1, 0}}, mode); });
  }
  b["diagonal"] = made([](auto& x) { return diagonal(x[0], 1); });
  b["diag"] = made([](auto& x) { return diag(x[0], -1); });
  b["trace"] = made([](auto& x) { return trace(x[0]); });
  b["tril"] = made([](auto& x) { return tril(x[0], -1); });
  b["triu"] = made([](auto& x) { return triu(x[0], 1); });
  b["fill_diagonal"] = made([](auto& x) { return fill_diagonal(x[0], x[1]); });
  b["linspace"] = made([](auto& x) { return linspace(x[0], x[1], 5); });
  b["meshgrid"] = made([](auto& x) {
    const std::vector<Variable> grid = meshgrid({x[0], x[1]});
    return grid[0] * grid[1];
  });
  b["trapezoid"] = made([](auto& x) { return trapezoid(x[0], x[1]); });
  b["interp"] = made([](auto& x) { return interp(x[0], x[1], x[2]); });
}

void add_reads(Builders& b) {
  b["slice"] = made([](auto& x) { return x[0](Slice(4, 0, -2)); });
  b["slices"] = made([](auto& x) { return x[0](Slice(1, none), newaxis, Slice(none, none, 2)); });
  b["take"] = made([](auto& x) { return take(x[0], x[1]); });
  b["take 1"] = made([](auto& x) { return take(x[0], x[1], 1); });
  b["take 0,1"] = made([](auto& x) { return x[0](x[1], x[2]); });
  b["take 0,2"] = made([](auto& x) { return x[0](x[1], Slice(), x[2]); });
  b["take of a row"] = made([](auto& x) { return x[0](x[1]); });
  b["mask"] = made([](auto& x) { return x[0](Array{true, false, true}); });
  b["take_along_axis 1"] = made([](auto& x) { return take_along_axis(x[0], x[1], 1); });
  b["gather_nd"] = made([](auto& x) { return gather_nd(x[0], specify_shape(x[1], {3, 2})); });
  b["choose"] = made([](auto& x) { return choose(x[0], {x[1], x[2]}); });
  b["permute_row_elements"] = made([](auto& x) { return permute_row_elements(x[0], x[1]); });
}

Variable written(WriteMode mode, const Variable& part, const Variable& value) {
  switch (mode) {
    case WriteMode::set:
      return set_subtensor(part, value);
    case WriteMode::add:
      return inc_subtensor(part, value);
    case WriteMode::mul:
      return mul_subtensor(part, value);
    case WriteMode::max:
      return max_subtensor(part, value);
    default:
      return min_subtensor(part, value);
  }
}

void add_writes(Builders& b) {
  const std::pair<std::string, WriteMode> modes[] = {{"set", WriteMode::set},
                                                     {"inc", WriteMode::add},
                                                     {"mul", WriteMode::mul},
                                                     {"max", WriteMode::max},
                                                     {"min", WriteMode::min}};
  for (const auto& entry : modes) {
    const std::string& name = entry.first;
    const WriteMode how = entry.second;
    b[name + " slice"] =
        made([how](auto& x) { return written(how, x[0](Slice(none, 0, -2)), x[1]); });
    b[name + " rows"] = made([how](auto& x) { return written(how, x[0](x[1]), x[2]); });
    b[name + " cells"] = made([how](auto& x) { return written(how, x[0](x[1], x[2]), x[3]); });
    b[name + " along 0"] = made([how](auto& x) { return scatter(x[0], x[1], x[2], 0, how); });
    b[name + " nd"] = made([how](auto& x) {
      return scatter_nd(x[0], specify_shape(x[1], {3, 2}), x[2], how);
    });
    if (how == WriteMode::add) continue;
    b[name + " mask"] = made([how](auto& x) { return written(how, x[0](x[1]), x[2]); });
  }
  b["mul zeros"] = made([](auto& x) { return mul_subtensor(x[0](x[1]), x[2]); });
}

void add_products(Builders& b) {
  b["dot"] = made([](auto& x) { return dot(x[0], x[1]); });
  for (const char* title : {"matmul", "matmul of batches", "matmul by a vector"}) {
    b[title] = made([](auto& x) { return matmul(x[0], x[1]); });
  }
  b["matmul of the right transposed"] = made([](auto& x) { return matmul(x[0], transpose(x[1])); });
  b["matmul of the left transposed"] = made([](auto& x) { return matmul(transpose(x[0]), x[1]); });
  b["outer"] = made([](auto& x) { return outer(x[0], x[1]); });
  b["vecdot"] = made([](auto& x) { return vecdot(x[0], x[1]); });
  b["tensordot 2"] = made([](auto& x) { return tensordot(x[0], x[1], 2); });
  b["batched_dot"] = made([](auto& x) { return batched_dot(x[0], x[1]); });
  for (const std::string subscripts :
       {"ij,jk,kl->il", "ii->i", "ij->", "ijk,ikl->ijl", "i,j->ij", "...i,i->...", "ij,ij->i"}) {
    b["einsum " + subscripts] = made([=](auto& x) {
      return einsum(subscripts, Parts(std::vector<Operand>(x.begin(), x.end())));
    });
  }
}

void add_networks(Builders& b) {
  b["softmax"] = made([](auto& x) { return softmax(x[0]); });
  b["softmax 0"] = made([](auto& x) { return softmax(x[0], 0); });
  b["log_softmax"] = made([](auto& x) { return log_softmax(x[0]); });
  b["log_softmax 0"] = made([](auto& x) { return log_softmax(x[0], 0); });
  b["log of softmax"] = made([](auto& x) { return log(softmax(x[0])); });
  b["layer_norm"] = made([](auto& x) { return layer_norm(x[0], x[1], x[2]); });
  b["pick"] = made([](auto& x) { return pick(x[0], x[1]); });
  b["cross_entropy_from_logits"] =
      made([](auto& x) { return cross_entropy_from_logits(x[0], x[1]); });
  b["categorical_crossentropy"] =
      made([](auto& x) { return categorical_crossentropy(x[0], x[1]); });
  b["crossentropy of softmax"] =
      made([](auto& x) { return categorical_crossentropy(softmax(x[0]), x[1]); });
  b["binary_crossentropy"] = made([](auto& x) { return binary_crossentropy(x[0], x[1]); });
  b["binary_cross_entropy_from_logits"] =
      made([](auto& x) { return binary_cross_entropy_from_logits(x[0], x[1]); });
  b["remat"] = made([](auto& x) { return remat(tanh(x[0] * x[0]) / 2, {x[0]}); });
}

void add_elementwise(Builders& b) {
  b["log_sigmoid"] = made([](auto& x) { return log_sigmoid(x[0]); });
  b["hard_sigmoid"] = made([](auto& x) { return hard_sigmoid(x[0]); });
  b["elu"] = made([](auto& x) { return elu(x[0]); });
  b["selu"] = made([](auto& x) { return selu(x[0]); });
  b["celu"] = made([](auto& x) { return celu(x[0]); });
  b["silu"] = made([](auto& x) { return silu(x[0]); });
  b["mish"] = made([](auto& x) { return mish(x[0]); });
  b["relu6"] = made([](auto& x) { return relu6(x[0]); });
  b["softsign"] = made([](auto& x) { return softsign(x[0]); });
  b["gelu"] = made([](auto& x) { return gelu(x[0]); });
  b["gelu tanh"] = made([](auto& x) { return gelu(x[0], GeluForm::tanh); });
  b["xlogx"] = made([](auto& x) { return xlogx(x[0]); });
  b["xlogy"] = made([](auto& x) { return xlogy(x[0], x[1]); });
  b["xlog1py"] = made([](auto& x) { return xlog1py(x[0], x[1]); });
  b["ndtri"] = made([](auto& x) { return ndtri(x[0]); });
  b["rad2deg"] = made([](auto& x) { return rad2deg(x[0]); });
  b["masked branch"] = made([](auto& x) { return where(gt(x[0], 0), sqrt(x[0]), 0); });
}

void add_cumulative(Builders& b) {
  b["cumsum 1"] = made([](auto& x) { return cumsum(x[0], 1); });
  b["cumsum 0 reverse"] = made([](auto& x) { return cumsum(x[0], 0, {.reverse = true}); });
  b["cumsum 1 exclusive"] = made([](auto& x) { return cumsum(x[0], 1, {.exclusive = true}); });
  b["cumprod 1"] = made([](auto& x) { return cumprod(x[0], 1); });
  b["cumprod 0 reverse"] = made([](auto& x) { return cumprod(x[0], 0, {.reverse = true}); });
  b["cummax 1"] = made([](auto& x) { return cummax(x[0], 1); });
  b["cummin 0 reverse"] = made([](auto& x) { return cummin(x[0], 0, {.reverse = true}); });
  b["logcumsumexp 1"] = made([](auto& x) { return logcumsumexp(x[0], 1); });
  b["logcumsumexp 0 reverse"] =
      made([](auto& x) { return logcumsumexp(x[0], 0, {.reverse = true}); });
  b["diff 2"] = made([](auto& x) { return diff(x[0], 2); });
}

void add_sorting(Builders& b) {
  b["sort"] = made([](auto& x) { return croton::sort(x[0]); });
  b["sort 0 descending"] =
      made([](auto& x) { return croton::sort(x[0], 0, {.descending = true}); });
  b["topk 3"] = made([](auto& x) { return topk(x[0], 3).first; });
  b["topk 1 smallest"] = made([](auto& x) { return topk(x[0], 1, -1, {.largest = false}).first; });
  b["median 1"] = made([](auto& x) { return median(x[0], 1); });
  b["median 0"] = made([](auto& x) { return median(x[0], 0); });
  const std::pair<std::string, Quantile> methods[] = {
      {"linear", Quantile::linear}, {"lower", Quantile::lower}, {"midpoint", Quantile::midpoint}};
  for (const auto& [name, method] : methods) {
    b["quantile " + name] = made([method = method](auto& x) {
      return quantile(x[0], Array{0.3125, 0.75}, 1, {.method = method});
    });
  }
  b["nanmedian 1"] = made([](auto& x) { return nanmedian(x[0], 1); });
  b["bincount with weights"] =
      made([](auto& x) { return bincount(x[0], {.length = 4, .weights = x[1]}); });
}

void add_selections(Builders& b) {
  b["mask of the graph"] = made([](auto& x) { return x[0](x[1]); });
  b["repeat by the graph"] = made([](auto& x) { return repeat(x[0], x[1]); });
}

Builders builders() {
  Builders b;
  add_reductions(b);
  add_shapes(b);
  add_reads(b);
  add_writes(b);
  add_products(b);
  add_networks(b);
  add_elementwise(b);
  add_cumulative(b);
  add_sorting(b);
  add_selections(b);
  return b;
}

/// The derivatives of a block, in the order of its results behind u and the v.
struct Derivatives {
  Operands first, second;

  Derivatives(const ArrayBlock& block, const Operands& inputs, const Variable& y) {
    Operands wrt;
    for (const Variable& x : inputs) {
      if (is_float(x.dtype())) wrt.push_back(x);
    }
    REQUIRE(block.results.size() == 1 + 3 * wrt.size());
    first = grad(sum(specify_shape(y, block.results[0].shape()) * block.results[0]), wrt);
    Variable cost;
    for (std::size_t k = 0; k < wrt.size(); ++k) {
      const Variable part = sum(first[k] * block.results[1 + k]);
      cost = cost.defined() ? cost + part : part;
    }
    second = grad(cost, wrt, {.disconnected_inputs = Disconnected::ignore});
  }
};

/// Within so much of the largest number.
void check_close(const Array& got, const Array& want, double tolerance) {
  double largest = 0;
  for (const double v : want.to_vector<double>()) largest = std::fmax(largest, std::fabs(v));
  INFO("got " << got << "\nwant " << want);
  REQUIRE(got.shape() == want.shape());
  CHECK(allclose(got, want, tolerance, tolerance * largest));
}

}  // namespace

TEST_CASE("derivatives of functions on arrays are those of JAX", "[ops][grad][conformance]") {
  constexpr double kTolerance = 1e-12;
  std::vector<Trial> trials;
  std::vector<Array> wanted;
  for_each_block(
      "array_gradients.txt", builders(),
      [&](const ArrayBlock& block, const Operands& inputs, const Operands& results, bool known) {
        const Derivatives d(block, inputs, results.at(0));
        const std::size_t count = d.first.size();
        for (std::size_t k = 0; k < 2 * count; ++k) {
          const std::string title = block.title + (known ? ", known" : ", unknown") +
                                    (k < count ? " sizes, first " : " sizes, second ") +
                                    std::to_string(k % count);
          trials.push_back(
              {title, k < count ? d.first[k] : d.second[k - count], inputs, block.operands});
          wanted.push_back(block.results[1 + count + k]);
          INFO(title << ", by references");
          check_close(trials.back().reference(), wanted.back(), kTolerance);
        }
      });
  std::size_t number = 0;
  for_each_result(trials, [&](const Trial& trial, const Array& got) {
    INFO(trial.title << ", compiled");
    check_close(got, wanted[static_cast<std::size_t>(&trial - trials.data())], kTolerance);
    ++number;
  });
  CHECK(number == trials.size());
}

TEST_CASE("each op on arrays with a gradient is in a fixture of one", "[ops][grad][conformance]") {
  // Without a counterpart: a rule of the user's, which custom_gradient.cpp tries, and a copy to
  // another device.
  const std::set<std::string> without{"custom_gradient", "transfer"};
  std::set<std::string> seen;
  for_each_block(
      "array_gradients.txt", builders(),
      [&](const ArrayBlock& block, const Operands& inputs, const Operands& results, bool) {
        Operands all = Derivatives(block, inputs, results.at(0)).first;
        all.push_back(results[0]);
        for (const Node* node : topological_order(all)) seen.insert(node->op->name);
      });
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (op->form == OpForm::scalar || op->grad == nullptr) continue;
    INFO(op->name << " needs a case in tests/data/make_array_gradient_fixtures.py");
    CHECK(seen.contains(op->name) != without.contains(op->name));
  }
}
