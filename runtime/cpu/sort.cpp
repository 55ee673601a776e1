#include "runtime/cpu/sort.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "croton/error.h"
#include "runtime/cpu/sort_keys.h"
#include "runtime/cpu/sort_wide.h"
#include "runtime/parallel.h"

namespace croton::cpu {
namespace {

struct Problem {
  std::int64_t outer = 1, length = 1, inner = 1;
  bool descending = false;
};

/// Up to so many places vectors are faster than digits.
constexpr std::size_t kWidePlaces = 32768;
/// Lines beside one another that are copied, sorted and written together.
constexpr std::int64_t kTogether = 16;

std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Keys of a line, as many again, and what sort_wide wants.
std::size_t memory_for(const Problem& p) {
  return 2 * static_cast<std::size_t>(p.length) + kWideSlack;
}

/// How lines are taken, by threads each with memory of its own, and brought into one piece.
template <class Bits, class Result>
class Lines : public PreparedCall {
 public:
  /// `bytes`: of memory for sorting one line.
  Lines(const Problem& problem, std::size_t bytes, std::int64_t cost)
      : p_(problem), cost_(cost), together_(std::min(p_.inner, kTogether)), bytes_(rounded(bytes)) {
    const auto count = static_cast<std::size_t>(together_ * p_.length);
    in_bytes_ = p_.inner == 1 ? 0 : rounded(count * sizeof(Bits));
    group_bytes_ = bytes_ + in_bytes_ + (p_.inner == 1 ? 0 : rounded(count * sizeof(Result)));
    blocks_ = together_ == 0 ? 0 : (p_.inner + together_ - 1) / together_;
    constexpr std::size_t kMost = std::size_t{128} << 20;
    const auto fit = static_cast<std::int64_t>(kMost / std::max<std::size_t>(group_bytes_, 1));
    groups_ = std::min(units(), std::clamp<std::int64_t>(fit, 1, 64));
  }

  std::int64_t work() const override { return p_.outer * p_.inner * p_.length * cost_; }
  std::size_t workspace() const override {
    return static_cast<std::size_t>(groups_) * group_bytes_;
  }

  void run(void* const* operands, void* workspace, int threads, void*) const override {
    auto* const result = static_cast<Result*>(operands[0]);
    const auto* const x = static_cast<const Bits*>(operands[2]);
    if (p_.outer * p_.inner * p_.length < 4096) threads = 1;
    parallel_for(groups_, threads, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t g = first; g < last; ++g) {
        char* const memory =
            static_cast<char*>(workspace) + static_cast<std::size_t>(g) * group_bytes_;
        for (std::int64_t k = units() * g / groups_; k < units() * (g + 1) / groups_; ++k) {
          sort_unit(x, result, memory, k);
        }
      }
    });
  }

 protected:
  /// Sorts a line that is in one piece.
  virtual void sort_line(const Bits* x, Result* result, char* memory) const = 0;

  Problem p_;

 private:
  std::int64_t units() const { return p_.outer * blocks_; }

  void sort_unit(const Bits* x, Result* result, char* memory, std::int64_t unit) const {
    const std::int64_t first = unit % blocks_ * together_;
    const std::int64_t base = unit / blocks_ * p_.length * p_.inner + first;
    if (p_.inner == 1) return sort_line(x + base, result + base, memory);
    const std::int64_t count = std::min(together_, p_.inner - first);
    auto* const in = reinterpret_cast<Bits*>(memory + bytes_);
    auto* const out = reinterpret_cast<Result*>(memory + bytes_ + in_bytes_);
    for (std::int64_t k = 0; k < p_.length; ++k) {
      const Bits* const from = x + base + k * p_.inner;
      for (std::int64_t line = 0; line < count; ++line) in[line * p_.length + k] = from[line];
    }
    for (std::int64_t line = 0; line < count; ++line) {
      sort_line(in + line * p_.length, out + line * p_.length, memory);
    }
    for (std::int64_t k = 0; k < p_.length; ++k) {
      Result* const to = result + base + k * p_.inner;
      for (std::int64_t line = 0; line < count; ++line) to[line] = out[line * p_.length + k];
    }
  }

  std::int64_t cost_;
  std::int64_t together_, blocks_ = 0, groups_ = 0;
  std::size_t bytes_, in_bytes_ = 0, group_bytes_ = 0;
};

template <class Bits, NumberKind kKind>
class Sort final : public Lines<Bits, Bits> {
 public:
  Sort(const Problem& problem, Bits infinity)
      : Lines<Bits, Bits>(problem, memory_for(problem) * sizeof(Bits), 8 + 2 * sizeof(Bits)),
        infinity_(infinity) {}

 private:
  static constexpr Bits kSign = static_cast<Bits>(Bits(1) << (8 * sizeof(Bits) - 1));

  static Bits* sorted_keys(Bits* keys, Bits* other, std::size_t n) {
    if constexpr (sizeof(Bits) >= 4) {
      if (has_wide_sort()) {
        sort_wide(keys, other, n);
        return keys;
      }
    }
    if (n <= kFewKeys) {
      sort_few(keys, n);
      return keys;
    }
    if constexpr (sizeof(Bits) == 8) return sort_long_keys(keys, other, n);
    return sort_by_bits<8 * sizeof(Bits)>(keys, other, n);
  }

  static Bits magnitude(Bits bits) { return static_cast<Bits>(bits & static_cast<Bits>(~kSign)); }

  void sort_line(const Bits* x, Bits* result, char* memory) const override {
    const auto n = static_cast<std::size_t>(this->p_.length);
    auto* const keys = reinterpret_cast<Bits*>(memory);
    const Bits flip = static_cast<Bits>(this->p_.descending ? ~Bits(0) : 0);
    const int untold = keys_of_line(x, keys, n, flip);
    const Bits* sorted = sorted_keys(keys, keys + n, n);
    elements_of_line(sorted, result, n, flip);
    if ((untold & kHasNan) != 0) {
      copy(x, result, sorted, static_cast<Bits>(static_cast<Bits>(~Bits(0)) ^ flip),
           [&](Bits bits) { return magnitude(bits) > infinity_; });
    }
    if ((untold & kHasNegativeZero) != 0) {
      copy(x, result, sorted, static_cast<Bits>(kSign ^ flip),
           [](Bits bits) { return magnitude(bits) == 0; });
    }
  }

  static constexpr bool kWide = kKind == NumberKind::real && sizeof(Bits) >= 4;

  int keys_of_line(const Bits* x, Bits* keys, std::size_t n, Bits flip) const {
    if constexpr (kWide) {
      if (has_wide_sort()) return write_keys_wide(x, keys, n, infinity_, flip);
    }
    return write_keys<Bits, kKind>(x, keys, n, infinity_, flip);
  }

  static void elements_of_line(const Bits* keys, Bits* result, std::size_t n, Bits flip) {
    if constexpr (kWide) {
      if (has_wide_sort()) return write_elements_wide(keys, result, n, flip);
    }
    write_elements<Bits, kKind>(keys, result, n, flip);
  }

  /// The elements that are `wanted`, in their order, to where their key is: those whose key does
  /// not tell their bits.
  template <class Wanted>
  void copy(const Bits* x, Bits* result, const Bits* sorted, Bits key, const Wanted& wanted) const {
    const auto n = static_cast<std::size_t>(this->p_.length);
    Bits* to = result + (std::lower_bound(sorted, sorted + n, key) - sorted);
    for (std::size_t k = 0; k < n; ++k) {
      if (wanted(x[k])) *to++ = x[k];
    }
  }

  Bits infinity_;
};

template <class Bits, NumberKind kKind>
class Argsort final : public Lines<Bits, std::int64_t> {
  static constexpr bool kLong = sizeof(Bits) == 8;

 public:
  Argsort(const Problem& problem, Bits infinity)
      : Lines<Bits, std::int64_t>(
            problem,
            (memory_for(problem) + (kLong ? static_cast<std::size_t>(problem.length) : 0)) *
                sizeof(std::uint64_t),
            12 + 4 * sizeof(Bits)),
        infinity_(infinity) {}

 private:
  /// Items are keys above their places, which makes all of them different.
  static std::uint64_t* sorted_items(std::uint64_t* items, std::uint64_t* other, std::size_t n) {
    if (n <= kWidePlaces && has_wide_sort()) {
      sort_wide(items, other, n);
      return items;
    }
    if (n <= kFewKeys) {
      sort_few(items, n);
      return items;
    }
    return sort_by_bits<8 * std::min<int>(sizeof(Bits), 4)>(items, other, n, 32);
  }

  void sort_line(const Bits* x, std::int64_t* places, char* memory) const override {
    const auto n = static_cast<std::size_t>(this->p_.length);
    auto* const items = reinterpret_cast<std::uint64_t*>(memory);
    std::uint64_t* const other = items + n;
    const Bits flip = static_cast<Bits>(this->p_.descending ? ~Bits(0) : 0);
    const auto key = [&](std::size_t k) {
      return static_cast<Bits>(key_of<Bits, kKind>(x[k], infinity_) ^ flip);
    };
    const std::uint64_t* sorted = nullptr;
    if constexpr (kLong) {
      std::uint64_t* const keys = items + memory_for(this->p_);
      for (std::size_t k = 0; k < n; ++k) keys[k] = key(k);
      sorted = sort_long_places(keys, items, other, n, sorted_items);
    } else {
      for (std::size_t k = 0; k < n; ++k) items[k] = std::uint64_t{key(k)} << 32 | k;
      sorted = sorted_items(items, other, n);
    }
    for (std::size_t k = 0; k < n; ++k) places[k] = static_cast<std::uint32_t>(sorted[k]);
  }

  Bits infinity_;
};

Problem read(std::string_view op, const Attrs& attrs, std::span<const OperandType> operands,
             std::string& reason) {
  Problem p;
  if (operands.size() != 3) {
    reason = fmt::format("[{}] wrong number of operands: got {}, expected 3", op, operands.size());
    return p;
  }
  const Shape& shape = operands[2].shape;
  const std::int64_t axis = attrs.integer("axis");
  if (axis < 0 || axis >= static_cast<std::int64_t>(shape.size())) {
    reason = fmt::format("[{}] axis {} is out of range for shape {}", op, axis, shape.to_string());
    return p;
  }
  for (std::size_t k = 0; k < shape.size(); ++k) {
    (static_cast<std::int64_t>(k) < axis    ? p.outer
     : static_cast<std::int64_t>(k) == axis ? p.length
                                            : p.inner) *= shape[k];
  }
  p.descending = attrs.integer("descending") != 0;
  if (p.length > std::numeric_limits<std::uint32_t>::max()) {
    reason =
        fmt::format("[{}] an axis of length {} is too long: expected less than 2^32", op, p.length);
  }
  return p;
}

template <template <class, NumberKind> class Sorting>
std::unique_ptr<PreparedCall> make(const Problem& p, DType dtype) {
  const auto real = [&]<class Bits>(Bits infinity) -> std::unique_ptr<PreparedCall> {
    return std::make_unique<Sorting<Bits, NumberKind::real>>(p, infinity);
  };
  const auto integer = [&]<class Bits>(Bits zero) -> std::unique_ptr<PreparedCall> {
    return std::make_unique<Sorting<Bits, NumberKind::integer>>(p, zero);
  };
  const auto natural = [&]<class Bits>(Bits zero) -> std::unique_ptr<PreparedCall> {
    return std::make_unique<Sorting<Bits, NumberKind::natural>>(p, zero);
  };
  switch (dtype) {
    case DType::float64:
      return real(std::uint64_t{0x7FF0000000000000u});
    case DType::float32:
      return real(std::uint32_t{0x7F800000u});
    case DType::float16:
      return real(std::uint16_t{0x7C00});
    case DType::bfloat16:
      return real(std::uint16_t{0x7F80});
    case DType::int64:
      return integer(std::uint64_t{0});
    case DType::int32:
      return integer(std::uint32_t{0});
    case DType::int16:
      return integer(std::uint16_t{0});
    case DType::int8:
      return integer(std::uint8_t{0});
    case DType::uint64:
      return natural(std::uint64_t{0});
    case DType::uint32:
      return natural(std::uint32_t{0});
    case DType::uint16:
      return natural(std::uint16_t{0});
    case DType::uint8:
    case DType::boolean:
      return natural(std::uint8_t{0});
  }
  throw InternalError("sorting an unknown dtype");
}

std::string sort_unsupported(const Attrs& attrs, std::span<const OperandType> operands) {
  std::string reason;
  read("sort", attrs, operands, reason);
  return reason;
}
std::string argsort_unsupported(const Attrs& attrs, std::span<const OperandType> operands) {
  std::string reason;
  read("argsort", attrs, operands, reason);
  return reason;
}

std::unique_ptr<PreparedCall> prepare_sort(Device&, const Attrs& attrs,
                                           std::span<const OperandType> operands) {
  std::string reason;
  return make<Sort>(read("sort", attrs, operands, reason), operands[2].dtype);
}
std::unique_ptr<PreparedCall> prepare_argsort(Device&, const Attrs& attrs,
                                              std::span<const OperandType> operands) {
  std::string reason;
  return make<Argsort>(read("argsort", attrs, operands, reason), operands[2].dtype);
}

}  // namespace

const LibraryFunction kSort{"sort", sort_unsupported, prepare_sort};
const LibraryFunction kArgsort{"argsort", argsort_unsupported, prepare_argsort};

}  // namespace croton::cpu
