// vectorize_graph and vmap: every op on a batch against itself on one element after the other.
#include "croton/grad.h"
#include "croton/indexing.h"
#include "croton/linalg.h"
#include "croton/math.h"
#include "croton/nn.h"
#include "croton/reduce.h"
#include "croton/tensor.h"
#include "croton/vectorize.h"
#include "ops/batch.h"
#include "tests/ops/op_cases.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::int64_t kBatch = 3;

Shape wider(std::int64_t size, const Shape& shape) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  sizes.insert(sizes.begin(), size);
  return Shape(sizes);
}

/// Arrays one after the other along a new first axis.
Array stacked(const std::vector<Array>& list) {
  std::vector<Variable> parts;
  Values at;
  for (const Array& a : list) {
    parts.push_back(input(a.dtype(), a.shape()));
    at[parts.back()] = a;
  }
  return value(stack(parts), at);
}

/// Whether two arrays are alike in type, shape and values.
void check_same(const Array& got, const Array& want) {
  INFO("got\n" << got << "\nwant\n" << want);
  CHECK(got.dtype() == want.dtype());
  REQUIRE(got.shape() == want.shape());
  CHECK(allclose(got, want, 1e-13, 1e-13, true));
}

/// The op on a batch of the inputs that `chosen` marks.
void check_batch(const OpCase& c, unsigned chosen, bool known, std::mt19937& random,
                 const Example& example) {
  std::vector<std::pair<Variable, Variable>> replace;
  std::vector<Values> elements(kBatch, c.values);
  Values at = c.values;
  for (std::size_t k = 0; k < c.inputs.size(); ++k) {
    if ((chosen >> k & 1u) == 0) continue;
    const Variable& x = c.inputs[k];
    std::vector<Array> list;
    for (Values& element : elements) {
      element[x] = drawn_values(example.shapes[k], example.range[k], x.dtype(), random);
      list.push_back(element[x]);
    }
    const Variable wide = input(x.dtype(), wider(known ? kBatch : kAnyDim, x.static_shape()), "w");
    at[wide] = stacked(list);
    replace.emplace_back(x, wide);
  }
  const Variable y = vectorize_graph(c.y, replace);
  std::vector<Array> want;
  for (const Values& element : elements) want.push_back(value(c.y, element));
  if (y.ndim() == c.y.ndim()) return check_same(value(y, at), want[0]);  // a size
  check_same(value(y, at), stacked(want));
}

}  // namespace

TEST_CASE("every op on a batch gives what it gives for each element", "[ops][vectorize]") {
  std::mt19937 random(31);
  for (const bool known : {true, false}) {
    for (const OpDef* op : OpRegistry::instance().all()) {
      if (batch_rule(*op) == nullptr && op->expand == nullptr) continue;
      for (const Example& example : op->examples) {
        const std::optional<OpCase> c = op_case(*op, example, known, random);
        if (!c || !can_evaluate(*c->y.node())) continue;
        for (unsigned chosen = 1; chosen < 1u << c->inputs.size(); ++chosen) {
          INFO(c->text() << ", batched inputs " << chosen << (known ? "" : ", unknown sizes"));
          check_batch(*c, chosen, known, random, example);
        }
      }
    }
  }
}

TEST_CASE("ops without a rule for a batch are named", "[ops][vectorize]") {
  for (const OpCase& c : op_cases(true, 32)) {
    if (batch_rule(*c.op) != nullptr || c.op->expand != nullptr || c.inputs.empty()) continue;
    const Variable& x = c.inputs[0];
    const Variable wide = input(x.dtype(), wider(kBatch, x.static_shape()));
    INFO(c.op->name);
    CHECK_THAT(message_of<GraphError>([&] {
                 vectorize_graph(c.y, {{x, wide}});
               }),
               Contains("'" + c.op->name + "' has no rule for a batch") && Contains("op_cases.h:"));
  }
}

TEST_CASE("indices in every form, the same and differing", "[ops][vectorize]") {
  std::mt19937 random(33);
  const Variable x = floats({4, 3, 5}), i = input(DType::int64, {2}), j = input(DType::int64, {});
  const std::vector<Variable> forms{x(i),
                                    x(j),
                                    x(Slice(), i),
                                    x(i, Slice(), i),
                                    x(j, i),
                                    x(Slice(), i, j),
                                    x(i, Slice(), j),
                                    x(1, i),
                                    take_along_axis(x, reshape(i, {2, 1, 1}), 0),
                                    set_subtensor(x(i), 7),
                                    inc_subtensor(x(Slice(), i), 1),
                                    inc_subtensor(x(i, Slice(), i), 2),
                                    set_subtensor(x(Slice(1, 3)), 5)};
  for (std::size_t form = 0; form < forms.size(); ++form) {
    for (unsigned chosen = 1; chosen < 8; ++chosen) {
      INFO("form " << form << ", batched " << chosen);
      std::vector<std::pair<Variable, Variable>> replace;
      std::vector<Values> elements(kBatch);
      Values at;
      const Variable inputs[] = {x, i, j};
      for (int k = 0; k < 3; ++k) {
        const Variable& v = inputs[k];
        const auto draw = [&] {
          return drawn_values(v.static_shape(), {k == 0 ? -3 : -2, 3}, v.dtype(), random);
        };
        const Array same = draw();
        at[v] = same;
        std::vector<Array> list;
        for (Values& element : elements) {
          element[v] = (chosen >> k & 1u) != 0 ? draw() : same;
          list.push_back(element[v]);
        }
        if ((chosen >> k & 1u) == 0) continue;
        replace.emplace_back(v, input(v.dtype(), wider(kAnyDim, v.static_shape())));
        at[replace.back().second] = stacked(list);
      }
      const Variable y = vectorize_graph(forms[form], replace);
      std::vector<Array> want;
      for (const Values& element : elements) want.push_back(value(forms[form], element));
      if (y.ndim() == forms[form].ndim()) {
        check_same(value(y, at), want[0]);
      } else {
        check_same(value(y, at), stacked(want));
      }
    }
  }
}

TEST_CASE("sizes are those of one element", "[ops][vectorize]") {
  const Variable x = floats({kAnyDim, kAnyDim}), wide = floats({kAnyDim, kAnyDim, kAnyDim});
  const Values at{{wide, counting({2, 3, 4})}};
  const auto batched = [&](const Variable& y) {
    return value(vectorize_graph(y, {{x, wide}}), at);
  };
  CHECK(batched(shape(x)).to_vector<std::int64_t>() == std::vector<std::int64_t>{3, 4});
  CHECK(batched(size(x)).item<std::int64_t>() == 12);
  check_same(batched(mean(x, 1)), value(mean(wide, 2), at));
  check_same(batched(flatten(x)), counting({2, 12}));
  check_same(batched(x / size(x)), value(wide / 12.0, at));
  check_same(batched(ones_like(x)), Array::ones({3, 4}, DType::float64));
  check_same(batched(reshape(x, {x.shape(1), x.shape(0)})), counting({2, 4, 3}));
  check_same(batched(layer_norm(x, 1, 0)), value(layer_norm(wide, 1, 0), at));
}

TEST_CASE("batches of several axes", "[ops][vectorize]") {
  const Variable x = floats({kAnyDim}), y = floats({kAnyDim});
  const Variable z = dot(x, y) + sum(x);
  const Variable xs = floats({kAnyDim, kAnyDim, kAnyDim}), ys = floats({kAnyDim, kAnyDim});
  const Values at{{xs, counting({2, 3, 4})}, {ys, counting({3, 4})}};
  const Variable want = sum(xs * ys, -1) + sum(xs, -1);
  check_same(value(vectorize_graph(z, {{x, xs}, {y, ys}}), at), value(want, at));
  // What does not depend on the batch is what it was.
  const std::vector<Variable> both = vectorize_graph({exp(y), z}, {{x, xs}});
  CHECK(both[0].ndim() == 1);
  CHECK(both[1].ndim() == 2);
  // A value of the same rank is put in as it is.
  check_same(value(vectorize_graph(z, {{x, y}, {y, y}}), {{y, counting({3})}}),
             Array::full({}, 8.0, DType::float64));
}

TEST_CASE("values are replaced at once, not one after the other", "[ops][vectorize]") {
  const Variable x = floats({kAnyDim}), y = floats({kAnyDim}), z = floats({kAnyDim});
  const Variable ys = floats({kAnyDim, kAnyDim}), yss = floats({kAnyDim, kAnyDim, kAnyDim});
  const Values at{{y, counting({3})},
                  {z, reals({5, 7, 11})},
                  {ys, counting({2, 3})},
                  {yss, counting({4, 2, 3})}};
  const Variable h = exp(x);
  check_same(value(vectorize_graph(h + x, {{x, z}, {h, ys}}), at), value(ys + z, at));
  check_same(value(vectorize_graph(h + x, {{h, yss}, {x, z}}), at), value(yss + z, at));
  check_same(value(vectorize_graph(x - y, {{x, y}, {y, ys}}), at), value(y - ys, at));
  check_same(
      value(vectorize_graph(x - 2 * y, {{x, y}, {y, x}}), {{x, reals({1})}, {y, reals({5})}}),
      reals({3}));
}

TEST_CASE("a gradient on a batch is one for each element", "[ops][vectorize][grad]") {
  const Variable w = floats({kAnyDim, kAnyDim}, "w"), x = floats({kAnyDim});
  const Variable t = input(DType::int64, {});
  const Variable loss = -log_softmax(tanh(dot(x, w)))(t);
  const Variable xs = floats({kAnyDim, kAnyDim}), ts = input(DType::int64, {kAnyDim});
  std::mt19937 random(34);
  Values at{{w, drawn_values({4, 3}, {-1, 1}, DType::float64, random)},
            {xs, drawn_values({5, 4}, {-1, 1}, DType::float64, random)},
            {ts, reals({0, 2, 1, 2, 0}).astype(DType::int64)}};
  const Variable each = vectorize_graph(grad(loss, w), {{x, xs}, {t, ts}});
  const Array got = value(each, at);
  REQUIRE(got.shape() == Shape{5, 4, 3});
  std::vector<Array> want;
  for (int k = 0; k < 5; ++k) {
    Values one = at;
    one[x] = value(xs(k), at);
    one[t] = value(ts(k), at);
    want.push_back(value(grad(loss, w), one));
  }
  check_same(got, stacked(want));
}

TEST_CASE("vmap puts a function on a batch along any axis", "[ops][vectorize]") {
  const Variable x = floats({2, 3}), v = floats({2}), s = floats({});
  const Values at{
      {x, counting({2, 3})}, {v, reals({5, 7})}, {s, Array::full({}, 2.0, DType::float64)}};
  const auto f = [](const std::vector<Variable>& in) {
    REQUIRE(in[0].ndim() == 1);
    return std::vector<Variable>{in[0] * in[1], sum(in[1])};
  };
  // Columns of x with v; the second result is the same for all.
  const std::vector<Variable> y =
      vmap(f, {x, v}, {.in_axes = {1, std::nullopt}, .out_axes = {1, 0}});
  check_same(value(y[0], at), value(x * expand_dims(v, 1), at));
  check_same(value(y[1], at), Array::full({3}, 12.0, DType::float64));
  const std::vector<Variable> same =
      vmap(f, {x, v}, {.in_axes = {-1, std::nullopt}, .out_axes = {-1, std::nullopt}});
  check_same(value(same[1], at), Array::full({}, 12.0, DType::float64));
  const std::vector<Variable> rows =
      vmap([](const std::vector<Variable>& in) { return std::vector<Variable>{max(in[0])}; }, {x});
  check_same(value(rows[0], at), reals({2, 5}));
}

TEST_CASE("functions written for cores are put on arrays", "[ops][vectorize]") {
  const auto product = [](const std::vector<Variable>& in) {
    REQUIRE(in[0].ndim() == 2);
    REQUIRE(in[1].ndim() == 1);
    return std::vector<Variable>{dot(in[0], in[1]), sum(in[1])};
  };
  const Variable a = floats({kAnyDim, 1, kAnyDim, kAnyDim}), b = floats({3, 4});
  const Values at{{a, counting({2, 1, 5, 4})}, {b, counting({3, 4})}};
  const std::vector<Variable> y = vectorize(product, {a, b}, "(m,n),(n)->(m), ( )");
  check_same(value(y[0], at), value(sum(a * expand_dims(b, 1), -1), at));
  // The second output does not depend on the first axis of the batch, and is there all the same.
  CHECK(value(y[1], at).shape() == Shape{2, 3});
  check_same(value(y[1](1), at), value(sum(b, 1), at));
  // A batch of size 1 broadcasts; no batch at all; what does not depend on any input.
  const Variable one = floats({1, 4}), v = floats({4});
  const Values more{{one, counting({1, 4})}, {b, counting({3, 4})}, {v, counting({4})}};
  const auto inner = [](const std::vector<Variable>& in) {
    return std::vector<Variable>{dot(in[0], in[1])};
  };
  check_same(value(vectorize(inner, {one, b}, "(i),(i)->()")[0], more), value(dot(b, v), more));
  check_same(value(vectorize(inner, {v, v}, "(i),(i)->()")[0], more), value(dot(v, v), more));
  const auto fixed = [](const std::vector<Variable>&) {
    return std::vector<Variable>{make_scalar(DType::float64, 7, Loc::current())};
  };
  check_same(value(vectorize(fixed, {b}, "(i)->()")[0], more), Array::full({3}, 7, DType::float64));
  const auto message = [&](const std::vector<Variable>& inputs, std::string_view signature) {
    return message_of<GraphError>([&] { vectorize(inner, inputs, signature); });
  };
  CHECK_THAT(message({b, v}, "(i),(i)-()"), Contains("[vectorize] the signature '(i),(i)-()'") &&
                                                Contains("at character 9") &&
                                                Contains("vectorize_values.cpp:"));
  CHECK_THAT(message({b, v}, "(i,),(i)->()"), Contains("at character 4"));
  CHECK_THAT(message({b}, "(i),(i)->()"), Contains("1 inputs for the signature"));
  CHECK_THAT(message({b, floats({})}, "(i),(i)->()"), Contains("input 2 has 0 axes"));
  CHECK_THAT(message({b, v}, "(i),(i)->(i)"), Contains("output 1 has 0 axes, expected 1"));
  CHECK_THAT(message({b, v}, "(i),(i)->(),()"), Contains("gives 1 outputs"));
  CHECK_THAT(message({floats({2, 4}), floats({3, 4})}, "(i),(i)->()"), Contains("[vectorize]"));
  CHECK_THAT(message({floats({3}), floats({4})}, "(i),(i)->()"), Contains("[vectorize]"));
}

TEST_CASE("batches say what does not fit", "[ops][vectorize]") {
  const Variable x = floats({3}, "x"), y = floats({4}, "y"), none_yet;
  const auto message = [&](const Variable& old, const Variable& wide) {
    return message_of<GraphError>([&] { vectorize_graph(exp(old), {{old, wide}}); });
  };
  CHECK_THAT(message(x, floats({2, 4})), Contains("[vectorize_graph] 'x'") && Contains("(2, 4)") &&
                                             Contains("vectorize_values.cpp:"));
  CHECK_THAT(message(x, floats({})), Contains("'x'"));
  CHECK_THAT(message(x, input(DType::float32, {2, 3})), Contains("float32"));
  CHECK_THAT(message_of<GraphError>([&] {
               vectorize_graph(x, {{x, none_yet}});
             }),
             Contains("is empty"));
  CHECK_THAT(message_of<GraphError>([&] {
               vectorize_graph(sum(x) + sum(y), {{x, floats({2, 3})}, {y, floats({5, 4})}});
             }),
             Contains("clash") && Contains("2") && Contains("5"));
  CHECK_THAT(message_of<GraphError>([&] {
               vectorize_graph({exp(x), none_yet}, {{x, floats({2, 3})}});
             }),
             Contains("[vectorize_graph] output 2 is empty"));
  const auto nothing = [](const std::vector<Variable>&) { return std::vector<Variable>(1); };
  CHECK_THAT(message_of<GraphError>([&] { vmap(nothing, {x}); }),
             Contains("[vmap]") && Contains("is empty"));
  CHECK_THAT(message_of<GraphError>([&] { vmap(nothing, {none_yet}); }),
             Contains("[vmap] input 1 is empty"));
  // A size that would differ between elements.
  const Variable n = input(DType::int64, {}), ns = input(DType::int64, {kAnyDim});
  CHECK_THAT(message_of<GraphError>([&] {
               vectorize_graph(arange(n), {{n, ns}});
             }),
             Contains("[arange] a size would differ") && Contains("vectorize_values.cpp:"));
  CHECK_THAT(message_of<GraphError>([&] {
               vectorize_graph(x(Slice(0, n)), {{n, ns}});
             }),
             Contains("a bound of a slice would differ"));
  const auto f = [](const std::vector<Variable>& in) { return in; };
  CHECK_THAT(message_of<GraphError>([&] { vmap(f, {x}, {.in_axes = {1}}); }), Contains("[vmap]"));
  CHECK_THAT(message_of<GraphError>([&] {
               vmap(f, {x}, {.in_axes = {0, 0}});
             }),
             Contains("got 2 for 1"));
  CHECK_THAT(message_of<GraphError>([&] { vmap(f, {x}, {.in_axes = {std::nullopt}}); }),
             Contains("an input with a batch's axis"));
  CHECK_THAT(message_of<GraphError>([&] { vmap(f, {x}, {.out_axes = {std::nullopt}}); }),
             Contains("output 1 has no axis"));
}
