// Values of scalar ops: their bodies, folded by the kernel builder, and their references, against
// what NumPy and SciPy gave (tests/data/make_scalar_fixtures.py).
#include <catch2/catch.hpp>
#include <set>

#include "croton/error.h"
#include "tests/ops/scalar_fixtures.h"

using namespace croton;
using namespace croton::test;

namespace {

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
      CHECK(close(got, std::strtod(row.back().c_str(), nullptr), tolerance(block.op, real), real,
                  absolute_scale(block.op)));
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
    if (floats && is_rounded_in_float32(block)) check_bodies(block, DType::float32);
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
