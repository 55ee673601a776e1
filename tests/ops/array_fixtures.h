// Fixtures of functions on arrays (tests/data/make_shape_fixtures.py and others like it): blocks of
// a title, operands and results; and what is tried with each of them.
#pragma once

#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "croton/grad.h"
#include "croton/math.h"
#include "croton/reduce.h"
#include "tests/data_folder.h"
#include "tests/ops/batch.h"
#include "tests/ops/layouts.h"

namespace croton::test {

struct ArrayBlock {
  std::string title;
  std::vector<Array> operands;
  std::vector<Array> results;
};

/// "dtype sizes | elements"
inline Array read_array_line(std::istringstream words) {
  std::string word;
  words >> word;
  const DType dtype = dtype_from_name(word);
  Shape shape;
  while (words >> word && word != "|") shape.push_back(std::stoll(word));
  if (!is_float(dtype)) {
    std::vector<std::int64_t> values;
    while (words >> word) values.push_back(std::stoll(word));
    return Array::from<std::int64_t>(values, shape).astype(dtype);
  }
  std::vector<double> values;
  while (words >> word) values.push_back(std::strtod(word.c_str(), nullptr));
  return Array::from<double>(values, shape).astype(dtype);
}

inline std::vector<ArrayBlock> read_array_blocks(const std::string& file) {
  std::ifstream in(data_folder() + "/" + file);
  REQUIRE(in);
  std::vector<ArrayBlock> blocks;
  for (std::string line; std::getline(in, line);) {
    if (line[0] == '@') {
      blocks.push_back({line.substr(2), {}, {}});
    } else if (line.starts_with("in ")) {
      blocks.back().operands.push_back(read_array_line(std::istringstream(line.substr(3))));
    } else {
      REQUIRE(line.starts_with("out "));
      blocks.back().results.push_back(read_array_line(std::istringstream(line.substr(4))));
    }
  }
  return blocks;
}

using Operands = std::vector<Variable>;
/// What is built for the blocks of a title.
using Builders = std::map<std::string, std::function<Operands(const Operands&)>>;

/// Inputs for the operands, with sizes known or not (sizes of 1 always are).
inline Operands inputs_for(const ArrayBlock& block, bool known) {
  Operands inputs;
  for (const Array& x : block.operands) {
    inputs.push_back(input(x.dtype(), known ? x.shape() : unknown_sizes(x.shape())));
  }
  return inputs;
}

/// Blocks with what is built for them; checks that there is something for each title and a block
/// for each builder.
inline void for_each_block(const std::string& file, const Builders& builders,
                           const std::function<void(const ArrayBlock&, const Operands& inputs,
                                                    const Operands& results, bool known)>& use) {
  std::set<std::string> seen;
  for (const ArrayBlock& block : read_array_blocks(file)) {
    const auto builder = builders.find(block.title);
    INFO(block.title);
    REQUIRE(builder != builders.end());
    seen.insert(block.title);
    for (const bool known : {true, false}) {
      const Operands inputs = inputs_for(block, known);
      INFO((known ? "known sizes" : "unknown sizes"));
      use(block, inputs, builder->second(inputs), known);
    }
  }
  for (const auto& builder : builders) {
    INFO(builder.first);
    CHECK(seen.contains(builder.first));
  }
}

/// Every result by the references of its ops and compiled; float results within `tolerance`.
inline void check_fixtures(const std::string& file, const Builders& builders, double tolerance) {
  std::vector<Trial> trials;
  std::vector<Array> wanted;
  for_each_block(
      file, builders,
      [&](const ArrayBlock& block, const Operands& inputs, const Operands& results, bool known) {
        REQUIRE(results.size() == block.results.size());
        for (std::size_t k = 0; k < results.size(); ++k) {
          trials.push_back({block.title + (known ? ", known" : ", unknown") + " sizes, result " +
                                std::to_string(k),
                            results[k], inputs, block.operands});
          wanted.push_back(block.results[k]);
        }
      });
  const auto check = [&](const Array& got, const Array& want) {
    INFO("got " << name_of(got.dtype()) << " " << got.shape().to_string() << "\n"
                << got << "\nwanted " << name_of(want.dtype()) << " " << want.shape().to_string()
                << "\n"
                << want);
    CHECK(got.shape() == want.shape());
    if (got.shape() != want.shape()) return;
    CHECK(is_float(got.dtype()) == is_float(want.dtype()));
    CHECK(allclose(got.astype(DType::float64), want.astype(DType::float64), tolerance, tolerance,
                   true));
  };
  std::size_t number = 0;
  for (const Trial& trial : trials) {
    INFO(trial.title << ", by references");
    check(trial.reference(), wanted[number++]);
  }
  number = 0;
  for_each_result(trials, [&](const Trial& trial, const Array& got) {
    INFO(trial.title << ", compiled");
    const auto place = static_cast<std::size_t>(&trial - trials.data());
    check(got, wanted[place]);
    ++number;
  });
  CHECK(number == trials.size());
}

/// Derivatives of sums of weighted float64 results, by the references of the gradient's ops,
/// against finite differences; unless `skip` names the title.
inline void check_fixture_gradients(const std::string& file, const Builders& builders,
                                    const std::set<std::string>& skip = {}) {
  std::mt19937 random(5);
  for_each_block(
      file, builders,
      [&](const ArrayBlock& block, const Operands& inputs, const Operands& results, bool known) {
        Operands with_respect_to;
        for (const Variable& x : inputs) {
          if (x.dtype() == DType::float64) with_respect_to.push_back(x);
        }
        if (with_respect_to.empty() || skip.contains(block.title)) return;
        INFO(block.title << (known ? ", known sizes" : ", unknown sizes"));
        Variable cost;
        for (std::size_t k = 0; k < results.size(); ++k) {
          if (!is_float(results[k].dtype())) return;
          const Array weights =
              drawn(block.results[k].shape(), {-1, 1}, DType::float64, false, random);
          const Variable part = sum(specify_shape(results[k], weights.shape()) * weights);
          cost = cost.defined() ? cost + part : part;
        }
        Values at;
        for (std::size_t k = 0; k < inputs.size(); ++k) at[inputs[k]] = block.operands[k];
        const Operands slopes =
            grad(cost, with_respect_to, {.disconnected_inputs = Disconnected::ignore});
        for (std::size_t i = 0; i < with_respect_to.size(); ++i) {
          const Array slope = value(slopes[i], at);
          REQUIRE(slope.shape() == at[with_respect_to[i]].shape());
          for (std::int64_t e = 0; e < slope.size(); ++e) {
            const auto cost_at = [&](double step) {
              Values moved = at;
              Array x = moved[with_respect_to[i]].copy();
              x.mutable_data<double>()[e] += step;
              moved[with_respect_to[i]] = x;
              return value(cost, moved).item<double>();
            };
            INFO("operand " << i << ", element " << e);
            CHECK(slope.to_vector<double>()[static_cast<std::size_t>(e)] ==
                  Approx((cost_at(1e-5) - cost_at(-1e-5)) / 2e-5).epsilon(1e-5).margin(1e-7));
          }
        }
      });
}

}  // namespace croton::test
