#include "tests/compiler/kernel_interpreter.h"

#include <dlfcn.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "compiler/kernel/evaluate.h"

namespace croton::test {
namespace {

using kernel::Binary;
using kernel::Fold;
using kernel::Id;
using kernel::Kernel;
using kernel::kNone;
using kernel::Node;
using kernel::Op;

std::uint64_t binary(Binary op, DType dtype, std::uint64_t a, std::uint64_t b) {
  Node node;
  node.op = Op::binary;
  node.dtype = op >= Binary::eq ? DType::boolean : dtype;
  node.sub = static_cast<std::uint8_t>(op);
  return kernel::evaluate(node, dtype, {a, b, 0}).value();
}

// What an accumulator holds.
struct Folded {
  std::uint64_t bits = 0;
  std::int64_t index = INT64_MAX;
};

std::uint64_t extreme(DType dtype, bool largest) {
  if (is_float(dtype)) return kernel::bits_of(dtype, largest ? HUGE_VAL : -HUGE_VAL);
  const int bits = 8 * static_cast<int>(size_of(dtype));
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - bits);
  const std::uint64_t top = std::uint64_t{1} << (bits - 1);
  if (is_unsigned(dtype)) return largest ? all : 0;
  return largest ? all ^ top : top;
}

Folded identity(Fold fold, DType dtype) {
  switch (fold) {
    case Fold::sum:
      return {kernel::bits_of(dtype, 0)};
    case Fold::prod:
      return {kernel::bits_of(dtype, 1)};
    case Fold::min:
    case Fold::argmin:
      return {extreme(dtype, true)};
    case Fold::max:
    case Fold::argmax:
      return {extreme(dtype, false)};
    case Fold::any:
      return {0};
    case Fold::all:
      return {1};
  }
  return {};
}

void fold_into(Folded& held, Fold fold, DType dtype, std::uint64_t value, std::int64_t index) {
  switch (fold) {
    case Fold::sum:
      held.bits = binary(Binary::add, dtype, held.bits, value);
      return;
    case Fold::prod:
      held.bits = binary(Binary::mul, dtype, held.bits, value);
      return;
    case Fold::min:
      held.bits = binary(Binary::min, dtype, held.bits, value);
      return;
    case Fold::max:
      held.bits = binary(Binary::max, dtype, held.bits, value);
      return;
    case Fold::any:
      held.bits |= value;
      return;
    case Fold::all:
      held.bits &= value;
      return;
    case Fold::argmin:
    case Fold::argmax:
      break;
  }
  const auto is_nan = [&](std::uint64_t x) { return binary(Binary::ne, dtype, x, x) != 0; };
  const auto below = [&](std::uint64_t x, std::uint64_t y) {
    if (is_nan(x) || is_nan(y)) return is_nan(x) && !is_nan(y);
    return fold == Fold::argmin ? binary(Binary::lt, dtype, x, y) != 0
                                : binary(Binary::lt, dtype, y, x) != 0;
  };
  const bool level = !below(value, held.bits) && !below(held.bits, value);
  if (below(value, held.bits) || (level && index < held.index)) held = {value, index};
}

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, std::vector<std::vector<std::byte>>& arguments,
              std::span<const std::int64_t> sizes, std::int64_t* error)
      : kernel_(kernel),
        sizes_(sizes),
        error_(error),
        values_(kernel.nodes.size()),
        folded_(kernel.nodes.size()),
        locals_(kernel.buffers.size()) {
    for (std::size_t i = 0; i < kernel.buffers.size(); ++i) {
      buffers_.push_back(kernel.buffers[i].argument ? &arguments.at(i) : &locals_[i]);
    }
  }

  void run(std::int64_t block) {
    block_ = block;
    region(0);
  }

 private:
  std::uint64_t operand(const Node& n, int i) const { return values_[n.in[i]]; }
  std::int64_t integer(Id id) const { return static_cast<std::int64_t>(values_[id]); }
  bool open(const Node& n, int mask) const {
    return n.in[mask] == kNone || values_[n.in[mask]] != 0;
  }

  void region(int index) {
    for (const Id id : kernel_.regions[index]) node(id);
  }

  std::byte* element(const Node& n) {
    std::int64_t index = integer(n.in[0]);
    if (n.op == Op::load || n.op == Op::store) index += counter_ * integer(n.in[1]);
    auto& bytes = *buffers_[n.index];
    const std::size_t size = size_of(n.dtype);
    if (index < 0 || static_cast<std::uint64_t>(index) >= bytes.size() / size) {
      throw std::out_of_range(kernel_.name + ": element " + std::to_string(index) + " of buffer " +
                              std::to_string(n.index) + " of " +
                              std::to_string(bytes.size() / size));
    }
    return bytes.data() + static_cast<std::size_t>(index) * size;
  }

  void node(Id id) {
    const Node& n = kernel_.nodes[id];
    std::uint64_t& value = values_[id];
    switch (n.op) {
      case Op::constant:
        value = n.bits;
        return;
      case Op::size:
        value = static_cast<std::uint64_t>(sizes_[n.index]);
        return;
      case Op::block:
        value = static_cast<std::uint64_t>(block_);
        return;
      case Op::loop:
      case Op::lanes:
        return loop(id);
      case Op::accumulate: {
        const auto& a = kernel_.nodes[n.in[0]].accumulators[n.index];
        const std::int64_t index = n.in[2] == kNone ? 0 : integer(n.in[2]);
        return fold_into(folded_[n.in[0]][n.index], a.fold, a.dtype, operand(n, 1), index);
      }
      case Op::result: {
        const Folded& held = folded_[n.in[0]][n.index];
        value = n.part == 0 ? held.bits : static_cast<std::uint64_t>(held.index);
        return;
      }
      case Op::unary:
      case Op::binary:
      case Op::fma:
      case Op::select:
      case Op::cast:
      case Op::bitcast:
        return arithmetic(id);
      case Op::call:
        return call(id);
      case Op::load:
      case Op::gather:
        value = 0;
        if (open(n, n.op == Op::load ? 2 : 1)) std::memcpy(&value, element(n), size_of(n.dtype));
        return;
      case Op::store:
      case Op::scatter: {
        const int stored = n.op == Op::store ? 2 : 1;
        if (open(n, stored + 1)) {
          std::uint64_t bits = operand(n, stored);
          if (n.op == Op::scatter && n.sub != 0) {
            std::uint64_t old = 0;
            std::memcpy(&old, element(n), size_of(n.dtype));
            bits = binary(Binary::add, n.dtype, old, bits);
          }
          std::memcpy(element(n), &bits, size_of(n.dtype));
        }
        return;
      }
      case Op::local:
        locals_[n.index].assign(operand(n, 0) * size_of(n.dtype), std::byte{0xff});
        return;
      case Op::check:
        if (operand(n, 0) == 0 && error_[0] == 0) {
          error_[0] = n.index + 1;
          error_[1] = integer(n.in[1]);
          error_[2] = integer(n.in[2]);
        }
        return;
    }
  }

  void loop(Id id) {
    const Node& n = kernel_.nodes[id];
    std::vector<Folded> start;
    for (const auto& a : n.accumulators) {
      start.push_back(identity(a.fold, a.dtype));
      if (a.init != kNone) start.back().bits = values_[a.init];
    }
    folded_[id] = std::move(start);
    const std::int64_t extent = integer(n.in[0]);
    for (std::int64_t i = 0; i < extent; ++i) {
      values_[id] = static_cast<std::uint64_t>(i);
      if (n.op == Op::lanes) counter_ = i;
      region(n.region);
    }
    if (n.op == Op::lanes) counter_ = 0;
  }

  void arithmetic(Id id) {
    const Node& n = kernel_.nodes[id];
    std::uint64_t bits[3] = {};
    for (int i = 0; i < 3; ++i) {
      if (n.in[i] != kNone) bits[i] = operand(n, i);
    }
    const DType typed = kernel_.nodes[n.in[n.op == Op::select ? 1 : 0]].dtype;
    values_[id] = kernel::evaluate(n, typed, bits).value();
  }

  template <class T, class Bits>
  void call_as(Id id, const std::string& name) {
    const Node& n = kernel_.nodes[id];
    void* function = dlsym(RTLD_DEFAULT, name.c_str());
    if (!function) throw std::runtime_error("libm has no " + name);
    const T a = std::bit_cast<T>(static_cast<Bits>(operand(n, 0)));
    if (n.in[1] == kNone) {
      values_[id] = std::bit_cast<Bits>(reinterpret_cast<T (*)(T)>(function)(a));
    } else {
      const T b = std::bit_cast<T>(static_cast<Bits>(operand(n, 1)));
      values_[id] = std::bit_cast<Bits>(reinterpret_cast<T (*)(T, T)>(function)(a, b));
    }
  }

  void call(Id id) {
    const Node& n = kernel_.nodes[id];
    const std::string& name = kernel_.names[n.index];
    if (n.dtype == DType::float32) return call_as<float, std::uint32_t>(id, name + "f");
    call_as<double, std::uint64_t>(id, name);
  }

  const Kernel& kernel_;
  std::span<const std::int64_t> sizes_;
  std::int64_t* error_;
  std::int64_t block_ = 0;
  std::int64_t counter_ = 0;  // of the lanes around the node, else 0
  std::vector<std::uint64_t> values_;
  std::vector<std::vector<Folded>> folded_;
  std::vector<std::vector<std::byte>> locals_;
  std::vector<std::vector<std::byte>*> buffers_;
};

}  // namespace

void interpret(const Kernel& kernel, std::vector<std::vector<std::byte>>& buffers,
               std::span<const std::int64_t> sizes, std::int64_t blocks, std::int64_t* error) {
  Interpreter interpreter(kernel, buffers, sizes, error);
  for (std::int64_t b = 0; b < blocks; ++b) interpreter.run(b);
}

}  // namespace croton::test
