// Values of scalar ops: their bodies, folded by the kernel builder, and their references, against
// what NumPy and SciPy gave (tests/data/make_scalar_fixtures.py).
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "compiler/graph/op.h"
#include "compiler/kernel/evaluate.h"
#include "compiler/kernel/math.h"
#include "croton/error.h"

using namespace croton;

namespace {

struct Block {
  std::string op;
  DType dtype = DType::float64;
  DType result = DType::float64;
  std::vector<std::vector<std::string>> rows;  // operands, then the result
};

std::vector<Block> read_blocks() {
  std::ifstream in(CROTON_TEST_DATA "/scalar_values.txt");
  REQUIRE(in);
  std::vector<Block> blocks;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::vector<std::string> list;
    for (std::string word; words >> word;) list.push_back(word);
    if (list.at(0) == "@") {
      blocks.push_back({list.at(1), dtype_from_name(list.at(2)), dtype_from_name(list.at(3)), {}});
    } else {
      blocks.back().rows.push_back(std::move(list));
    }
  }
  return blocks;
}

/// The bits of a value that was read, in `dtype`.
std::uint64_t bits_of(const std::string& text, DType dtype) {
  if (is_float(dtype)) return kernel::bits_of(dtype, std::strtod(text.c_str(), nullptr));
  const std::uint64_t value =
      text[0] == '-' ? static_cast<std::uint64_t>(std::strtoll(text.c_str(), nullptr, 10))
                     : std::strtoull(text.c_str(), nullptr, 10);
  return kernel::bits_of_integer(dtype, static_cast<std::int64_t>(value));
}

/// The float dtype in which a block is tried stands in for float64.
DType replaced(DType dtype, DType real) { return dtype == DType::float64 ? real : dtype; }

Attrs attrs_of(const Block& block, DType real) {
  if (block.op == "grad_clip") return {{"low", -1.0}, {"high", 1.0}};
  if (block.op == "grad_scale") return {{"factor", 2.0}};
  if (block.op != "cast") return {};
  return {{"dtype", static_cast<std::int64_t>(replaced(block.result, real))}};
}

DType operand_dtype(const Block& block, std::size_t k, DType real) {
  return block.op == "where" && k == 0 ? DType::boolean : replaced(block.dtype, real);
}

/// A node of the block's op on scalars.
Variable node_of(const Block& block, DType real) {
  std::vector<Variable> inputs;
  for (std::size_t k = 0; k + 1 < block.rows[0].size(); ++k) {
    inputs.push_back(make_input({operand_dtype(block, k, real), {}}, "x", Loc::current()));
  }
  return apply(block.op, std::move(inputs), attrs_of(block, real), Loc::current());
}

/// Units in the last place by which a body may be off; 0 for those that must be exact.
double tolerance(const std::string& op, DType real) {
  for (const kernel::MathBound& bound : kernel::math_bounds()) {
    if (bound.name == op) {
      return 1 + (real == DType::float64 ? bound.float64_ulp : bound.float32_ulp);
    }
  }
  return op == "logistic_loss" ? 4 : 0;
}

double ulp(double value, DType real) {
  if (real == DType::float64) {
    const double a = std::fabs(value);
    return std::nextafter(a, std::numeric_limits<double>::infinity()) - a;
  }
  const float a = std::fabs(static_cast<float>(value));
  return static_cast<double>(std::nextafter(a, std::numeric_limits<float>::infinity())) - a;
}

bool close(double got, double want, double ulps, DType real) {
  if (real == DType::float32) want = static_cast<float>(want);
  if (std::isnan(want)) return std::isnan(got);
  if (got == want) return true;
  return std::isfinite(want) && std::isfinite(got) &&
         std::fabs(got - want) <= ulps * ulp(want, real);
}

std::string describe(const Block& block, const std::vector<std::string>& row, DType real) {
  std::string text = block.op + " in " + std::string(name_of(replaced(block.dtype, real)));
  for (const std::string& word : row) text += " " + word;
  return text;
}

/// Runs the body on constants, which the builder folds.
void check_bodies(const Block& block, DType real) {
  const Variable y = node_of(block, real);
  CHECK(y.dtype() == replaced(block.result, real));
  const OpDef& op = *y.node()->op;
  for (const std::vector<std::string>& row : block.rows) {
    kernel::Builder builder;
    std::vector<kernel::Expr> x;
    for (std::size_t k = 0; k + 1 < row.size(); ++k) {
      const DType dtype = operand_dtype(block, k, real);
      x.push_back(builder.bits(dtype, bits_of(row[k], dtype)));
    }
    const kernel::Expr result = op.scalar(builder, x, *y.node());
    INFO(describe(block, row, real));
    REQUIRE(result.dtype() == y.dtype());
    const kernel::Node& node = builder.node(result.id);
    REQUIRE(node.op == kernel::Op::constant);
    if (is_float(y.dtype())) {
      const double got = kernel::as_double(y.dtype(), node.bits);
      INFO("got " << got);
      CHECK(close(got, std::strtod(row.back().c_str(), nullptr), tolerance(block.op, real), real));
    } else {
      CHECK(kernel::as_integer(y.dtype(), node.bits) ==
            kernel::as_integer(y.dtype(), bits_of(row.back(), y.dtype())));
    }
  }
}

template <class T, class Function>
void check_reference_class(const Block& block, Function function) {
  REQUIRE(function != nullptr);
  for (const std::vector<std::string>& row : block.rows) {
    T x[3] = {};
    for (std::size_t k = 0; k + 1 < row.size(); ++k) {
      if constexpr (std::same_as<T, double>) {
        x[k] = std::strtod(row[k].c_str(), nullptr);
      } else {
        x[k] = static_cast<T>(bits_of(row[k], std::same_as<T, bool>           ? DType::boolean
                                              : std::same_as<T, std::int64_t> ? DType::int64
                                                                              : DType::uint64));
      }
    }
    const T result = function(x);
    INFO(describe(block, row, DType::float64) << ", reference gives " << result);
    if (block.op == "cast") continue;  // converted by whoever asks
    if constexpr (std::same_as<T, double>) {
      const double want = std::strtod(row.back().c_str(), nullptr);
      // The C library's functions, and the shorter formulas of references.
      CHECK((close(result, want, 16, DType::float64) || std::fabs(result - want) < 1e-15));
    } else {
      CHECK(kernel::bits_of_integer(block.result, static_cast<std::int64_t>(result)) ==
            bits_of(row.back(), block.result));
    }
  }
}

void check_reference(const Block& block) {
  const ScalarReference& reference = OpRegistry::instance().at(block.op).scalar_reference;
  if (is_float(block.dtype)) {
    check_reference_class<double>(block, reference.real);
  } else if (is_unsigned(block.dtype)) {
    check_reference_class<std::uint64_t>(block, reference.natural);
  } else if (is_integer(block.dtype)) {
    check_reference_class<std::int64_t>(block, reference.integer);
  } else {
    check_reference_class<bool>(block, reference.boolean);
  }
}

}  // namespace

TEST_CASE("scalar ops give the values of NumPy", "[ops]") {
  for (const Block& block : read_blocks()) {
    check_bodies(block, DType::float64);
    const bool floats = is_float(block.dtype) || is_float(block.result);
    if (floats && block.op != "cast") check_bodies(block, DType::float32);
  }
}

TEST_CASE("scalar references give the values of NumPy", "[ops]") {
  for (const Block& block : read_blocks()) check_reference(block);
}

TEST_CASE("every scalar op has fixtures, examples and a reference", "[ops]") {
  std::set<std::string> known;
  for (const Block& block : read_blocks()) known.insert(block.op);
  int count = 0;
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (op->form != OpForm::scalar) continue;
    INFO(op->name);
    CHECK(known.contains(op->name));
    CHECK(!op->examples.empty());
    CHECK(!op->doc.empty());
    CHECK((op->scalar_reference.real != nullptr || op->scalar_reference.integer != nullptr ||
           op->scalar_reference.boolean != nullptr));
    ++count;
  }
  CHECK(count >= 60);
}

TEST_CASE("a scalar op's body has the dtype that its rule gives", "[ops]") {
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (op->form != OpForm::scalar) continue;
    int accepted = 0;
    for (int t = 0; t < kDTypeCount; ++t) {
      const auto dtype = static_cast<DType>(t);
      std::vector<Variable> inputs;
      for (std::size_t k = 0; k < op->examples.at(0).shapes.size(); ++k) {
        const DType mine = op->name == "where" && k == 0 ? DType::boolean : dtype;
        inputs.push_back(make_input({mine, {}}, "x", Loc::current()));
      }
      Variable y;
      try {
        y = apply(*op, inputs, op->examples[0].attrs, Loc::current());
      } catch (const GraphError&) {
        continue;
      }
      ++accepted;
      kernel::Builder builder;
      std::vector<kernel::Expr> x;
      for (const Variable& input : inputs) {
        const bool narrow = input.dtype() == DType::float16 || input.dtype() == DType::bfloat16;
        x.push_back(builder.constant(narrow ? DType::float32 : input.dtype(), 1));
      }
      const DType got = op->scalar(builder, x, *y.node()).dtype();
      const bool narrow = y.dtype() == DType::float16 || y.dtype() == DType::bfloat16;
      INFO(op->name << " of " << name_of(dtype));
      CHECK((got == y.dtype() || (narrow && got == DType::float32)));
    }
    INFO(op->name);
    CHECK(accepted > 0);
  }
}
