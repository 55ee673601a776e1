#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace croton::kernel {

class Builder;

/// A value in a kernel under construction: a node and its builder, so that expressions can be
/// written with operators. Operators need operands of one dtype; a C++ number takes the dtype of
/// the other operand.
struct Expr {
  Builder* builder = nullptr;
  Id id = kNone;

  explicit operator bool() const { return id != kNone; }
  DType dtype() const;
  bool varying() const;
};

/// Builds a kernel node by node, folding constants and reusing equal values in scope: asking twice
/// for the same arithmetic, or the same load of a buffer that is only read, gives the same node.
/// Arithmetic goes into the outermost region that sees its operands, so what does not depend on a
/// loop is computed before it. Wrong dtypes and operands out of scope are InternalErrors at once.
class Builder {
 public:
  explicit Builder(int threads = 256);

  // Arguments. Buffers are declared before anything else.
  int buffer(DType dtype, bool written, std::int32_t aliases = -1);
  Expr size(int index);  ///< int64 argument; the kernel has as many as the highest asked for
  Expr block();

  // Leaves.
  Expr constant(DType dtype, double value);
  Expr integer(DType dtype, std::int64_t value);  ///< of any dtype; exact for integers
  Expr i64(std::int64_t value) { return integer(DType::int64, value); }
  Expr bits(DType dtype, std::uint64_t pattern);

  // Arithmetic.
  Expr unary(Unary op, Expr x);
  Expr binary(Binary op, Expr a, Expr b);
  Expr fma(Expr a, Expr b, Expr c);
  Expr select(Expr condition, Expr a, Expr b);
  Expr cast(Expr x, DType dtype);
  Expr bitcast(Expr x, DType dtype);
  Expr call(std::string_view name, Expr a, Expr b = {});

  // Memory.
  Expr load(int buffer, Expr base, Expr stride, Expr mask = {});
  Expr gather(int buffer, Expr index, Expr mask = {});
  void store(int buffer, Expr base, Expr stride, Expr value, Expr mask = {},
             bool streaming = false);
  void scatter(int buffer, Expr index, Expr value, Expr mask = {});
  void scatter_add(int buffer, Expr index, Expr value, Expr mask = {});
  /// Whether a dtype has scatter_add.
  static bool can_scatter_add(DType dtype);
  int local(DType dtype, Expr size);
  void check(Expr ok, std::string message, Expr value, Expr bound, CheckPlace place = {});
  /// From here on every access to the buffer is checked against its number of elements, and one
  /// that fails is not made. For the flag check_bounds; block-local arrays follow when any buffer
  /// is bounded.
  void bound(int buffer, Expr elements);

  /// States that an int64 value is no larger than sizes are, give or take 2^20: a number of an
  /// element or a block, not arithmetic of the user's.
  Expr bounded(Expr x);

  // Regions: begin, emit the body, end. The counter is what begin returns.
  Expr begin_loop(Expr extent, std::vector<Accumulator> accumulators = {});
  Expr begin_lanes(Expr extent, std::vector<Accumulator> accumulators = {}, int unroll = 1);
  void accumulate(Expr loop, int accumulator, Expr value, Expr index = {});
  void end(Expr loop);
  Expr result(Expr loop, int accumulator, int part = 0);

  /// The blocks may share one of the launch.
  void share_blocks() { kernel_.packed = true; }
  /// The launch says how many threads a block has.
  void stretch() { kernel_.elastic = true; }

  /// Drops what nobody uses, forms fused multiply-adds (form_fma), numbers the nodes in the order
  /// of execution, verifies, names and gives out the kernel. Ends the use of this builder.
  Kernel finish();

  const Node& node(Id id) const { return kernel_.nodes[id]; }
  bool is_constant(Expr x, double value) const;

 private:
  void add_scatter(int buffer, Expr index, Expr value, Expr mask, bool adds);
  Expr guard(int buffer, Expr index, Expr mask);
  Expr lane_counter();

  // Where a new node goes.
  enum class Place {
    hoisted,  ///< pure: into the outermost scope that sees its operands, once
    shared,   ///< a value that may be reused but stays here, as a load
    here,     ///< acts, or reads what may change
  };
  struct Scope {
    int region = 0;
    bool lanes = false;
    Id owner = kNone;
    std::unordered_map<std::uint64_t, Id> known;  ///< shareable nodes of this region by hash
  };
  Expr add(Node node, Place place);
  Expr value(Node node);  ///< simplifies arithmetic, then adds it
  Id append(Node node, std::size_t scope);
  Id find(const Node& node, std::uint64_t hash, std::size_t scope) const;
  std::size_t scope_of(Id operand) const;
  std::size_t scope_of(const Node& node) const;
  bool in_lanes() const;
  Expr begin(Op op, Expr extent, std::vector<Accumulator> accumulators, int unroll);
  const Buffer& buffer_of(int buffer) const;
  bool varying_of(const Node& node) const;

  // Each looks for an equal node that exists or is cheaper; kNone when there is none.
  Id simplify(Node& node);
  Id simplify_unary(Node& node);
  Id simplify_binary(Node& node);
  Id simplify_same(const Node& node);
  Id simplify_integer(Node& node);
  Id simplify_float(Node& node);
  Id simplify_cast(const Node& node);
  bool fold(Node& node) const;
  bool integer_constant(Id id, std::int64_t* value) const;

  Kernel kernel_;
  std::unordered_map<int, Expr> bounds_;  ///< elements of the buffers that are checked
  std::vector<Scope> scopes_;
  std::vector<int> home_;    ///< the region in which a node's value can be used
  std::vector<int> parent_;  ///< the enclosing region of each region
};

inline DType Expr::dtype() const { return builder->node(id).dtype; }
inline bool Expr::varying() const { return builder->node(id).varying; }

template <class T>
concept Number = (std::integral<T> || std::floating_point<T>)&&!std::same_as<T, bool>;

template <Number T>
Expr like(Expr x, T value) {
  if constexpr (std::floating_point<T>) {
    return x.builder->constant(x.dtype(), value);
  } else {
    return x.builder->integer(x.dtype(), static_cast<std::int64_t>(value));
  }
}

#define CROTON_KERNEL_OPERATOR(symbol, name)                                                    \
  inline Expr operator symbol(Expr a, Expr b) { return a.builder->binary(Binary::name, a, b); } \
  template <Number T>                                                                           \
  Expr operator symbol(Expr a, T b) {                                                           \
    return a symbol like(a, b);                                                                 \
  }                                                                                             \
  template <Number T>                                                                           \
  Expr operator symbol(T a, Expr b) {                                                           \
    return like(b, a) symbol b;                                                                 \
  }
CROTON_KERNEL_OPERATOR(+, add)
CROTON_KERNEL_OPERATOR(-, sub)
CROTON_KERNEL_OPERATOR(*, mul)
CROTON_KERNEL_OPERATOR(/, div)
CROTON_KERNEL_OPERATOR(%, rem)
CROTON_KERNEL_OPERATOR(&, bit_and)
CROTON_KERNEL_OPERATOR(|, bit_or)
CROTON_KERNEL_OPERATOR(^, bit_xor)
CROTON_KERNEL_OPERATOR(<<, shl)
CROTON_KERNEL_OPERATOR(>>, shr)
CROTON_KERNEL_OPERATOR(==, eq)
CROTON_KERNEL_OPERATOR(!=, ne)
CROTON_KERNEL_OPERATOR(<, lt)
CROTON_KERNEL_OPERATOR(<=, le)
#undef CROTON_KERNEL_OPERATOR

inline Expr operator>(Expr a, Expr b) { return b < a; }
inline Expr operator>=(Expr a, Expr b) { return b <= a; }
template <Number T>
Expr operator>(Expr a, T b) {
  return like(a, b) < a;
}
template <Number T>
Expr operator>=(Expr a, T b) {
  return like(a, b) <= a;
}
inline Expr operator-(Expr a) { return a.builder->unary(Unary::neg, a); }
inline Expr operator!(Expr a) { return a.builder->unary(Unary::logical_not, a); }

}  // namespace croton::kernel
