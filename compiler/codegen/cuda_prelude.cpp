#include "compiler/codegen/cuda_prelude.h"

#include <cstddef>
#include <iterator>

#include "croton/error.h"
#include "runtime/cuda/half_text.h"

namespace croton::codegen {
namespace {

constexpr std::string_view kTypes = R"(typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u16 f16;   // the bits of
typedef u16 bf16;  // storage types
typedef float f32;
typedef double f64;
#ifdef CROTON_WIDE  // indices where some size does not fit 32 bits, grids of any number of blocks
typedef i64 idx;
typedef u64 uidx;
#define BLOCK (((idx)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x)
#define WIDE_BLOCKS , long long blocks
#define END_OF_GRID if (BLOCK >= blocks) return;
#else
typedef i32 idx;
typedef u32 uidx;
#define BLOCK (idx)blockIdx.x
#define WIDE_BLOCKS
#define END_OF_GRID
#endif
#ifdef __CUDACC__
#pragma nv_diag_suppress 177  // values that counters taken together turn out not to need
#endif
)";

struct DeviceFunction {
  std::string_view name;
  std::string_view needs;  // another function, or empty
  std::string_view text;
};

// In an order in which each stands behind those it needs. Conversions that only PTX can make are
// functions of their own, so that a host compiler can be given others.
constexpr DeviceFunction kFunctions[] = {
    {"min_nan", "", R"(template <class T>
__device__ __forceinline__ T min_nan(T a, T b) {
  return a != a || a < b ? a : b;
}
)"},
    {"max_nan", "", R"(template <class T>
__device__ __forceinline__ T max_nan(T a, T b) {
  return a != a || b < a ? a : b;
}
)"},
    {"div_int", "", R"(template <class T>
__device__ __forceinline__ T div_int(T a, T b) {
  return b == 0 ? T(0) : b == -1 ? (T)(0ull - (u64)a) : (T)(a / b);
}
)"},
    {"div_uint", "", R"(template <class T>
__device__ __forceinline__ T div_uint(T a, T b) {
  return b == 0 ? T(0) : (T)(a / b);
}
)"},
    {"rem_int", "", R"(template <class T>
__device__ __forceinline__ T rem_int(T a, T b) {
  return b == 0 || b == -1 ? T(0) : (T)(a % b);
}
)"},
    {"rem_uint", "", R"(template <class T>
__device__ __forceinline__ T rem_uint(T a, T b) {
  return b == 0 ? T(0) : (T)(a % b);
}
)"},
    {"shift_left", "", R"(template <class T>
__device__ __forceinline__ T shift_left(T a, T b) {
  if ((u64)b >= 8 * sizeof(T)) return 0;
  return sizeof(T) == 8 ? (T)((u64)a << b) : (T)((u32)a << b);
}
)"},
    {"shift_right_int", "", R"(template <class T>
__device__ __forceinline__ T shift_right_int(T a, T b) {
  return (T)(a >> ((u64)b < 8 * sizeof(T) ? (i32)b : (i32)(8 * sizeof(T) - 1)));
}
)"},
    {"shift_right_uint", "", R"(template <class T>
__device__ __forceinline__ T shift_right_uint(T a, T b) {
  return (u64)b < 8 * sizeof(T) ? (T)(a >> b) : T(0);
}
)"},
    {"saturate", "", R"(template <class T, class F>
__device__ __forceinline__ T saturate(F x, T low, T high) {
  return x != x ? T(0) : x <= (F)low ? low : x >= (F)high ? high : (T)x;
}
)"},
    {"f32_from_f16", "", cuda::kF32FromF16},
    {"f16_from_f32", "", cuda::kF16FromF32},
    {"odd_from_f64", "",
     R"(// Rounded to odd: a second rounding to fewer digits is then as good as one.
__device__ __forceinline__ f32 odd_from_f64(f64 x) {
  const f32 y = (f32)x;
  if ((f64)y == x || x != x) return y;
  const u32 bits = __float_as_uint(y) - (((f64)y > x) == (x > 0));
  return __uint_as_float(bits | 1u);
}
)"},
    {"odd_from_uint", "odd_from_f64", R"(__device__ __forceinline__ f32 odd_from_uint(u64 x) {
  if (x >> 53) x = (x & ~2047ull) | (u64)((x & 2047ull) != 0) << 11;
  return odd_from_f64((f64)x);
}
)"},
    {"odd_from_int", "odd_from_uint", R"(__device__ __forceinline__ f32 odd_from_int(i64 x) {
  return x < 0 ? -odd_from_uint(0ull - (u64)x) : odd_from_uint((u64)x);
}
)"},
    {"f32_from_bf16", "", cuda::kF32FromBf16},
    {"bf16_from_f32", "", cuda::kBf16FromF32},
    {"argmin_better", "",
     R"(// Whether (x, i) goes before (y, j): the smaller value, NaN before numbers, the smaller index.
template <class T>
__device__ __forceinline__ bool argmin_better(T x, i64 i, T y, i64 j) {
  if (x != x || y != y) return x != x && (y == y || i < j);
  return x < y || (x == y && i < j);
}
)"},
    {"argmax_better", "",
     R"(// Whether (x, i) goes before (y, j): the larger value, NaN before numbers, the smaller index.
template <class T>
__device__ __forceinline__ bool argmax_better(T x, i64 i, T y, i64 j) {
  if (x != x || y != y) return x != x && (y == y || i < j);
  return y < x || (x == y && i < j);
}
)"},
    {"pack", "", R"(// Neighbours that one access moves: by name, since NVRTC takes an array apart.
template <class T, i32 N>
struct pack;
template <class T>
struct __align__(2 * sizeof(T)) pack<T, 2> {
  T a, b;
};
template <class T>
struct __align__(4 * sizeof(T)) pack<T, 4> {
  T a, b, c, d;
};
template <class T>
struct __align__(8 * sizeof(T)) pack<T, 8> {
  T a, b, c, d, e, f, g, h;
};
)"},
    {"load_pack", "pack", R"(template <class T, i32 N>
__device__ __forceinline__ pack<T, N> load_pack(const T* from) {
  return *(const pack<T, N>*)from;
}
)"},
    {"store_pack", "pack", R"(template <class T, class... Rest>
__device__ __forceinline__ void store_pack(T* to, T first, Rest... rest) {
  *(pack<T, 1 + sizeof...(Rest)>*)to = {first, rest...};
}
)"},
    {"report", "", R"(// Records the first failed check of a launch.
__device__ __forceinline__ void report(i64* error, i64 id, i64 value, i64 bound) {
  if (atomicCAS((u64*)error, 0ull, (u64)(id + 1)) != 0ull) return;
  error[1] = value;
  error[2] = bound;
}
)"},
};

std::size_t find(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kFunctions); ++i) {
    if (kFunctions[i].name == name) return i;
  }
  internal_check(false, "emit_cuda asks for a device function that does not exist");
  return 0;
}

}  // namespace

std::string_view cuda_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return "bool";
    case DType::int8:
      return "i8";
    case DType::int16:
      return "i16";
    case DType::int32:
      return "i32";
    case DType::int64:
      return "i64";
    case DType::uint8:
      return "u8";
    case DType::uint16:
      return "u16";
    case DType::uint32:
      return "u32";
    case DType::uint64:
      return "u64";
    case DType::float16:
      return "f16";
    case DType::bfloat16:
      return "bf16";
    case DType::float32:
      return "f32";
    case DType::float64:
      return "f64";
  }
  return "?";
}

Prelude::Prelude() : used_(std::size(kFunctions)) {}

std::string_view Prelude::use(std::string_view name) {
  const DeviceFunction& function = kFunctions[find(name)];
  for (std::string_view next = name; !next.empty(); next = kFunctions[find(next)].needs) {
    used_[find(next)] = true;
  }
  return function.name;
}

std::string Prelude::text() const {
  std::string text(kTypes);
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (used_[i]) (text += '\n') += kFunctions[i].text;
  }
  return text;
}

}  // namespace croton::codegen
