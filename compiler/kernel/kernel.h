// The kernel language: one fused loop nest, shared by both emitters.
//
// A kernel is a grid of independent blocks. The body of the kernel runs once for each block; blocks
// may run in any order and at the same time, so no block may read what another one writes.
//
// The body is a list of nodes, executed in order. A node is a value, or acts, or both; operands are
// earlier nodes of the same region or of an enclosing one. `loop` and `lanes` own a region (their
// body) and are themselves, inside it, the int64 counter that runs from 0 to extent - 1.
//
//   * `loop` runs its body one iteration after the other.
//   * `lanes` runs its body for all counters in an unspecified order, many at once (vector lanes on
//     a CPU, threads of the block on a GPU). Iterations must not depend on one another. A `lanes`
//     may hold a `loop`, and a `loop` may hold a `lanes`; `lanes` never holds a `lanes`.
//   * What a `lanes` stored is visible to the block after its end (a barrier is implied).
//
// An extent is uniform. `accumulate` stands in the body that owns the accumulator or in a `loop`
// inside of it, never in a `lanes` inside of that loop. `local` stands in the body of the kernel.
//
// A value is *varying* when it depends on the counter of the enclosing `lanes` (or is an
// accumulator result of a `loop` inside one), otherwise *uniform*: the same for all lanes.
// Outside of `lanes` everything is uniform, and a store is made once for the block.
//
// Accumulators belong to a loop or a lanes. `accumulate(k, v...)` inside its body folds v into
// accumulator k; after the end `result(loop, k)` reads it. In a `loop` the folds happen in order,
// starting at the operand `init` of its declaration. Over `lanes` the tree is unspecified but
// depends on the extent and the target only, never on the number of threads; the result is uniform.
// Kinds: sum, prod, min, max (NaN wins), any, all (booleans), and argmin, argmax (fold a value and
// an int64 index; the smaller index wins among equals, NaN wins over numbers; without `init`).
//
// Types and numbers:
//   * Each node has one dtype. Arithmetic is on operands of the same dtype and gives that dtype;
//     comparisons give bool. There is no implicit conversion, only `cast`.
//   * float16 and bfloat16 are storage types: they can be loaded, stored, selected, bitcast and
//     cast; arithmetic on them is done in float32 after a cast.
//   * Signed and unsigned integers wrap. `div` and `rem` of integers truncate, as in C; a zero
//     divisor gives 0, and the smallest integer divided by -1 wraps (remainder 0).
//     Shifts by an amount outside [0, bits) give 0 (-1 for `shr` of a negative signed value).
//   * Floats follow IEEE 754: no contraction, no reassociation, no flush to zero; `div` and `sqrt`
//     are correctly rounded; a fused multiply-add is made by `fma` alone. `rem` is C's fmod.
//   * `min` and `max` give NaN when either operand is NaN; the sign of a zero result is that of
//     either operand. Comparisons with NaN are false, except `ne`.
//   * `cast` float -> integer truncates and saturates, NaN gives 0; integer -> float and
//     float -> narrower float round to nearest even; to bool is `!= 0`; between integers it wraps.
//   * `round` is to nearest, ties to even.
//   * `any_lane` alone makes a uniform value of a varying one; see there.
//   * bool is a byte holding 0 or 1 in memory; and, or, xor, logical_not, eq, ne, select work on
//   it.
//
// Memory: a buffer is an argument or a block-local array, of one dtype, addressed in elements.
//   * `load(buffer, base, stride)` reads element base + counter * stride, where base and stride are
//     uniform int64 and counter is that of the enclosing `lanes` (0 outside).
//   * `gather(buffer, index)` reads any varying int64 index.
//   * `store` and `scatter` are their counterparts.
//   * A `scatter` may add to the element instead (`sub` is 1): all blocks and lanes may do so at
//     once, in any order. For GPUs, and integers of 32 and 64 bits, float32 and float64.
//   * Each takes an optional bool mask: where it is false nothing is read (the value is 0) or
//     written.
//   * Different buffers never overlap, unless an argument says `aliases`: then element e of the
//     output may be the same memory as element e of that input.
//   * `check(ok, id, value, bound)`: unless ok, records the first failure in the launch's error
//     words: error[0] = id + 1, error[1] = value, error[2] = bound. Execution goes on; loads that
//     depend on a failed check are guarded by their mask.
//
// `call` names a rare function of the C math library (float32: NAMEf, float64: NAME), one or two
// operands; everything common is built from the nodes above (kernel/math.h).
//
// The entry of a kernel on a CPU is
//   void NAME(void* const* buffers, const int64_t* sizes, int64_t first_block, int64_t last_block,
//             int64_t* error)
// and runs blocks first_block <= b < last_block. In CUDA C++ it is
//   extern "C" __global__ void NAME(buffers..., long long sizes..., long long blocks,
//                                   long long* error)
// where `blocks` is how many there are, for kernels that are packed and in the program's wide form,
// and `error` is there only when the kernel has checks (compiler/codegen/cuda.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "croton/dtype.h"

namespace croton::kernel {

enum class Op : std::uint8_t {
  constant,
  size,
  block,  // uniform leaves
  loop,
  lanes,
  accumulate,
  result,  // regions and folds
  unary,
  binary,
  fma,
  select,
  cast,
  bitcast,  // arithmetic
  load,
  gather,
  store,
  scatter,
  local,
  check,
  call,
};

/// `any_lane` of a bool is true where the bool is, and may be where it is true for another lane: it
/// is uniform among the lanes that run together. Loops skip rare work by it, in that their extent
/// is 0 where it is false; what they give must not be used where the bool itself is false.
enum class Unary : std::uint8_t {
  neg,
  abs,
  logical_not,
  sqrt,
  floor,
  ceil,
  trunc,
  round,
  any_lane,
};

/// `mul_hi` is the upper half of the product of two uint32.
enum class Binary : std::uint8_t {
  add,
  sub,
  mul,
  div,
  rem,
  min,
  max,
  bit_and,
  bit_or,
  bit_xor,
  shl,
  shr,
  mul_hi,
  eq,
  ne,
  lt,
  le,
};

enum class Fold : std::uint8_t { sum, prod, min, max, any, all, argmin, argmax };

/// Index of a node in Kernel::nodes; kNone where an optional operand is absent.
using Id = std::int32_t;
inline constexpr Id kNone = -1;

/// An accumulator of a loop or lanes.
struct Accumulator {
  Fold fold = Fold::sum;
  DType dtype = DType::float32;  ///< of the value; the index of argmin and argmax is int64
  Id init = kNone;               ///< start value; kNone: the identity of the fold. Loops only
};

/// One node. Which fields mean something follows from `op`; the others keep their defaults.
struct Node {
  Op op = Op::constant;
  DType dtype = DType::int64;  ///< of the value; of the stored value for store and scatter
  std::uint8_t sub = 0;        ///< Unary or Binary; scatter: 1 where it adds
  bool varying = false;        ///< set by the builder
  bool bounded = false;        ///< int64: at most about a size, so that 32 bits do where they do
                               ///< for all sizes, grids, buffers and the launch's span
  bool streaming = false;      ///< store: nobody reads it soon and it exceeds the cache
  std::uint8_t unroll = 1;     ///< lanes: how many vectors an iteration takes (1, 2, 4, 8)
  std::int32_t index = 0;      ///< size: which; memory nodes and local: buffer; check: id; result
                               ///< and accumulate: accumulator; call: index into Kernel::names
  std::int32_t part = 0;       ///< result: 0 value, 1 index of argmin and argmax
  std::int32_t region = -1;    ///< loop, lanes: body
  Id in[4] = {kNone, kNone, kNone, kNone};
  ///< load: base, stride, mask      gather: index, mask      store: base, stride, value, mask
  ///< scatter: index, value, mask   check: ok, value, bound  loop, lanes: extent
  ///< result: loop                  accumulate: loop, value, index   local: size in elements
  std::uint64_t bits = 0;  ///< constant: the value's bits in its dtype, zero-extended
  std::vector<Accumulator> accumulators;  ///< loop, lanes
};

/// A buffer: first the arguments, then the block-local arrays in order of their `local` nodes.
struct Buffer {
  DType dtype = DType::float32;
  bool argument = true;
  bool written = false;
  std::int32_t aliases = -1;  ///< an input argument that this output may share memory with
};

using Region = std::vector<Id>;

/// What a check guards, in the user's words. Not part of the kernel's text: kernels that differ in
/// this alone are one.
struct CheckPlace {
  std::string op;
  std::string line;  ///< "file.cpp:12"
};

struct Kernel {
  std::string name;  ///< a hash of the text, set by set_name
  std::vector<Node> nodes;
  std::vector<Region> regions;  ///< regions[0] is the body
  std::vector<Buffer> buffers;
  int sizes = 0;         ///< number of int64 size arguments
  int threads = 256;     ///< threads of a block on a GPU; where elastic, the most there may be
  bool elastic = false;  ///< the launch says how many: a multiple of 32
  bool packed = false;   ///< the launch may put several blocks, each of 32 threads or of a
                         ///< multiple, into one block of its own
  std::vector<std::string> names;   ///< functions used by `call`
  std::vector<std::string> checks;  ///< message of each check id; {value}, {bound} are filled in
  std::vector<CheckPlace> places;   ///< of each check id; empty when none was given

  int arguments() const;  ///< how many buffers are arguments
};

/// Readable text, one node a line; kernels that differ in their name alone print equally.
std::string to_text(const Kernel& kernel);

/// Throws InternalError naming the first node that breaks a rule of this page.
void verify(const Kernel& kernel);

/// Rewrites a product with one use as term of a sum, all float32 or float64, as a fused
/// multiply-add; not where both terms are products (x*x - y*y must be 0 for x = y). The only place
/// where that happens: emitters never contract.
void form_fma(Kernel& kernel);

/// Drops nodes whose value nobody uses and numbers the rest in the order of execution.
void compact(Kernel& kernel);

/// Names the kernel "k" plus 16 hex digits of the hash of its text.
void set_name(Kernel& kernel);

std::string_view name_of(Op op);
std::string_view name_of(Unary op);
std::string_view name_of(Binary op);
std::string_view name_of(Fold fold);

}  // namespace croton::kernel
