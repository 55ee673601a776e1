// First and second derivatives of scalar ops against those by JAX and mpmath
// (tests/data/make_gradient_fixtures.py): by the references of the ops that they are made of, and
// compiled.
#include <fmt/format.h>

#include <map>
#include <set>

#include "croton/function.h"
#include "croton/grad.h"
#include "croton/reduce.h"
#include "tests/ops/graph_values.h"
#include "tests/ops/scalar_fixtures.h"

using namespace croton;
using namespace croton::test;

namespace {

/// An op at points: its operands, and its derivatives by some of them. NaN where none is known.
struct DerivativeBlock {
  std::string op;
  std::vector<std::size_t> operands;
  std::vector<std::vector<double>> at, first, second;  // by row
};

std::vector<double> read_numbers(std::istringstream& words) {
  std::vector<double> numbers;
  for (std::string word; words >> word && word != "|";) {
    numbers.push_back(word == "-" ? NAN : std::strtod(word.c_str(), nullptr));
  }
  return numbers;
}

std::vector<DerivativeBlock> read_derivatives() {
  std::ifstream in(data_folder() + "/scalar_gradients.txt");
  REQUIRE(in);
  std::vector<DerivativeBlock> blocks;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    if (line[0] == '@') {
      std::string sign;
      blocks.emplace_back();
      words >> sign >> blocks.back().op;
      for (std::size_t k; words >> k;) blocks.back().operands.push_back(k);
    } else {
      blocks.back().at.push_back(read_numbers(words));
      blocks.back().first.push_back(read_numbers(words));
      blocks.back().second.push_back(read_numbers(words));
    }
  }
  return blocks;
}

/// The op on vectors of the points, and its derivatives: the first ones, then the second.
struct Derivatives {
  std::vector<Variable> inputs, wanted;
  std::vector<Array> arguments;

  explicit Derivatives(const DerivativeBlock& block) {
    const Block like{block.op, DType::float64, DType::float32, {}};
    for (std::size_t k = 0; k < block.at[0].size(); ++k) {
      std::vector<double> column;
      for (const std::vector<double>& row : block.at) column.push_back(row.at(k));
      const DType dtype = operand_dtype(like, k, DType::float64);
      inputs.push_back(input(dtype, {kAnyDim}));
      arguments.push_back(Array::from<double>(column).astype(dtype));
    }
    const Variable y = apply(block.op, inputs, attrs_of(like, DType::float64), Loc::current());
    std::vector<Variable> wrt;
    for (const std::size_t k : block.operands) wrt.push_back(inputs.at(k));
    wanted = grad(sum(y), wrt);
    for (std::size_t i = 0; i < wrt.size(); ++i) {
      for (std::size_t j = i; j < wrt.size(); ++j) {
        wanted.push_back(
            grad(sum(wanted[i]), wrt[j], {.disconnected_inputs = Disconnected::ignore}));
      }
    }
  }
};

/// How large the numbers are whose difference a derivative is, where that may be less by orders of
/// magnitude; 0 for others. The order is 1 or 2.
double difference_of(const std::string& op, const std::vector<double>& at, int order) {
  static const std::set<std::string> near_one{"sigmoid", "softplus",   "tanh", "logaddexp",
                                              "i0e",     "logaddexp2", "i1e"};
  const double size = std::fabs(at[0]);
  if (near_one.contains(op)) return 1;
  if (op == "erfcx") return order == 1 ? 1 : 2 * std::fmax(size, 1);
  if ((op == "i1" || op == "j1") && order == 2 && size != 0) return 1 / std::fmin(size, 1);
  return op == "hypot" && order == 2 ? 1 / std::fmax(size, std::fabs(at[1])) : 0;
}

void check_derivatives(const DerivativeBlock& block, const std::vector<Array>& got,
                       const char* how) {
  for (std::size_t k = 0; k < got.size(); ++k) {
    const std::vector<double> numbers = got[k].to_vector<double>();
    const std::size_t count = block.operands.size();
    REQUIRE(numbers.size() == block.at.size());
    for (std::size_t row = 0; row < numbers.size(); ++row) {
      const double want = k < count ? block.first[row].at(k) : block.second[row].at(k - count);
      if (std::isnan(want)) continue;
      INFO(fmt::format("{} at {}, derivative {}, {}: got {}, want {}", block.op,
                       fmt::join(block.at[row], " "), k, how, numbers[row], want));
      const double difference = difference_of(block.op, block.at[row], k < count ? 1 : 2);
      const double within = 1e-12 * std::fabs(want) + 1e-15 * difference + 1e-300;
      CHECK((numbers[row] == want || std::fabs(numbers[row] - want) <= within));
    }
  }
}

}  // namespace

TEST_CASE("derivatives of scalar ops are those of JAX", "[ops][grad][conformance]") {
  for (const DerivativeBlock& block : read_derivatives()) {
    INFO(block.op);
    const Derivatives d(block);
    Values at;
    for (std::size_t k = 0; k < d.inputs.size(); ++k) at[d.inputs[k]] = d.arguments[k];
    std::vector<Array> got;
    for (const Variable& v : d.wanted) got.push_back(value(v, at));
    check_derivatives(block, got, "by references");
    const Outputs compiled =
        function(d.inputs, d.wanted, {.on_unused = OnUnused::ignore}).call(d.arguments);
    check_derivatives(block, {compiled.begin(), compiled.end()}, "compiled");
  }
}

TEST_CASE("each scalar op with a gradient has fixtures of it", "[ops][grad][conformance]") {
  // Marks that change the gradient on purpose: scalar_gradients.cpp tries them.
  const std::set<std::string> marks{"zero_grad", "grad_clip", "grad_scale"};
  std::map<std::string, DerivativeBlock> blocks;
  for (const DerivativeBlock& block : read_derivatives()) blocks[block.op] = block;
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (op->form != OpForm::scalar || op->grad == nullptr) continue;
    INFO(op->name << " needs points in tests/data/make_gradient_fixtures.py");
    CHECK(blocks.contains(op->name) != marks.contains(op->name));
    if (!blocks.contains(op->name)) continue;
    const DerivativeBlock& block = blocks.at(op->name);
    CHECK(block.at.size() >= 2);
    for (std::size_t k = 0; k < block.at[0].size(); ++k) {
      const bool listed =
          std::find(block.operands.begin(), block.operands.end(), k) != block.operands.end();
      INFO("operand " << k);
      CHECK(listed != (lacks_gradient(op->name, k) || (op->name == "where" && k == 0)));
    }
  }
}
