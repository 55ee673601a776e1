// Random numbers by counting: how words become numbers is defined in runtime/philox.h.
#include "runtime/philox.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "compiler/kernel/math.h"
#include "croton/random.h"
#include "ops/build.h"
#include "ops/reference.h"
#include "ops/registry.h"
#include "ops/sizes.h"

namespace croton {
namespace {

using kernel::Expr;

DType number_dtype(const Node& node) { return node.outputs[0].dtype; }

void infer_philox(Infer& infer) {
  if (infer.inputs() < 1) infer.fail("an offset is expected");
  if (infer.dtype(0) != DType::int64 || infer.ndim(0) != 0) {
    infer.fail("the offset must be an int64 scalar");
  }
  const DType dtype = static_cast<DType>(infer.attrs().integer("dtype"));
  if (!is_float(dtype)) {
    infer.fail(fmt::format("the dtype must be a float: got {}; convert the numbers with astype",
                           name_of(dtype)));
  }
  infer.out(dtype, size_dims(infer, 1));
}

/// The number of an element in the stream, as uint64.
Expr stream_position(Lowering& low, std::span<const Position> at) {
  Position flat;
  Dim stride = 1;
  for (std::size_t axis = at.size(); axis-- > 0;) {
    flat = scaled(at[axis], stride, low.value(stride)) + flat;
    stride = stride * low.out[0].shape[axis];
  }
  return low.b.cast(low.value(flat) + low.read(0, {}), DType::uint64);
}

kernel::PhiloxWords words_of(Lowering& low, Expr block) {
  const auto constant = [&](const char* name) {
    return low.b.bits(DType::uint64, static_cast<std::uint64_t>(low.node.attrs().integer(name)));
  };
  return kernel::philox(constant("seed"), constant("stream"), block);
}

/// The upper `bits` of a uint32 as float32.
Expr top_bits(Expr word, int bits) {
  return word.builder->cast(word >> (32 - bits), DType::float32);
}

/// The upper 53 bits of two words as float64.
Expr top_bits53(Expr low_word, Expr high_word) {
  kernel::Builder& b = *low_word.builder;
  const Expr high = b.cast(high_word, DType::uint64) << 32;
  return b.cast((high | b.cast(low_word, DType::uint64)) >> 11, DType::float64);
}

Expr uniform_element(Lowering& low, std::span<const Position> at) {
  kernel::Builder& b = low.b;
  const DType dtype = number_dtype(low.node);
  const Expr number = stream_position(low, at);
  if (dtype == DType::float64) {
    const kernel::PhiloxWords w = words_of(low, number >> 1);
    const Expr odd = (number & 1) != 0;
    return top_bits53(b.select(odd, w.word[2], w.word[0]), b.select(odd, w.word[3], w.word[1])) *
           0x1p-53;
  }
  const kernel::PhiloxWords w = words_of(low, number >> 2);
  const Expr odd = (number & 1) != 0;
  const Expr word = b.select((number & 2) != 0, b.select(odd, w.word[3], w.word[2]),
                             b.select(odd, w.word[1], w.word[0]));
  const int bits = dtype == DType::float32 ? 24 : dtype == DType::float16 ? 11 : 8;
  return b.cast(top_bits(word, bits) * std::ldexp(1.0, -bits), dtype);
}

Expr normal_element(Lowering& low, std::span<const Position> at) {
  kernel::Builder& b = low.b;
  const DType dtype = number_dtype(low.node);
  const Expr number = stream_position(low, at);
  Expr u1;
  Expr u2;
  if (dtype == DType::float64) {
    const kernel::PhiloxWords w = words_of(low, number >> 1);
    u1 = (top_bits53(w.word[0], w.word[1]) + 1.0) * 0x1p-53;
    u2 = top_bits53(w.word[2], w.word[3]) * 0x1p-53;
  } else {
    const kernel::PhiloxWords w = words_of(low, number >> 2);
    const Expr second = (number & 2) != 0;
    u1 = (top_bits(b.select(second, w.word[2], w.word[0]), 24) + 1.0) * 0x1p-24;
    u2 = top_bits(b.select(second, w.word[3], w.word[1]), 24) * 0x1p-24;
  }
  const Expr radius = b.unary(kernel::Unary::sqrt, kernel::log(u1) * -2.0);
  const Expr angle = u2 * (2 * std::numbers::pi);
  const Expr turned = b.select((number & 1) != 0, kernel::sin(angle), kernel::cos(angle));
  return b.cast(radius * turned, dtype);
}

double uniform_value(DType dtype, const PhiloxBlock& w, std::uint64_t number) {
  if (dtype == DType::float64) {
    const std::size_t i = 2 * (number % 2);
    return std::ldexp(static_cast<double>(philox_bits53(w[i], w[i + 1])), -53);
  }
  const int bits = dtype == DType::float32 ? 24 : dtype == DType::float16 ? 11 : 8;
  return std::ldexp(static_cast<double>(w[number % 4] >> (32 - bits)), -bits);
}

double normal_value(DType dtype, const PhiloxBlock& w, std::uint64_t number) {
  double u1 = 0;
  double u2 = 0;
  if (dtype == DType::float64) {
    u1 = std::ldexp(static_cast<double>(philox_bits53(w[0], w[1])) + 1, -53);
    u2 = std::ldexp(static_cast<double>(philox_bits53(w[2], w[3])), -53);
  } else {
    const std::size_t i = number % 4 / 2 * 2;
    u1 = std::ldexp((w[i] >> 8) + 1.0, -24);
    u2 = std::ldexp(w[i + 1] >> 8, -24);
  }
  const double radius = std::sqrt(-2 * std::log(u1));
  const double angle = 2 * std::numbers::pi * u2;
  return radius * (number % 2 != 0 ? std::sin(angle) : std::cos(angle));
}

std::vector<Array> philox_reference(const Node& node, std::span<const Array> inputs) {
  const DType dtype = number_dtype(node);
  const bool uniform = node.op->name == "philox_uniform";
  const auto seed = static_cast<std::uint64_t>(node.attrs().integer("seed"));
  const auto stream = static_cast<std::uint64_t>(node.attrs().integer("stream"));
  const auto offset = static_cast<std::uint64_t>(inputs[0].item<std::int64_t>());
  Array result = Array::zeros(size_numbers(node.attrs(), inputs.subspan(1)), DType::float64);
  double* to = result.mutable_data<double>();
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const std::uint64_t number = offset + static_cast<std::uint64_t>(i);
    const PhiloxBlock words =
        philox_block(seed, stream, number / (dtype == DType::float64 ? 2 : 4));
    to[i] = uniform ? uniform_value(dtype, words, number) : normal_value(dtype, words, number);
  }
  return {result.astype(dtype)};
}

Variable draw(std::string_view op, const Operand& offset, const Sizes& sizes,
              const PhiloxOptions& options) {
  const Loc& loc = offset.loc();
  SizeList list = size_list(op, sizes, loc);
  std::vector<Variable> inputs{cast_to(offset.variable(), DType::int64, loc)};
  inputs.insert(inputs.end(), list.symbols.begin(), list.symbols.end());
  const DType dtype = options.dtype ? *options.dtype : build_settings().float_x;
  return apply(op, std::move(inputs),
               {{"sizes", std::move(list.numbers)},
                {"seed", static_cast<std::int64_t>(options.seed)},
                {"stream", static_cast<std::int64_t>(options.stream)},
                {"dtype", static_cast<std::int64_t>(dtype)}},
               loc);
}

}  // namespace

Variable philox_uniform(const Operand& offset, const Sizes& sizes, const PhiloxOptions& options) {
  return draw("philox_uniform", offset, sizes, options);
}

Variable philox_normal(const Operand& offset, const Sizes& sizes, const PhiloxOptions& options) {
  return draw("philox_normal", offset, sizes, options);
}

void register_philox_ops(OpRegistry& registry) {
  const auto example = [](std::vector<std::int64_t> sizes, DType dtype) {
    return Example{{{}},
                   {{0, 9}},
                   {{"sizes", std::move(sizes)},
                    {"seed", 7},
                    {"stream", 1},
                    {"dtype", static_cast<std::int64_t>(dtype)}}};
  };
  const std::vector<Example> examples{example({9}, DType::float32), example({2, 3}, DType::float64),
                                      example({5}, DType::float16), example({5}, DType::bfloat16)};
  registry.add({.name = "philox_uniform",
                .doc = "Uniform random numbers of a counted stream.",
                .form = OpForm::loops,
                .cost = 100,
                .infer = infer_philox,
                .element = uniform_element,
                .reference = philox_reference,
                .examples = examples});
  registry.add({.name = "philox_normal",
                .doc = "Normal random numbers of a counted stream.",
                .form = OpForm::loops,
                .cost = 160,
                .infer = infer_philox,
                .element = normal_element,
                .reference = philox_reference,
                .examples = examples});
}

}  // namespace croton
