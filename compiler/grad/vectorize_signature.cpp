// Functions written for cores of arrays, on whole arrays: NumPy's generalised signatures.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "croton/vectorize.h"
#include "ops/build.h"
#include "ops/checked_size.h"
#include "ops/sizes.h"

namespace croton {
namespace {

using Names = std::vector<std::string>;  ///< of the axes of a core

struct Signature {
  std::vector<Names> inputs;
  std::vector<Names> outputs;
};

class Reader {
 public:
  Reader(std::string_view text, const Loc& loc) : text_(text), loc_(loc) {}

  Signature read() {
    Signature signature;
    signature.inputs = cores();
    expect('-');
    expect('>');
    signature.outputs = cores();
    if (peek() != '\0') fail();
    return signature;
  }

 private:
  char peek() {
    while (place_ < text_.size() && text_[place_] == ' ') ++place_;
    return place_ < text_.size() ? text_[place_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++place_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail();
  }

  std::vector<Names> cores() {
    std::vector<Names> result;
    do {
      result.push_back(core());
    } while (take(','));
    return result;
  }

  Names core() {
    Names names;
    expect('(');
    if (take(')')) return names;
    do {
      names.push_back(name());
    } while (take(','));
    expect(')');
    return names;
  }

  std::string name() {
    std::string result;
    const auto part = [](char c) {
      return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    for (peek(); place_ < text_.size() && part(text_[place_]); ++place_) result += text_[place_];
    if (result.empty()) fail();
    return result;
  }

  [[noreturn]] void fail() const {
    graph_error("vectorize",
                fmt::format("the signature '{}' cannot be read at character {}: expected the form "
                            "(m,n),(n)->(m)",
                            text_, place_ + 1),
                loc_);
  }

  std::string_view text_;
  const Loc& loc_;
  std::size_t place_ = 0;
};

/// The sizes of the batches' axes: those that are not known to be 1 decide, known ones first.
std::vector<Size> batch_sizes(const std::vector<Variable>& inputs, const std::vector<Names>& cores,
                              const Loc& loc) {
  std::vector<Size> sizes;
  std::vector<bool> known;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const std::size_t rank = static_cast<std::size_t>(inputs[k].ndim()) - cores[k].size();
    if (rank > sizes.size()) {
      sizes.insert(sizes.begin(), rank - sizes.size(), Size(1));
      known.insert(known.begin(), sizes.size() - known.size(), false);
    }
    const std::vector<Size> own = sizes_of(inputs[k], loc);
    for (std::size_t axis = 0; axis < rank; ++axis) {
      const std::size_t place = sizes.size() - rank + axis;
      const std::int64_t* number = own[axis].number();
      if ((number && *number == 1) || known[place]) continue;
      sizes[place] = own[axis];
      known[place] = number != nullptr;
    }
  }
  return sizes;
}

/// Cores of one name have one size: those that are known are, in all of them.
Variable with_known_sizes(const Variable& x, const Names& core,
                          const std::map<std::string, std::int64_t>& known, const Loc& loc) {
  Variable y = x;
  for (std::size_t k = 0; k < core.size(); ++k) {
    const auto size = known.find(core[k]);
    const int axis = x.ndim() - static_cast<int>(core.size() - k);
    if (size != known.end()) y = with_size(y, axis, Size(size->second), loc);
  }
  return y;
}

}  // namespace

std::vector<Variable> vectorize(
    const std::function<std::vector<Variable>(const std::vector<Variable>&)>& f,
    const std::vector<Variable>& inputs, std::string_view text, Loc line) {
  const Loc loc = line.named("vectorize");
  const Signature signature = Reader(text, loc).read();
  if (signature.inputs.size() != inputs.size()) {
    graph_error("vectorize", fmt::format("{} inputs for the signature '{}'", inputs.size(), text),
                loc);
  }
  std::map<std::string, std::int64_t> known;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Names& core = signature.inputs[k];
    const int first = inputs[k].ndim() - static_cast<int>(core.size());
    if (first < 0) {
      graph_error("vectorize",
                  fmt::format("input {} has {} axes, of which the signature '{}' takes {}", k + 1,
                              inputs[k].ndim(), text, core.size()),
                  loc);
    }
    for (std::size_t axis = 0; axis < core.size(); ++axis) {
      const std::int64_t size = inputs[k].static_shape()[first + static_cast<int>(axis)];
      if (size != kAnyDim) known.emplace(core[axis], size);
    }
  }
  const std::vector<Size> batch = batch_sizes(inputs, signature.inputs, loc);
  std::vector<Variable> cores;
  std::vector<std::pair<Variable, Variable>> replace;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Variable x = with_known_sizes(inputs[k], signature.inputs[k], known, loc);
    const std::size_t own = signature.inputs[k].size();
    const std::size_t rank = static_cast<std::size_t>(x.ndim()) - own;
    // Axes in front that the others have and it does not stay away.
    std::vector<Size> sizes = sizes_of(x, loc);
    std::copy(batch.end() - static_cast<std::ptrdiff_t>(rank), batch.end(), sizes.begin());
    const Variable wide = rank == 0 ? x : broadcast_sizes(x, sizes, loc);
    const Shape& shape = wide.static_shape();
    cores.push_back(make_input(
        {x.dtype(), Shape(std::span(shape.begin(), shape.size()).subspan(rank))}, x.name(), loc));
    replace.emplace_back(cores.back(), wide);
  }
  const std::vector<Variable> results = f(cores);
  if (results.size() != signature.outputs.size()) {
    graph_error(
        "vectorize",
        fmt::format("the function gives {} outputs for the signature '{}'", results.size(), text),
        loc);
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (results[k].ndim() == static_cast<int>(signature.outputs[k].size())) continue;
    graph_error("vectorize",
                fmt::format("output {} has {} axes, expected {} by the signature '{}'", k + 1,
                            results[k].ndim(), signature.outputs[k].size(), text),
                loc);
  }
  std::vector<Variable> outputs = vectorize_graph(results, replace, loc);
  for (Variable& y : outputs) {
    // One that does not depend on all of the batch is the same along the rest of it.
    const std::size_t k = static_cast<std::size_t>(&y - outputs.data());
    const std::vector<Size> own = sizes_of(y, loc);
    std::vector<Size> sizes = batch;
    sizes.insert(sizes.end(), own.end() - static_cast<std::ptrdiff_t>(signature.outputs[k].size()),
                 own.end());
    if (own.size() < sizes.size()) y = broadcast_sizes(y, sizes, loc);
  }
  return outputs;
}

}  // namespace croton
