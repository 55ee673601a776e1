#include "croton/random_stream.h"

#include <fmt/format.h>

#include "compiler/graph/node.h"
#include "croton/error.h"
#include "croton/math.h"
#include "croton/random.h"
#include "frontend/default_runtime.h"
#include "ops/build.h"
#include "ops/sizes.h"
#include "runtime/runtime.h"

namespace croton {
namespace {

bool is_literal_of(const Operand& operand, double value) {
  return operand.is_literal() && operand.literal().real == value;
}

/// How many numbers a draw uses up: whole Philox blocks, so that no two calls share one.
Variable used_up(const SizeList& sizes, std::int64_t block, const Loc& loc) {
  std::int64_t known = 1;
  for (const std::int64_t size : sizes.numbers) {
    if (size != kSymbolSize) known *= size;
  }
  const auto number = [&](std::int64_t value) { return make_scalar(DType::int64, value, loc); };
  if (sizes.symbols.empty()) return number((known + block - 1) / block * block);
  Variable count = number(known);
  for (const Variable& size : sizes.symbols) count = mul(Operand(count, loc), size);
  return mul(floor_divide(Operand(count, loc) + number(block - 1), number(block)), number(block));
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string target)
    : seed_(seed), target_(std::move(target)) {
  if (!target_.empty()) default_runtime()->canonical_name(target_);
}

Variable RandomStream::numbers(const char* op, const Sizes& sizes, std::optional<DType> dtype,
                               const Loc& loc) {
  const DType of = dtype.value_or(build_settings().float_x);
  const std::uint64_t stream = states_.size();
  const SizeList list = size_list(op, sizes, loc);
  Shared state =
      shared(Array(std::int64_t{0}),
             {.name = fmt::format("random_{}_{}", seed_, stream), .target = target_}, loc);
  const_cast<Node*>(state.node())->increment = used_up(list, of == DType::float64 ? 2 : 4, loc);
  const PhiloxOptions options{.seed = seed_, .stream = stream, .dtype = of};
  const bool uniform = std::string_view(op) == "philox_uniform";
  Variable result = uniform ? philox_uniform(Operand(state, loc), sizes, options)
                            : philox_normal(Operand(state, loc), sizes, options);
  states_.push_back(std::move(state));
  return result;
}

Variable RandomStream::uniform(const Sizes& sizes, const UniformDraw& draw, Loc line) {
  const Loc loc = line.named("uniform");
  const bool numeric = draw.low.is_literal() && draw.high.is_literal();
  const double low = numeric ? draw.low.literal().real : 0;
  const double high = numeric ? draw.high.literal().real : 0;
  if (!(high >= low)) {
    graph_error("uniform",
                fmt::format("high must not be below low: got low {}, high {}", low, high), loc);
  }
  const Operand u(numbers("philox_uniform", sizes, draw.dtype, loc), loc);
  if (numeric && low == 0 && high == 1) return u.variable();
  if (numeric) return add(mul(u, high - low), low);
  return add(mul(u, sub(draw.high, draw.low)), draw.low);
}

Variable RandomStream::normal(const Sizes& sizes, const NormalDraw& draw, Loc line) {
  const Loc loc = line.named("normal");
  if (draw.stddev.is_literal() && !(draw.stddev.literal().real >= 0)) {
    graph_error("normal",
                fmt::format("stddev must not be negative: got {}", draw.stddev.literal().real),
                loc);
  }
  Variable z = numbers("philox_normal", sizes, draw.dtype, loc);
  if (!is_literal_of(draw.stddev, 1)) z = mul(Operand(z, loc), draw.stddev);
  if (!is_literal_of(draw.mean, 0)) z = add(Operand(z, loc), draw.mean);
  return z;
}

Variable RandomStream::bernoulli(const Sizes& sizes, const Operand& p, Loc line) {
  const Loc loc = line.named("bernoulli");
  if (p.is_literal() && !(p.literal().real >= 0 && p.literal().real <= 1)) {
    graph_error("bernoulli",
                fmt::format("p must be a probability, from 0 to 1: got {}", p.literal().real), loc);
  }
  return lt(Operand(numbers("philox_uniform", sizes, {}, loc), loc), p);
}

Variable RandomStream::integers(const Sizes& sizes, const Operand& low, const Operand& high,
                                std::optional<DType> dtype, Loc line) {
  const Loc loc = line.named("integers");
  const auto bound = [&](const Operand& operand, const char* name) {
    const Variable value = operand.variable();
    if (is_float(value.dtype()) || is_bool(value.dtype())) {
      graph_error("integers",
                  fmt::format("{} must be an integer: got {}", name, name_of(value.dtype())), loc);
    }
    return cast_to(value, DType::int64, loc);
  };
  if (low.is_literal() && high.is_literal() && low.literal().real >= high.literal().real) {
    graph_error("integers",
                fmt::format("low must be below high: got low {}, high {}", low.literal().integer,
                            high.literal().integer),
                loc);
  }
  const Variable from = bound(low, "low"), to = bound(high, "high");
  const Variable u = numbers("philox_uniform", sizes, DType::float64, loc);
  const Variable range = cast_to(sub(Operand(to, loc), from), DType::float64, loc);
  const Variable whole = cast_to(floor(mul(Operand(u, loc), range)), DType::int64, loc);
  return cast_to(add(Operand(whole, loc), from), dtype.value_or(DType::int64), loc);
}

void RandomStream::reset() const {
  for (const Shared& state : states_) state.set_value(Array(std::int64_t{0}));
}

}  // namespace croton
