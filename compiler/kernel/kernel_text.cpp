#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "compiler/kernel/kernel.h"

namespace croton::kernel {
namespace {

std::string number(DType dtype, std::uint64_t bits) {
  const auto real = [&](double value, auto shortest) {
    // Shortest digits that read back equal; a NaN by its bits.
    if (std::isnan(value)) return fmt::format("nan:{:#x}", bits);
    return fmt::format("{}", shortest);
  };
  if (dtype == DType::float64) {
    const auto value = std::bit_cast<double>(bits);
    return real(value, value);
  }
  if (is_float(dtype)) {
    const auto narrow = static_cast<std::uint16_t>(bits);
    const float value = dtype == DType::float32
                            ? std::bit_cast<float>(static_cast<std::uint32_t>(bits))
                        : dtype == DType::float16 ? static_cast<float>(float16::from_bits(narrow))
                                                  : static_cast<float>(bfloat16::from_bits(narrow));
    return real(value, value);
  }
  if (is_bool(dtype)) return bits ? "true" : "false";
  if (is_unsigned(dtype)) return fmt::format("{}", bits);
  const int unused = 64 - 8 * static_cast<int>(size_of(dtype));
  return fmt::format("{}", static_cast<std::int64_t>(bits << unused) >> unused);
}

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel) {}

  std::string text() {
    print("kernel threads={}{}{} sizes={} {{\n", kernel_.threads, kernel_.elastic ? " elastic" : "",
          kernel_.packed ? " packed" : "", kernel_.sizes);
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const Buffer& b = kernel_.buffers[i];
      if (!b.argument) continue;  // told by its local node
      print("  b{}: {}{}", i, name_of(b.dtype), b.written ? " written" : "");
      if (b.aliases >= 0) print(" aliases b{}", b.aliases);
      print("\n");
    }
    body();
    print("}}\n");
    return std::move(out_);
  }

 private:
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  // Most of the text is this; formatting it would take most of the time.
  void print_id(Id id, std::string_view before) {
    const fmt::format_int digits(id);
    out_.append(before).append(digits.data(), digits.size());
  }

  void body() {
    struct Open {
      int region;
      std::size_t position = 0;
    };
    std::vector<Open> open = {{0}};
    while (!open.empty()) {
      Open& top = open.back();
      if (top.position == kernel_.regions[top.region].size()) {
        if (open.size() > 1) print("{:{}}}}\n", "", 2 * open.size() - 2);
        open.pop_back();
        continue;
      }
      const Id id = kernel_.regions[top.region][top.position++];
      out_.append(2 * open.size(), ' ');
      line(id, kernel_.nodes[id]);
      out_ += '\n';
      if (kernel_.nodes[id].region >= 0) open.push_back({kernel_.nodes[id].region});
    }
  }

  void line(Id id, const Node& n) {
    switch (n.op) {
      case Op::store:
      case Op::scatter:
      case Op::check:
      case Op::accumulate:
      case Op::local:
        break;
      default:
        print_id(id, "%");
        out_.append(" = ")
            .append(name_of(n.dtype))
            .append(n.bounded ? " bounded" : "")
            .append(n.varying ? " varying " : " ");
    }
    switch (n.op) {
      case Op::constant:
        out_ += number(n.dtype, n.bits);
        return;
      case Op::size:
        return print("size {}", n.index);
      case Op::block:
        return print("block");
      case Op::loop:
      case Op::lanes:
        return region(n);
      case Op::accumulate:
        print("accumulate %{}.{}", n.in[0], n.index);
        return operands(n, 1, 3);
      case Op::result:
        return print("result %{}.{}{}", n.in[0], n.index, n.part ? ".index" : "");
      case Op::unary:
        out_ += name_of(static_cast<Unary>(n.sub));
        return operands(n, 0, 1);
      case Op::binary:
        out_ += name_of(static_cast<Binary>(n.sub));
        return operands(n, 0, 2);
      case Op::fma:
      case Op::select:
      case Op::cast:
      case Op::bitcast:
        out_ += name_of(n.op);
        return operands(n, 0, 3);
      case Op::call:
        print("call {}", kernel_.names[n.index]);
        return operands(n, 0, 2);
      default:
        return memory(n);
    }
  }

  void memory(const Node& n) {
    if (n.op == Op::local) {
      return print("b{}: {} local %{}", n.index, name_of(n.dtype), n.in[0]);
    }
    if (n.op == Op::check) {
      print("check {}", n.index);
      operands(n, 0, 3);
      return print(" {}", quoted(kernel_.checks[n.index]));
    }
    const bool affine = n.op == Op::load || n.op == Op::store;
    const bool adds = n.op == Op::scatter && n.sub != 0;
    print("{}{} b{}[%{}", name_of(n.op),
          n.streaming ? " streaming"
          : adds      ? " add"
                      : "",
          n.index, n.in[0]);
    if (affine) print(" + lane * %{}", n.in[1]);
    print("]");
    const int next = affine ? 2 : 1;
    const bool stores = n.op == Op::store || n.op == Op::scatter;
    if (stores) print(" %{}", n.in[next]);
    const Id mask = n.in[next + stores];
    if (mask != kNone) print(" if %{}", mask);
  }

  void region(const Node& n) {
    print("{} %{}", name_of(n.op), n.in[0]);
    if (n.unroll != 1) print(" unroll {}", n.unroll);
    for (std::size_t k = 0; k < n.accumulators.size(); ++k) {
      const Accumulator& a = n.accumulators[k];
      print("{}{} {}", k ? ", " : " [", name_of(a.fold), name_of(a.dtype));
      if (a.init != kNone) print(" from %{}", a.init);
    }
    print("{} {{", n.accumulators.empty() ? "" : "]");
  }

  void operands(const Node& n, int first, int last) {
    for (int i = first; i < last; ++i) {
      if (n.in[i] != kNone) print_id(n.in[i], " %");
    }
  }

  static std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (char c : text) {
      if (c == '"' || c == '\\' || c == '\n') out += '\\';
      out += c == '\n' ? 'n' : c;
    }
    return out + '"';
  }

  const Kernel& kernel_;
  std::string out_;
};

}  // namespace

int Kernel::arguments() const {
  return static_cast<int>(
      std::count_if(buffers.begin(), buffers.end(), [](const Buffer& b) { return b.argument; }));
}

std::string to_text(const Kernel& kernel) { return Printer(kernel).text(); }

void set_name(Kernel& kernel) {
  const std::string text = to_text(kernel);
  kernel.name = fmt::format("k{:016x}", XXH3_64bits(text.data(), text.size()));
}

std::string_view name_of(Op op) {
  constexpr std::string_view kNames[] = {"constant",   "size",    "block",   "loop",   "lanes",
                                         "accumulate", "result",  "unary",   "binary", "fma",
                                         "select",     "cast",    "bitcast", "load",   "gather",
                                         "store",      "scatter", "local",   "check",  "call"};
  return kNames[static_cast<int>(op)];
}

std::string_view name_of(Unary op) {
  constexpr std::string_view kNames[] = {"neg",  "abs",   "not",   "sqrt",    "floor",
                                         "ceil", "trunc", "round", "any_lane"};
  return kNames[static_cast<int>(op)];
}

std::string_view name_of(Binary op) {
  constexpr std::string_view kNames[] = {"add",    "sub", "mul", "div", "rem", "min",
                                         "max",    "and", "or",  "xor", "shl", "shr",
                                         "mul_hi", "eq",  "ne",  "lt",  "le"};
  return kNames[static_cast<int>(op)];
}

std::string_view name_of(Fold fold) {
  constexpr std::string_view kNames[] = {"sum", "prod", "min",    "max",
                                         "any", "all",  "argmin", "argmax"};
  return kNames[static_cast<int>(fold)];
}

}  // namespace croton::kernel
