// Reductions against NumPy and SciPy
// (tests/data/make_reduce_fixtures.py): by the references of their ops and compiled, with sizes
// known and unknown, in float64 and narrower.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "croton/statistics.h"
#include "tests/ops/array_fixtures.h"

using namespace croton;
using namespace croton::test;

namespace {

using Build = std::function<Variable(const Operands&)>;

constexpr double kInf = std::numeric_limits<double>::infinity();

void add_statistics(std::map<std::string, Build>& table) {
  for (const int ddof : {0, 1, 2}) {
    const VarOptions options{.ddof = static_cast<double>(ddof)};
    const std::string suffix = "ddof" + std::to_string(ddof);
    table["var_" + suffix] = [=](const Operands& x) { return var(x[0], none, options); };
    table["var_01_" + suffix] = [=](const Operands& x) { return var(x[0], {1, 0}, options); };
  }
  table["var_last_ddof5"] = [](const Operands& x) { return var(x[0], -1, {.ddof = 5}); };
  table["var_last"] = [](const Operands& x) { return var(x[0], -1); };
  table["std_last"] = [](const Operands& x) { return croton::std(x[0], -1); };
  table["std_0"] = [](const Operands& x) { return croton::std(x[0], 0); };
  table["ptp"] = [](const Operands& x) { return ptp(x[0]); };
  table["ptp_1"] = [](const Operands& x) { return ptp(x[0], 1); };
  table["count_nonzero_0"] = [](const Operands& x) { return count_nonzero(x[0], 0); };
  table["argmax"] = [](const Operands& x) { return max_and_argmax(x[0]).second; };
  table["argmax_last"] = [](const Operands& x) { return argmax(x[0], 1, {.last = true}); };
  table["argmin_last"] = [](const Operands& x) { return argmin(x[0], 1, {.last = true}); };
  table["average"] = [](const Operands& x) { return average(x[0], x[1]); };
  table["average_1"] = [](const Operands& x) { return average(x[0], x[1], 1); };
  table["logsumexp_all"] = [](const Operands& x) { return logsumexp(x[0], none); };
  table["logsumexp_last"] = [](const Operands& x) { return logsumexp(x[0], {-1}); };
  table["logsumexp_01_keepdims"] = [](const Operands& x) {
    return logsumexp(x[0], {0, 1}, {.keepdims = true});
  };
}

void add_norms(std::map<std::string, Build>& table) {
  table["norm"] = [](const Operands& x) { return norm(x[0]); };
  const std::pair<const char*, double> orders[] = {{"2", 2},      {"1", 1},        {"0", 0},
                                                   {"inf", kInf}, {"-inf", -kInf}, {"3", 3},
                                                   {"0.5", 0.5},  {"-1", -1},      {"-2", -2}};
  for (const auto& [name, order] : orders) {
    table["norm_" + std::string(name) + "_axis1"] = [order = order](const Operands& x) {
      return norm(x[0], order, 1);
    };
    if (std::fabs(order) != 1 && std::fabs(order) != kInf) continue;  // of vectors
    table["norm_" + std::string(name) + "_axes10"] = [order = order](const Operands& x) {
      return norm(x[0], order, {1, 0});
    };
  }
  table["norm_fro_axes10"] = [](const Operands& x) { return norm(x[0], "fro", {1, 0}); };
}

void add_nan_forms(std::map<std::string, Build>& table) {
  using Reduce = Variable (*)(const Operand&, const Axis&, const ReduceOptions&);
  const std::pair<const char*, Reduce> reductions[] = {{"nansum", nansum},
                                                       {"nanprod", nanprod},
                                                       {"nanmean", nanmean},
                                                       {"nanmax", nanmax},
                                                       {"nanmin", nanmin}};
  for (const auto& [name, reduce] : reductions) {
    table[name] = [reduce = reduce](const Operands& x) { return reduce(x[0], none, {}); };
    table[std::string(name) + "_1"] = [reduce = reduce](const Operands& x) {
      return reduce(x[0], 1, {});
    };
  }
  table["nanvar"] = [](const Operands& x) { return nanvar(x[0]); };
  table["nanvar_1"] = [](const Operands& x) { return nanvar(x[0], 1); };
  table["nanvar_ddof1"] = [](const Operands& x) { return nanvar(x[0], 0, {.ddof = 1}); };
  table["nanstd"] = [](const Operands& x) { return nanstd(x[0]); };
  table["nanstd_1"] = [](const Operands& x) { return nanstd(x[0], 1); };
  table["nanargmax"] = [](const Operands& x) { return nanargmax(x[0]); };
  table["nanargmax_1"] = [](const Operands& x) { return nanargmax(x[0], 1); };
  table["nanargmin_1"] = [](const Operands& x) { return nanargmin(x[0], 1); };
}

void add_covariances(std::map<std::string, Build>& table) {
  table["cov"] = [](const Operands& x) { return cov(x[0]); };
  table["cov_columns"] = [](const Operands& x) { return cov(x[0], {.rowvar = false}); };
  table["cov_ddof0"] = [](const Operands& x) { return cov(x[0], {.ddof = 0}); };
  for (const double ddof : {0, 1, 2}) {
    const std::string suffix = "_ddof" + std::to_string(static_cast<int>(ddof));
    table["cov_often" + suffix] = [=](const Operands& x) {
      return cov(x[0], {.ddof = ddof, .fweights = x[1]});
    };
    table["cov_much" + suffix] = [=](const Operands& x) {
      return cov(x[0], {.ddof = ddof, .aweights = x[1]});
    };
    table["cov_both" + suffix] = [=](const Operands& x) {
      return cov(x[0], {.ddof = ddof, .fweights = x[1], .aweights = x[2]});
    };
  }
  table["corrcoef"] = [](const Operands& x) { return corrcoef(x[0]); };
  table["corrcoef_columns"] = [](const Operands& x) { return corrcoef(x[0], false); };
}

std::map<std::string, Build> builders() {
  std::map<std::string, Build> table;
  add_statistics(table);
  add_norms(table);
  add_nan_forms(table);
  add_covariances(table);
  return table;
}

void check_close(const Array& result, const Array& expected, double rtol) {
  REQUIRE(result.shape() == expected.shape());
  CHECK(is_float(result.dtype()) == is_float(expected.dtype()));
  CHECK(is_bool(result.dtype()) == is_bool(expected.dtype()));
  INFO("got\n" << result << "\nexpected\n" << expected);
  CHECK(allclose(result.astype(DType::float64), expected.astype(DType::float64), rtol, rtol * 0.01,
                 true));
}

/// Whether the elements are the same in float32: the order of equals and differences of large ones
/// need it.
bool exact_in_float32(const Array& x) {
  return allclose(x.astype(DType::float32).astype(x.dtype()), x, 0, 0, true);
}

/// The block with floats in a dtype, sizes known or not.
Trial make_trial(const ArrayBlock& block, const Build& build, bool known, DType floats) {
  Trial trial;
  trial.title = block.title;
  for (const Array& x : block.operands) {
    Shape sizes = x.shape();
    // A size of 1 that nobody knows of does not broadcast.
    for (std::int64_t& size : sizes) size = known || size == 1 ? size : kAnyDim;
    const DType dtype = is_float(x.dtype()) ? floats : x.dtype();
    trial.inputs.push_back(input(dtype, sizes));
    trial.arguments.push_back(x.astype(dtype));
  }
  trial.y = build(trial.inputs);
  return trial;
}

/// The block in the forms that are compiled; on devices where that takes long, in one of them.
void add_trials(const ArrayBlock& block, const Build& build, std::vector<Trial>& trials,
                std::vector<Array>& expected) {
  const bool narrow = is_float(block.operands[0].dtype()) &&
                      std::all_of(block.operands.begin(), block.operands.end(), exact_in_float32);
  std::vector<Trial> forms{make_trial(block, build, true, DType::float64),
                           make_trial(block, build, false, DType::float64)};
  if (narrow) forms.push_back(make_trial(block, build, true, DType::float32));
  if (std::getenv("CROTON_TEST_LAYOUTS") != nullptr) {
    const Trial chosen = forms[expected.size() % forms.size()];
    forms = {chosen};
  }
  for (const Trial& form : forms) {
    trials.push_back(form);
    trials.back().title = std::to_string(expected.size()) + " " + block.title;
  }
  expected.push_back(block.results[0]);
}

double tolerance(const Trial& trial) {
  const bool narrow =
      trial.y.dtype() == DType::float32 || trial.inputs[0].dtype() == DType::float32;
  return narrow ? 2e-6 : 1e-12;
}

}  // namespace

TEST_CASE("reductions agree with NumPy", "[ops][reduce][fixtures]") {
  const std::map<std::string, Build> table = builders();
  std::set<std::string> used;
  std::vector<Trial> trials;
  std::vector<Array> expected;
  for (const ArrayBlock& block : read_array_blocks("reduce_values.txt")) {
    INFO(block.title);
    REQUIRE(table.contains(block.title));
    used.insert(block.title);
    const Build& build = table.at(block.title);
    const Trial reference = make_trial(block, build, true, DType::float64);
    check_close(reference.reference(), block.results[0], tolerance(reference));
    add_trials(block, build, trials, expected);
  }
  for (const auto& [title, build] : table) {
    INFO(title);
    CHECK(used.contains(title));
  }
  for_each_result(trials, [&](const Trial& trial, const Array& result) {
    INFO(trial.title << " of\n" << trial.arguments[0]);
    check_close(result, expected[std::stoul(trial.title)], tolerance(trial));
  });
}
