#include "frontend/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "compiler/graph/infer.h"
#include "croton/error.h"
#include "frontend/function_impl.h"
#include "runtime/runtime.h"

namespace croton {

Rows::Rows(const Array& rows) : kind_(Kind::list) {
  if (rows.ndim() != 1 || !is_integer(rows.dtype())) {
    throw UserError(fmt::format("[batch] rows must be a vector of integers: got {} with {} axes",
                                name_of(rows.dtype()), rows.ndim()));
  }
  rows_ = rows.astype(DType::int64).to_vector<std::int64_t>();
}

ChosenRows RowsAccess::choose(const Rows& rows, std::int64_t of,
                              const std::function<void(const std::string&)>& fail) {
  const auto wrapped = [&](std::int64_t row, std::int64_t most) {
    const std::int64_t at = row < 0 ? row + of : row;
    if (at < 0 || at > most) fail(fmt::format("row {} is out of bounds for {} rows", row, of));
    return at;
  };
  ChosenRows chosen{
      .all = rows.kind_ == Rows::Kind::all, .listed = rows.kind_ == Rows::Kind::list, .stop = of};
  if (rows.kind_ == Rows::Kind::range) {
    chosen.start = wrapped(rows.start_, of);
    chosen.stop = wrapped(rows.stop_, of);
  }
  for (const std::int64_t row : rows.rows_) chosen.list.push_back(wrapped(row, of - 1));
  return chosen;
}

Array chosen_rows(const Array& array, const ChosenRows& rows) {
  if (rows.all) return array;
  if (!rows.listed) return array.slice(0, rows.start, rows.stop);
  const Array from = array.to_host().contiguous();
  Shape shape = from.shape();
  const auto bytes = static_cast<std::size_t>(from.nbytes()) /
                     static_cast<std::size_t>(std::max<std::int64_t>(shape[0], 1));
  shape[0] = rows.count();
  Array result = Array::empty(shape, from.dtype());
  auto* to = static_cast<std::byte*>(const_cast<void*>(result.raw_data()));
  const auto* source = static_cast<const std::byte*>(from.raw_data());
  for (const std::int64_t row : rows.list) {
    std::copy_n(source + bytes * static_cast<std::size_t>(row), bytes, to);
    to += bytes;
  }
  return result;
}

std::optional<std::int64_t> common_rows(std::span<const Variable> inputs,
                                        const std::vector<bool>& scattered,
                                        std::span<const Array> arguments,
                                        const std::function<void(const std::string&)>& fail) {
  const auto title = [&](std::size_t i) {
    const std::string& name = inputs[i].name();
    return name.empty() ? fmt::format("argument {}", i)
                        : fmt::format("argument {} (\"{}\")", i, name);
  };
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!scattered[i]) continue;
    const Array& array = arguments[i];
    if (!array.has_value()) fail(fmt::format("{} is an empty Array", title(i)));
    const int rank = inputs[i].ndim();
    if (array.ndim() != static_cast<std::size_t>(rank)) {
      fail(fmt::format("{} has {} axes: expected {}", title(i), array.ndim(), rank));
    }
    if (!first) first = i;
    const std::int64_t expected = arguments[*first].shape()[0];
    if (array.shape()[0] != expected) {
      fail(
          fmt::format("{} has {} rows and {} has {}: inputs whose rows are shared out have the "
                      "same number of them; one that each context gets whole is to_all(x)",
                      title(*first), expected, title(i), array.shape()[0]));
    }
    const std::int64_t known = inputs[i].static_shape()[0];
    if (known != kAnyDim && known != expected) {
      fail(fmt::format("{} has {} rows: it was declared with {}", title(i), expected, known));
    }
  }
  if (!first) return {};
  return arguments[*first].shape()[0];
}

std::int64_t begin_of(std::int64_t rows, int k, int n) {
  return rows / n * k + std::min<std::int64_t>(k, rows % n);
}

std::vector<std::string> contexts_of(const std::vector<std::string>& asked, Runtime& runtime,
                                     std::string_view asker, const Loc& loc) {
  std::vector<std::string> contexts;
  if (asked.empty()) {
    contexts = runtime.bound_names();
    if (contexts.empty()) contexts.push_back(runtime.default_context());
    return contexts;
  }
  std::unordered_set<std::string> seen;
  for (const std::string& name : asked) {
    try {
      contexts.push_back(runtime.canonical_name(name));
    } catch (const ConfigError& error) {
      throw ConfigError(
          fmt::format("{}; asked for by {} at {}", error.what(), asker, to_text(loc)));
    }
    if (!seen.insert(contexts.back()).second) {
      throw GraphError(
          fmt::format("[{}] the context '{}' is given twice; at {}", asker, name, to_text(loc)));
    }
  }
  return contexts;
}

std::vector<Variable> symbols_of(const std::vector<ParallelInput>& inputs, std::string_view asker,
                                 const Loc& loc) {
  std::vector<Variable> symbols;
  for (const ParallelInput& input : inputs) {
    symbols.push_back(input.value);
    if (!input.scattered || !input.value.defined()) continue;
    if (input.value.ndim() == 0 || input.value.static_shape()[0] == 1) {
      throw GraphError(fmt::format(
          "[{}] input {} ({}) has no rows to share out: each context gets all of to_all(x); at {}",
          asker, symbols.size() - 1, input.value.node()->outputs[0].to_text(), to_text(loc)));
    }
  }
  return symbols;
}

std::vector<Array> arrays_of(std::span<const Arg* const> args, std::span<const Variable> inputs,
                             const std::string& function) {
  while (!args.empty() && args.back()->empty()) args = args.first(args.size() - 1);
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::size_t known = std::min(i, inputs.size() - 1);
    arrays.push_back(
        inputs.empty() ? Array() : Function::Impl::argument(*args[i], inputs[known], i, function));
  }
  return arrays;
}

}  // namespace croton
