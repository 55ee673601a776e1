// The fixtures of scalar ops (tests/data/make_scalar_fixtures.py), and how close a value must come.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/graph/op.h"
#include "compiler/kernel/evaluate.h"
#include "compiler/kernel/math.h"
#include "tests/data_folder.h"
#include "tests/ops/missing_gradients.h"

namespace croton::test {

struct Block {
  std::string op;
  DType dtype = DType::float64;
  DType result = DType::float64;
  std::vector<std::vector<std::string>> rows;  // operands, then the result
};

inline std::vector<Block> read_blocks() {
  std::ifstream in(data_folder() + "/scalar_values.txt");
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
inline std::uint64_t bits_of(const std::string& text, DType dtype) {
  if (is_float(dtype)) return kernel::bits_of(dtype, std::strtod(text.c_str(), nullptr));
  const std::uint64_t value =
      text[0] == '-' ? static_cast<std::uint64_t>(std::strtoll(text.c_str(), nullptr, 10))
                     : std::strtoull(text.c_str(), nullptr, 10);
  return kernel::bits_of_integer(dtype, static_cast<std::int64_t>(value));
}

/// Whether the values in float32 are those in float64, rounded.
inline bool is_rounded_in_float32(const Block& block) {
  return block.op != "cast" && block.op != "nextafter";
}

/// The column of operands, or of results, as an array.
inline Array column(const Block& block, std::size_t k, DType dtype) {
  const std::size_t rows = block.rows.size();
  Array array = Array::empty({rows}, dtype);
  auto* to = static_cast<char*>(const_cast<void*>(array.raw_data()));
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint64_t bits = bits_of(block.rows[row][k], dtype);
    for (std::size_t byte = 0; byte < size_of(dtype); ++byte) {
      to[row * size_of(dtype) + byte] = static_cast<char>(bits >> (8 * byte));
    }
  }
  return array;
}

/// The float dtype in which a block is tried stands in for float64.
inline DType replaced(DType dtype, DType real) { return dtype == DType::float64 ? real : dtype; }

inline Attrs attrs_of(const Block& block, DType real) {
  if (block.op == "grad_clip") return {{"low", -1.0}, {"high", 1.0}};
  if (block.op == "grad_scale") return {{"factor", 2.0}};
  if (block.op == "polygamma") return {{"n", std::int64_t{1}}};
  if (block.op != "cast") return {};
  return {{"dtype", static_cast<std::int64_t>(replaced(block.result, real))}};
}

inline DType operand_dtype(const Block& block, std::size_t k, DType real) {
  return block.op == "where" && k == 0 ? DType::boolean : replaced(block.dtype, real);
}

/// A node of the block's op on inputs of one shape.
inline Variable node_of(const Block& block, DType real, const Shape& shape = {}) {
  std::vector<Variable> inputs;
  for (std::size_t k = 0; k + 1 < block.rows[0].size(); ++k) {
    inputs.push_back(make_input({operand_dtype(block, k, real), shape}, "x", Loc::current()));
  }
  return apply(block.op, std::move(inputs), attrs_of(block, real), Loc::current());
}

/// Units in the last place by which a body may be off; 0 for those that must be exact.
inline double tolerance(const std::string& op, DType real) {
  for (const kernel::MathBound& bound : kernel::math_bounds()) {
    if (bound.name == op) {
      return 1 + (real == DType::float64 ? bound.float64_ulp : bound.float32_ulp);
    }
  }
  return op == "logistic_loss" ? 4 : 0;
}

/// Where results near 0 are differences of larger numbers: how large those are in the examples.
inline double absolute_scale(const std::string& op) {
  using Unit = kernel::MathBound::Unit;
  for (const kernel::MathBound& bound : kernel::math_bounds()) {
    if (bound.name != op) continue;
    if (bound.unit == Unit::operand) return 10;
    return bound.unit == Unit::value || bound.unit == Unit::one_left ? 0 : 1;
  }
  return op == "logistic_loss" ? 10 : 0;
}

inline double ulp(double value, DType real) {
  if (real == DType::float64) {
    const double a = std::fabs(value);
    return std::nextafter(a, std::numeric_limits<double>::infinity()) - a;
  }
  const float a = std::fabs(static_cast<float>(value));
  return static_cast<double>(std::nextafter(a, std::numeric_limits<float>::infinity())) - a;
}

/// Within so many units in the last place of the value, or of `least` if that is larger.
inline bool close(double got, double want, double ulps, DType real, double least = 0) {
  if (real == DType::float32) want = static_cast<float>(want);
  if (std::isnan(want)) return std::isnan(got);
  if (got == want) return true;
  return std::isfinite(want) && std::isfinite(got) &&
         std::fabs(got - want) <= ulps * ulp(std::fmax(std::fabs(want), least), real);
}

inline std::string describe(const Block& block, const std::vector<std::string>& row, DType real) {
  std::string text = block.op + " in " + std::string(name_of(replaced(block.dtype, real)));
  for (const std::string& word : row) text += " " + word;
  return text;
}

}  // namespace croton::test
