// Values with gradients of the user's, and values that are computed again for their gradients.
#include "croton/custom_gradient.h"

#include <functional>

#include "croton/function.h"
#include "croton/grad.h"
#include "croton/jacobian.h"
#include "croton/linalg.h"
#include "croton/math.h"
#include "croton/nn.h"
#include "croton/reduce.h"
#include "croton/remat.h"
#include "croton/tensor.h"
#include "croton/vectorize.h"
#include "tests/ops/op_cases.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

using Slopes = std::vector<double>;
using Variables = std::vector<Variable>;

/// x * y with gradients of its own: three times the right one for x, none for y.
Variable tripled(const Variable& x, const Variable& y) {
  return custom_gradient({x, y}, x * y,
                         [](const Variables& in, const Variable&, const Variable& g) {
                           return Variables{3 * g * in[1], Variable()};
                         });
}

struct Point {
  Variable x = floats({kAnyDim}, "x");
  Variable y = floats({kAnyDim}, "y");
  Values at{{x, reals({1, 2, 3})}, {y, reals({5, 7, 11})}};
  Slopes of(const Variable& v) const { return value(v, at).to_vector<double>(); }
};

int launches(const Variables& inputs, const Variable& y, const std::vector<Array>& arguments) {
  const Function f = function(inputs, y, {.on_unused = OnUnused::ignore});
  f.call(arguments);
  return f.statistics().launches;
}

}  // namespace

TEST_CASE("a custom gradient stands in for that of the graph", "[ops][grad][custom_gradient]") {
  const Point p;
  const Variable z = tripled(p.x, p.y);
  CHECK(p.of(z) == Slopes{5, 14, 33});
  CHECK(p.of(grad(sum(z), p.x)) == Slopes{15, 21, 33});
  CHECK_THAT(message_of<GraphError>([&] { grad(sum(z), p.y); }), Contains("'y'"));
  // Beside other ways, and through values before and after it.
  CHECK(p.of(grad(sum(z + p.y), p.y)) == Slopes{1, 1, 1});
  CHECK(p.of(grad(sum(square(tripled(2 * p.x, p.y))), p.x)) == Slopes{600, 2352, 8712});
  // The rule may use the value.
  const Variable e = custom_gradient(
      {p.x}, exp(p.x), [](const Variables&, const Variable& value, const Variable& g) {
        return Variables{g * value};
      });
  CHECK(allclose(value(grad(sum(e), p.x), p.at), value(exp(p.x), p.at), 1e-15));
  CHECK(allclose(value(grad(sum(grad(sum(e), p.x)), p.x), p.at), value(exp(p.x), p.at), 1e-15));
}

TEST_CASE("rules are differentiated in turn, on batches too", "[ops][grad][custom_gradient]") {
  const Point p;
  // The rule's derivative, not that of the value: 3 g y has none by x.
  CHECK(p.of(grad(sum(grad(sum(tripled(p.x, p.y)), p.x)), p.y)) == Slopes{3, 3, 3});
  const Variable v = floats({kAnyDim});
  Values at = p.at;
  at[v] = reals({1, 10, 100});
  CHECK(value(Rop(tripled(p.x, p.y), p.x, v), at).to_vector<double>() == Slopes{15, 210, 3300});
  CHECK(p.of(jacobian(tripled(p.x, p.y), p.x)) == Slopes{15, 0, 0, 0, 21, 0, 0, 0, 33});
  // A batch of x beside one y: its gradient, too, is by the rule.
  const Variable xs = floats({kAnyDim, kAnyDim});
  at[xs] = counting({2, 3});
  const Variable wide = vectorize_graph(tripled(p.x, p.y), {{p.x, xs}});
  CHECK(array_equal(value(wide, at), value(xs * p.y, at)));
  CHECK(array_equal(value(grad(sum(wide), xs), at), value(3 * ones_like(xs) * p.y, at)));
  const Variable each = vectorize_graph(grad(sum(tripled(p.x, p.y) * p.x), p.x), {{p.x, xs}});
  CHECK(array_equal(value(each, at), value(4 * xs * p.y, at)));
}

TEST_CASE("what a rule uses is put on batches", "[ops][grad][custom_gradient][vectorize]") {
  const Point p;
  const Variable c = floats({kAnyDim}, "c"), n = input(DType::int64, {}, "n");
  const Variable xs = floats({kAnyDim, kAnyDim}), cs = floats({kAnyDim, kAnyDim});
  Values at = p.at;
  at[c] = reals({2, 3, 4});
  at[n] = Array::full({}, std::int64_t{1}, DType::int64);
  at[xs] = counting({2, 3});
  at[cs] = counting({2, 3});
  const auto same = [&](const Variable& got, const Variable& want) {
    CHECK(array_equal(value(got, at), value(want, at)));
  };
  const auto with = [&](const Variable& x, const std::function<Variable(const Variable&)>& slope) {
    return custom_gradient({x}, x * x,
                           [&](const Variables& in, const Variable&, const Variable& g) {
                             return Variables{g * slope(in[0])};
                           });
  };
  const Variable z = with(p.x, [&](const Variable& x) { return c * x; });
  const Variable both = vectorize_graph(z, {{p.x, xs}, {c, cs}});
  same(grad(sum(both), xs), cs * xs);
  same(grad(sum(grad(sum(both), xs)), cs), xs);
  same(grad(sum(vectorize_graph(z, {{p.x, xs}})), xs), c * xs);
  same(grad(sum(vectorize_graph(z, {{c, cs}})), p.x), sum(cs, 0) * p.x);
  // By one of its rank.
  same(grad(sum(vectorize_graph(z, {{c, p.y}})), p.x), p.y * p.x);
  // Made of what is put on the batch; and an index, which must be the same for all.
  const auto f = [&](const Variables& in) {
    const Variable slope = 2 * in[0] + 1;
    return Variables{with(in[0], [&](const Variable&) { return slope; }),
                     with(in[0], [&](const Variable& x) { return ones_like(x) * x(n); })};
  };
  const Variables each = vmap(f, {xs});
  same(grad(sum(each[0]), xs), 2 * xs + 1);
  same(grad(sum(each[1]), xs), ones_like(xs) * expand_dims(dimshuffle(xs, {1, 0})(n), 1));
}

TEST_CASE("what a rule uses as its result, on batches of batches",
          "[ops][grad][custom_gradient][vectorize]") {
  const Point p;
  const Variable c = floats({kAnyDim}), xs = floats({kAnyDim, kAnyDim});
  const Variable xss = floats({kAnyDim, kAnyDim, kAnyDim}), cs = floats({kAnyDim, kAnyDim});
  const Values at{{xss, counting({4, 2, 3})}, {cs, counting({4, 3})}};
  const Variable z = custom_gradient(
      {p.x}, p.x * p.x,
      [&](const Variables&, const Variable&, const Variable&) { return Variables{c}; });
  const Variable wide = vectorize_graph(vectorize_graph(z, {{p.x, xs}}), {{xs, xss}, {c, cs}});
  const Variable want = zeros_like(xss) + expand_dims(cs, 1);
  CHECK(array_equal(value(grad(sum(wide), xss), at), value(want, at)));
}

TEST_CASE("what a rule uses in rules and marks around it", "[ops][grad][custom_gradient][remat]") {
  const Point p;
  const Variable c = floats({kAnyDim}, "c");
  Values at = p.at;
  at[c] = reals({2, 3, 4});
  // A rule within a rule, which uses the outer one's symbols: its slope by g is c x, not 1.
  const Variable z =
      custom_gradient({p.x}, p.x + 0, [&](const Variables& in, const Variable&, const Variable& g) {
        return Variables{
            custom_gradient({g}, g + 0, [&](const Variables&, const Variable&, const Variable& h) {
              return Variables{h * c * in[0]};
            })};
      });
  const Variable v = floats({kAnyDim}, "v");
  at[v] = reals({1, 10, 100});
  const Variable slope = Lop({z}, {p.x}, {v})[0];
  CHECK(array_equal(value(slope, at), at[v]));
  CHECK(array_equal(value(grad(sum(slope), v), at), value(c * p.x, at)));
  // Computed again from what is there later, what the rule uses too.
  const Variable used = exp(p.x);
  const Variable y = custom_gradient({p.x}, square(used),
                                     [&](const Variables& in, const Variable&, const Variable& g) {
                                       return Variables{g * used * in[0] * c};
                                     });
  const Variable marked = remat(y, {p.x});
  CHECK(array_equal(value(grad(sum(marked), p.x), at), value(grad(sum(y), p.x), at)));
  const Function f = function({p.x, c}, grad(sum(marked), p.x));
  CHECK(allclose(f(at[p.x], at[c])[0], value(used * p.x * c, at)));
  // No function of the value needs what only the rule uses.
  const Function forward = function({p.x}, y);
  CHECK(allclose(forward(at[p.x])[0], value(square(used), at)));
}

TEST_CASE("custom gradients fuse as if they were not there", "[ops][grad][custom_gradient]") {
  const Variable x = input(DType::float32, {kAnyDim}), y = input(DType::float32, {kAnyDim});
  const std::vector<Array> arguments{counting({100}, DType::float32),
                                     counting({100}, DType::float32)};
  CHECK(launches({x, y}, exp(tripled(tanh(x), y)) + 1, arguments) == 1);
  CHECK(launches({x, y}, grad(sum(exp(tripled(tanh(x), y))), x), arguments) == 1);
  const Function f = function({x, y}, tripled(x, y));
  CHECK(f.call(arguments)[0].to_vector<float>()[7] == 49);
}

TEST_CASE("rules that do not fit", "[ops][grad][custom_gradient]") {
  const Point p;
  const Variable n = input(DType::int64, {3}, "n"), none_yet;
  const auto with = [&](const Variables& inputs, const Variables& gradients) {
    return message_of<GraphError>([&] {
      custom_gradient(inputs, exp(p.x), [&](const Variables&, const Variable&, const Variable&) {
        return gradients;
      });
    });
  };
  CHECK_THAT(with({p.x}, {}), Contains("[custom_gradient]") && Contains("got 0 for 1") &&
                                  Contains("custom_gradient.cpp:"));
  CHECK_THAT(with({p.x}, {sum(p.x)}), Contains("gradient 1") && Contains("'x'"));
  CHECK_THAT(with({p.x}, {n}), Contains("int64"));
  CHECK_THAT(with({n}, {p.x}), Contains("'n'"));
  CHECK_THAT(with({none_yet}, {p.x}), Contains("is empty"));
  CHECK_THAT(message_of<GraphError>([&] {
               custom_gradient({n}, n, [](const Variables& in, const Variable&, const Variable&) {
                 return in;
               });
             }),
             Contains("only floats"));
}

TEST_CASE("remat changes no value and no gradient", "[ops][grad][remat]") {
  std::mt19937 random(61);
  const Variable x = floats({kAnyDim, kAnyDim}, "x"), w = floats({kAnyDim, kAnyDim}, "w");
  const Values at{{x, drawn_values({3, 4}, {-1, 1}, DType::float64, random)},
                  {w, drawn_values({4, 4}, {-1, 1}, DType::float64, random)}};
  const auto block = [&](const Variable& h) { return softmax(tanh(dot(h, w))); };
  const Variable plain = sum(square(block(block(x))));
  const Variable h = remat(block(x), {x});
  const Variable whole = sum(square(remat(block(block(x)))));
  const Variable parts = sum(square(remat(block(h), {h})));
  for (const Variable& cost : {whole, parts}) {
    CHECK(array_equal(value(cost, at), value(plain, at)));
    // The parameter, which is no input of the blocks, has its gradient.
    for (const Variable& v : {x, w}) {
      CHECK(allclose(value(grad(cost, v), at), value(grad(plain, v), at), 1e-12, 1e-14));
      const Function f = function({x, w}, grad(cost, v));
      CHECK(allclose(f(at.at(x), at.at(w))[0], value(grad(plain, v), at), 1e-12, 1e-14));
    }
    CHECK(allclose(value(hessian(cost, x), at), value(hessian(plain, x), at), 1e-10, 1e-12));
  }
  // Integers among what it is made of, and values of the graph as constants.
  const Variable n = input(DType::int64, {});
  const Variable y = remat(x(n) * exp(x(0)), {x});
  Values more = at;
  more[n] = Array::full({}, std::int64_t{1}, DType::int64);
  CHECK(allclose(value(grad(sum(y), x), more), value(grad(sum(x(n) * exp(x(0))), x), more)));
  CHECK_THAT(message_of<GraphError>([&] { remat(Variable()); }), Contains("[remat]"));
  CHECK_THAT(message_of<GraphError>([&] { remat(x, {Variable()}); }), Contains("is empty"));
}

namespace {

/// The same values with so many marks around them.
struct Marked {
  Variable a, b, c, h, cost;
  Marked(const Point& p, int marks) {
    a = exp(p.x / 4);
    b = a * p.y;
    c = tanh(b / 40) + square(a);
    if (marks == 2) c = remat(c, {p.x});
    h = c * a;
    if (marks > 0) h = remat(h, {p.x});
    cost = sum(square(h)) + sum(b * h);
  }
};

}  // namespace

TEST_CASE("gradients by, at and up to values inside a remat", "[ops][grad][remat]") {
  const Point p;
  const auto slopes = [&](int marks) {
    const Marked m(p, marks);
    std::vector<Variables> all{grad(m.cost, {m.a}), grad(m.cost, {m.b, m.c, m.h}),
                               grad(m.cost, {p.x, m.a, m.b, m.c, p.y})};
    for (const Variable& v : {m.a, m.b, m.c, m.h}) {
      const GradOptions constant{.consider_constant = {v},
                                 .disconnected_inputs = Disconnected::ignore};
      all.push_back(grad(m.cost, {p.x, p.y}, constant));
      all.push_back(grad(m.cost, {p.x, p.y, v}, constant));
      const GradOptions known{.disconnected_inputs = Disconnected::ignore,
                              .known_grads = {{v, 3 * v}}};
      all.push_back(grad(m.cost, {p.x, p.y}, known));
      all.push_back(grad(m.cost, {p.x, p.y, v}, known));
      const SubgraphGradients part = subgraph_grad({p.x, p.y}, {v}, {}, m.cost);
      all.push_back(part.wrt);
      all.push_back(part.end);
      all.push_back(Lop({m.h, v}, {p.x, m.a}, {p.y, p.x}));
      all.push_back(grad(sum(grad(m.cost, v)), {p.x, p.y}));
    }
    return all;
  };
  const std::vector<Variables> plain = slopes(0);
  for (const int marks : {1, 2}) {
    const std::vector<Variables> marked = slopes(marks);
    for (std::size_t k = 0; k < plain.size(); ++k) {
      for (std::size_t i = 0; i < plain[k].size(); ++i) {
        INFO(marks << " marks, case " << k << ", gradient " << i);
        CHECK(allclose(value(marked[k][i], p.at), value(plain[k][i], p.at), 1e-12, 1e-14));
      }
    }
  }
  // Compiled, and a value that is put in afterwards, made of what the mark does not know.
  const Marked m(p, 1);
  const Function f = function({p.x, p.y}, grad(m.cost, m.b));
  CHECK(allclose(f(p.at.at(p.x), p.at.at(p.y))[0], value(plain[1][0], p.at), 1e-12, 1e-14));
  const Variable z = floats({kAnyDim}, "z");
  Values at = p.at;
  at[z] = reals({0.5, -1, 2});
  const Variable other = vectorize_graph(m.h, {{m.b, z * z}});
  CHECK(allclose(value(grad(sum(other), z), at), value(grad(sum(tanh(z * z / 40) * m.a), z), at),
                 1e-12, 1e-14));
}

TEST_CASE("remat passes on that a gradient is not defined", "[ops][grad][remat]") {
  const Point p;
  const Variable y = exp(grad_undefined(p.x, "of a reason")) * p.y;
  for (const Variable& v : {y, remat(y, {p.x})}) {
    CHECK_THAT(message_of<GraphError>([&] { grad(sum(v), p.x); }), Contains("of a reason"));
    const GradOptions options{.disconnected_inputs = Disconnected::ignore,
                              .null_gradients = Undefined::empty};
    const Variables slopes = grad(sum(v), {p.x, p.y}, options);
    CHECK(!slopes[0].defined());
    CHECK(slopes[1].defined());
  }
}

TEST_CASE("remat needs less memory for a deep chain", "[ops][grad][remat]") {
  constexpr int kDepth = 16;
  const Variable x = input(DType::float32, {256, 64}), w = input(DType::float32, {64, 64});
  const std::vector<Array> arguments{Array::full({256, 64}, 0.01, DType::float32),
                                     Array::full({64, 64}, 0.02, DType::float32)};
  const auto run = [&](int block) {
    Variable h = x, start = x;
    for (int k = 1; k <= kDepth; ++k) {
      h = tanh(dot(h, w));
      if (block > 0 && k % block == 0) start = h = remat(h, {start});
    }
    const Function f = function({x, w}, grad(sum(square(h)), {x, w}));
    const Outputs slopes = f.call(arguments);
    return std::tuple(f.statistics(), slopes[0], slopes[1]);
  };
  const auto [plain, px, pw] = run(0);
  const auto [blocks, bx, bw] = run(4);
  CHECK(allclose(bx, px, 1e-5, 1e-7));
  CHECK(allclose(bw, pw, 1e-5, 1e-7));
  INFO(plain.temporary_bytes << " bytes without, " << blocks.temporary_bytes << " with");
  CHECK(3 * blocks.temporary_bytes < 2 * plain.temporary_bytes);
  // By computing more.
  CHECK(blocks.library_calls > plain.library_calls);
}
