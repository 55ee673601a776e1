// The engine: merging, order and end of rewriting, flags, what rules must keep, and time.
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "compiler/rewrite/match.h"
#include "compiler/rewrite/selection.h"
#include "croton/config.h"
#include "croton/random.h"
#include "tests/compiler/rewrite_cases.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

Variable floats(const char* name, const Shape& shape = {kAnyDim}) {
  return symbol(name, DType::float32, shape);
}

std::size_t nodes_of(const Graph& graph) { return graph.order().size(); }

Graph run_pass(Graph (*pass)(const Graph&, const CompileContext&), const Graph& graph) {
  return pass(graph, context_of(Config()));
}

Graph run_rules(std::span<const Rule> rules, const Variable& v,
                std::shared_ptr<RewriteTrace> trace = {}) {
  const RuleTable tables[] = {{"test", rules}};
  CompileContext context = context_of(Config());
  context.trace = std::move(trace);
  return rewrite(graph_of({v}), "test", tables, context);
}

/// exp(x) -> x * 2
Variable wrong_value(const Node& node, RewriteContext&) {
  return make("mul", {node.inputs[0], scalar_of(node.inputs[0], 2)});
}

/// exp(x) -> sum(x)
Variable wrong_rank(const Node& node, RewriteContext&) {
  return make("sum", {node.inputs[0]},
              {{"axes", std::vector<std::int64_t>{0}}, {"keepdims", std::int64_t{0}}});
}

/// exp(x) -> float64
Variable wrong_dtype(const Node& node, RewriteContext&) {
  return cast_to(node.inputs[0], DType::float64, Loc::current());
}

/// exp(x) -> log(x)
Variable to_log(const Node& node, RewriteContext&) { return make("log", {node.inputs[0]}); }
/// log(x) -> exp(x)
Variable to_exp(const Node& node, RewriteContext&) { return make("exp", {node.inputs[0]}); }
/// exp(x) -> exp(x) + 0
Variable itself(const Node& node, RewriteContext&) {
  return make("add", {node.out(), scalar_of(node.out(), 0)});
}

}  // namespace

TEST_CASE("equal work is done once", "[rewrite]") {
  const Variable x = floats("x");
  const Variable y = floats("y");
  const auto merged = [&](const std::vector<Variable>& outputs) {
    return run_pass(merge, graph_of(outputs));
  };
  CHECK(nodes_of(merged({exp(x), exp(x)})) == 2);
  CHECK(nodes_of(merged({x + y, y + x})) == 3);
  CHECK(nodes_of(merged({x - y, y - x})) == 4);
  CHECK(nodes_of(merged({x * 2, x * 2.0f})) == 3);
  CHECK(nodes_of(merged({x * 2, x * 3})) == 5);
  CHECK(nodes_of(merged({sum(x, 0), max(x, 0), sum(x, 0)})) == 3);
  CHECK(nodes_of(merged({x.astype(DType::int32), x.astype(DType::int64)})) == 3);
  const Graph deep = merged({exp(x + 1) * exp(1 + x), exp(x + 1)});
  CHECK(nodes_of(deep) == 5);
  CHECK(expression_text(deep.outputs[0]) == "mul(exp(add(1.0, x)), exp(add(1.0, x)))");
  // Constants of equal bits but other dtype or shape differ.
  const Variable one = make_constant(Array(1), Loc::current());
  const Variable ones = make_constant(Array{1}, Loc::current());
  const Variable byte = make_constant(Array(1).astype(DType::uint8), Loc::current());
  CHECK(nodes_of(merged({one, ones, byte, make_constant(Array{1}, Loc::current())})) == 3);
  // The same work on two contexts is not the same.
  const Variable here = exp(x);
  const Variable there = exp(x);
  const_cast<Node*>(there.node())->context = intern("dev1");
  CHECK(nodes_of(merged({here, there})) == 3);
  // Values of the merged graph are those of the given one.
  const Graph graph = graph_of({exp(x + 1) * exp(1 + x)});
  check_values(graph.outputs[0], run_pass(merge, graph).outputs[0], Precision::exact);
}

TEST_CASE("random numbers of one stream are merged, of two are not", "[rewrite]") {
  const auto uniform = [](std::int64_t stream) {
    const Variable offset = make_scalar(DType::int64, std::int64_t{0}, Loc::current());
    return apply("philox_uniform", {offset},
                 {{"seed", std::int64_t{1}},
                  {"stream", stream},
                  {"dtype", static_cast<std::int64_t>(DType::float32)},
                  {"sizes", std::vector<std::int64_t>{4}}},
                 Loc::current());
  };
  if (OpRegistry::instance().find("philox_uniform") == nullptr) return;
  CHECK(nodes_of(run_pass(merge, graph_of({uniform(0), uniform(0)}))) == 2);
  CHECK(nodes_of(run_pass(merge, graph_of({uniform(0), uniform(1)}))) == 3);
}

TEST_CASE("constants are folded where the result is small", "[rewrite]") {
  const Variable x = floats("x");
  const auto folded = [](const Variable& v) {
    return expression_text(apply_rule("fold_constants", v).value);
  };
  const Variable two = make_scalar(DType::float32, 2, Loc::current());
  CHECK(folded(exp(two * 0) + x) == "add(1.0, x)");
  const Variable table = make_constant(Array{{1, 2}, {3, 4}}, Loc::current());
  CHECK(folded(sum(table * 2, 0)) == "constant (2,)");
  CHECK(folded(table.T()) == "constant (2, 2)");
  check_rule("fold_constants", x * exp(two), "mul(x, 7.389056)");
  // What repeats or counts is computed where it is read.
  CHECK(folded(zeros({3, 4})) == "broadcast[sizes=[3, 4]](0.0)");
  CHECK_THAT(folded(arange(5)), Contains("iota"));
  const Variable large = make_constant(Array::zeros({200, 200}), Loc::current());
  CHECK_THAT(folded(exp(large)), Contains("exp"));
  // A mistake is reported by the call.
  CHECK_THAT(folded(pick(table, make_constant(Array{0, 7}, Loc::current()))), Contains("pick"));
}

TEST_CASE("what rules leave is rewritten at once", "[rewrite]") {
  const Variable x = floats("x", {4, 6});
  CHECK(expression_text(after_pass(canonicalize, ((x + 0) * 1 - 0) / 1)) == "x");
  CHECK(expression_text(after_pass(canonicalize, -(-(x * -1) * -1))) == "x");
  CHECK(expression_text(after_pass(canonicalize, sum(sum(x.T().T(), 1), 0))) ==
        "sum[axes=[0, 1], keepdims=0](x)");
  // The neg that keeps the rule back goes in the first sweep.
  const Variable d = x - exp(x);
  const Graph graph = run_pass(canonicalize, graph_of({-d, -(-exp(d)) - exp(d) * 0 - exp(d)}));
  CHECK(nodes_of(graph) > 0);
}

TEST_CASE("the result of a rule must have the type of what it replaces", "[rewrite]") {
  const Variable x = floats("x", {3});
  const Rule ranks[] = {{"to_sum", "exp", "", Precision::exact, wrong_rank}};
  CHECK_THROWS_WITH(run_rules(ranks, exp(x)),
                    Contains("rule 'to_sum' of pass 'test'") && Contains("float32 scalar"));
  const Rule dtypes[] = {{"to_double", "exp", "", Precision::exact, wrong_dtype}};
  CHECK_THROWS_AS(run_rules(dtypes, exp(x)), InternalError);
  const Rule selves[] = {{"itself", "exp", "", Precision::exact, itself}};
  CHECK_THROWS_AS(run_rules(selves, exp(x)), InternalError);
}

TEST_CASE("rules that undo one another are found out", "[rewrite]") {
  const Rule rules[] = {{"to_log", "exp", "", Precision::exact, to_log},
                        {"to_exp", "log", "", Precision::exact, to_exp}};
  CHECK_THROWS_WITH(run_rules(rules, exp(floats("x"))),
                    Contains("do not come to an end") && Contains("to_"));
}

TEST_CASE("new nodes stand where the old one stood", "[rewrite]") {
  const Variable x = floats("x");
  Variable y = x / 1 + -exp(x);
  for (const Node* node : topological_order(std::vector{y})) {
    if (node->op->form != OpForm::leaf) const_cast<Node*>(node)->context = intern("dev7");
  }
  const Loc place = y.node()->loc;
  const Variable after = after_pass(canonicalize, y);
  CHECK(expression_text(after) == "sub(x, exp(x))");
  CHECK(after.context() == "dev7");
  CHECK(after.node()->loc.line() == place.line());
  CHECK(std::string(after.node()->loc.file_name()) == place.file_name());
  for (const Node* node : topological_order(std::vector{after})) {
    if (node->op->form != OpForm::leaf) CHECK(*node->context == "dev7");
  }
}

TEST_CASE("what an op is taken apart into stands where the op stood", "[rewrite]") {
  const Variable y = softmax(floats("x", {3, 4}), 1);
  const_cast<Node*>(y.node())->context = intern("dev7");
  const Variable parts = expand(graph_of({y}), context_of(Config())).outputs[0];
  for (const Node* node : topological_order(std::vector{parts})) {
    if (node->op->form == OpForm::leaf) continue;
    CHECK(*node->context == "dev7");
    CHECK(node->loc.line() == y.node()->loc.line());
  }
}

TEST_CASE("flags choose rules by name and tag", "[rewrite]") {
  const Variable x = floats("x");
  const auto text = [&](const Config& config) {
    check_rule_flags(config);
    return expression_text(canonicalize(graph_of({-(-x) + 0}), context_of(config)).outputs[0]);
  };
  CHECK(text(Config()) == "x");
  CHECK(text(Config().with("optimizer_excluding", "neg_neg")) == "neg(neg(x))");
  CHECK(text(Config().with("optimizer_excluding", "add_zero")) == "add(x, 0.0)");
  CHECK(text(Config().with("optimizer_excluding", "algebra")) == "add(neg(neg(x)), 0.0)");
  CHECK(text(Config().with("optimizer_excluding", "canonicalize")) == "add(neg(neg(x)), 0.0)");
  const Config fast = Config().with("mode", "FAST_COMPILE");
  CHECK(text(fast) == "add(neg(neg(x)), 0.0)");
  CHECK(text(fast.with("optimizer_including", "neg_neg")) == "add(x, 0.0)");
  CHECK(text(fast.with("optimizer_including", "canonicalize")) == "x");
}

TEST_CASE("unknown names of rules are errors", "[rewrite]") {
  const auto message = [](const char* flag, const char* value) -> std::string {
    try {
      check_rule_flags(Config().with(flag, value));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  CHECK_THAT(message("optimizer_excluding", "neg_negg"),
             Contains("[optimizer_excluding]") && Contains("did you mean 'neg_neg'?"));
  CHECK_THAT(message("optimizer_including", "algebra:stabilise"), Contains("'stabilize'"));
  CHECK_THAT(message("optimizer_including", "qqqqqq"), Contains("'qqqqqq'"));
  CHECK_THAT(message("optimizer_excluding", "place"), Contains("needed in every mode"));
  CHECK(message("optimizer_excluding", "merge:specialize") == "nothing was thrown");
  FunctionGraph function{graph_of({exp(floats("x"))}), 1, {}, "f"};
  CHECK_THROWS_AS(optimize(function, context_of(Config().with("optimizer_excluding", "nonsense"))),
                  ConfigError);
}

TEST_CASE("a rule's name stands once, its roots are ops", "[rewrite]") {
  std::set<std::string_view> names;
  for (const RuleTable& table : all_rules()) {
    for (const Rule& rule : table.rules) {
      CHECK(names.insert(rule.name).second);
      for_each_word(rule.roots, [](std::string_view root) {
        CHECK(OpRegistry::instance().find(root) != nullptr);
      });
    }
  }
}

TEST_CASE("every rule has a test of its own", "[rewrite]") {
  std::string text;
  const std::filesystem::path folder = std::filesystem::path(CROTON_TEST_DATA) / "../compiler";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (!file.path().filename().string().starts_with("rewrite_")) continue;
    std::stringstream content;
    content << std::ifstream(file.path()).rdbuf();
    text += content.str();
  }
  for (const RuleTable& table : all_rules()) {
    for (const Rule& rule : table.rules) {
      INFO(rule.name);
      CHECK(text.find("rule(\"" + std::string(rule.name) + "\"") != std::string::npos);
    }
  }
}

TEST_CASE("FAST_COMPILE runs only what is needed", "[rewrite]") {
  const Variable x = floats("x");
  const auto optimized = [&](const Config& config) {
    FunctionGraph function{graph_of({log(softmax(x)) + 0}), 1, {}, "f"};
    return optimize(function, context_of(config)).graph;
  };
  const Graph fast = optimized(Config().with("mode", "FAST_COMPILE"));
  verify(fast);
  CHECK_THAT(expression_text(fast.outputs[0]), Contains("log(mul(exp("));
  const Graph full = optimized(Config());
  verify(full);
  CHECK_THAT(expression_text(full.outputs[0]), !Contains("0.0"));
}

namespace {

/// Time of the processor.
double milliseconds_of(const Graph& graph) {
  FunctionGraph function{graph, graph.outputs.size(), {}, "f"};
  const std::clock_t start = std::clock();
  optimize(std::move(function), context_of(Config()));
  return 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

Graph chain(int count) {
  const Variable x = floats("x");
  const Variable y = floats("y");
  Variable v = x;
  for (int k = 0; k < count / 5; ++k) v = sigmoid((v + y) * x) - (v * 1 + 0);
  return graph_of({v});
}

Graph wide(int count) {
  const Variable x = floats("x");
  std::vector<Variable> outputs;
  for (int k = 0; k < count / 4; ++k) outputs.push_back(exp(x * k) + 0);
  return graph_of(outputs);
}

}  // namespace

TEST_CASE("rewriting is linear", "[rewrite][slow]") {
  for (Graph (*make)(int) : {chain, wide}) {
    milliseconds_of(make(500));
    const double small = milliseconds_of(make(4000));
    const double large = milliseconds_of(make(40000));
    INFO(small << " ms for 4,000 nodes, " << large << " ms for 40,000");
    // 10 times the nodes, which no cache holds, on a machine that may be busy; not 100 times.
    CHECK(large < 60 * small + 50);
  }
}

TEST_CASE("deep graphs need no stack", "[rewrite][slow]") {
  Variable v = floats("x");
  for (int k = 0; k < 300000; ++k) v = -v;
  CHECK(expression_text(after_pass(canonicalize, v)) == "x");
}

TEST_CASE("the trace names the rule that changed a value", "[rewrite][debug]") {
  const Variable x = floats("x", {3});
  const Rule rules[] = {rule_called("add_zero"),
                        {"exp_is_double", "exp", "", Precision::rounding, wrong_value}};
  auto trace = std::make_shared<RewriteTrace>();
  run_rules(rules, exp(x + 0) * 2, trace);
  REQUIRE(trace->applications.size() == 2);
  const VariableMap<Array> known{{x, Array{0., 1., 2.}.astype(DType::float32)}};
  CHECK_THROWS_WITH(check_trace(*trace, known),
                    Contains("[DEBUG] the rule 'exp_is_double' of pass 'test'") &&
                        Contains("element (0,): 1 became 0") && Contains("before: exp(x)") &&
                        Contains("after:  mul(x, 2.0)") && Contains("rewrite_engine.cpp"));
  trace->applications.pop_back();
  CHECK_NOTHROW(check_trace(*trace, known));
}

TEST_CASE("the trace names the pass that changed a value", "[rewrite][debug]") {
  const Variable x = floats("x", {3});
  RewriteTrace trace;
  trace.passes.push_back({"first", Precision::exact, graph_of({x + 0}), graph_of({x})});
  trace.passes.push_back({"second", Precision::exact, graph_of({x}), graph_of({-x})});
  const VariableMap<Array> known{{x, Array{0., 1., 2.}.astype(DType::float32)}};
  CHECK_THROWS_WITH(check_trace(trace, known),
                    Contains("the pass 'second' changed output 0") && Contains("1 became -1"));
  trace.passes.pop_back();
  CHECK(array_equal(check_trace(trace, known)[0], known.at(x)));
}

TEST_CASE("values are compared by what their tag allows", "[rewrite][debug]") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto differ = [](double is, double was, Precision precision, DType dtype = DType::float32) {
    return !difference(Array(is).astype(dtype), Array(was).astype(dtype), precision).empty();
  };
  using P = Precision;
  for (const P p : {P::exact, P::rounding, P::stabilising}) {
    CHECK_FALSE(differ(1.5, 1.5, p));
    CHECK_FALSE(differ(nan, nan, p));
    CHECK_FALSE(differ(-0.0, 0.0, p));
    CHECK(differ(1.5, 3, p));
    CHECK(differ(nan, 1, p));
    CHECK(differ(inf, 1, p));
    CHECK(differ(2, 3, p, DType::int32));
  }
  CHECK(differ(1.000001, 1, P::exact));
  CHECK_FALSE(differ(1.000001, 1, P::rounding));
  CHECK(differ(1.0001, 1, P::rounding));
  CHECK_FALSE(differ(1.0001, 1, P::rounding, DType::float16));
  CHECK(differ(1, nan, P::rounding));
  CHECK(differ(1, -inf, P::rounding));
  CHECK_FALSE(differ(1, -inf, P::stabilising));
  CHECK_FALSE(differ(-16.9, -16.5, P::stabilising));
  CHECK_FALSE(difference(Array{1, 2}, Array{1, 2, 3}, P::stabilising).empty());
}
