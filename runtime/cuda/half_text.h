// CUDA C++ between float and the bits of half precision, for kernels written by the compiler and by
// the runtime. Without the headers of CUDA, which take longer than a kernel to compile; f32, u32,
// f16 and bf16 are the text's own names. Hosts have functions of these names where __CUDACC__ is
// unset.
#pragma once

#include <string_view>

namespace croton::cuda {

inline constexpr std::string_view kF32FromF16 = R"(#ifdef __CUDACC__
__device__ __forceinline__ f32 f32_from_f16(f16 x) {
  f32 y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
#endif
)";

inline constexpr std::string_view kF16FromF32 = R"(#ifdef __CUDACC__
__device__ __forceinline__ f16 f16_from_f32(f32 x) {
  f16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
#endif
)";

inline constexpr std::string_view kF32FromBf16 =
    R"(__device__ __forceinline__ f32 f32_from_bf16(bf16 x) {
  return __uint_as_float((u32)x << 16);
}
)";

inline constexpr std::string_view kBf16FromF32 =
    R"(__device__ __forceinline__ bf16 bf16_from_f32(f32 x) {
  const u32 bits = __float_as_uint(x);
  if (x != x) return (bf16)((bits >> 16) | 0x40u);
  return (bf16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
)";

}  // namespace croton::cuda
