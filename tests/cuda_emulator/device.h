// Stands before the text of kernels when a host compiler builds them: what NVRTC knows without
// headers, for the threads of blocks that are fibers. Includes nothing, because headers cost more
// to compile than kernels.
#pragma once

#define __global__ __attribute__((visibility("default")))
#define __device__ __attribute__((visibility("default")))
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __constant__ __attribute__((visibility("default")))
#define __managed__
// Thread-local, so that every variable has an offset in a block of its own: see __tls_get_addr.
#define __shared__ thread_local
#define CUDART_INF_F __builtin_inff()

#define EMU_HIDDEN __attribute__((visibility("hidden")))
#define EMU_CHECKED __attribute__((no_sanitize("thread"), noinline))

typedef __SIZE_TYPE__ size_t;

extern "C" {
EMU_HIDDEN void emu_fence();
EMU_HIDDEN void emu_atomic(const volatile void* address, unsigned bytes, const void* pc);
EMU_HIDDEN unsigned emu_barrier(unsigned op, unsigned value);
EMU_HIDDEN unsigned long long emu_warp(unsigned op, unsigned mask, unsigned long long value,
                                       unsigned argument, unsigned width);
[[noreturn]] EMU_HIDDEN void emu_trap(const char* what);
double sqrt(double), cbrt(double), exp(double), exp2(double), exp10(double), expm1(double);
double log(double), log2(double), log10(double), log1p(double), pow(double, double);
double sin(double), cos(double), tan(double), asin(double), acos(double), atan(double);
double atan2(double, double), sinh(double), cosh(double), tanh(double), asinh(double);
double acosh(double), atanh(double), erf(double), erfc(double), tgamma(double), lgamma(double);
double fabs(double), floor(double), ceil(double), trunc(double), rint(double), round(double);
double nearbyint(double), fmod(double, double), remainder(double, double), hypot(double, double);
double fma(double, double, double), fmin(double, double), fmax(double, double);
double copysign(double, double), ldexp(double, int), nextafter(double, double), j0(double);
double j1(double), y0(double), y1(double);
float sqrtf(float), cbrtf(float), expf(float), exp2f(float), exp10f(float), expm1f(float);
float logf(float), log2f(float), log10f(float), log1pf(float), powf(float, float);
float sinf(float), cosf(float), tanf(float), asinf(float), acosf(float), atanf(float);
float atan2f(float, float), sinhf(float), coshf(float), tanhf(float), asinhf(float);
float acoshf(float), atanhf(float), erff(float), erfcf(float), tgammaf(float), lgammaf(float);
float fabsf(float), floorf(float), ceilf(float), truncf(float), rintf(float), roundf(float);
float nearbyintf(float), fmodf(float, float), remainderf(float, float), hypotf(float, float);
float fmaf(float, float, float), fminf(float, float), fmaxf(float, float);
float copysignf(float, float), ldexpf(float, int), nextafterf(float, float), j0f(float);
float j1f(float), y0f(float), y1f(float);
void* memcpy(void*, const void*, size_t);
void* memset(void*, int, size_t);
}

#define EMU_VECTOR(name, type, bytes1, bytes2, bytes4)                               \
  struct __align__(bytes1) name##1 {                                                 \
    type x;                                                                          \
  };                                                                                 \
  struct __align__(bytes2) name##2 {                                                 \
    type x, y;                                                                       \
  };                                                                                 \
  struct name##3 {                                                                   \
    type x, y, z;                                                                    \
  };                                                                                 \
  struct __align__(bytes4) name##4 {                                                 \
    type x, y, z, w;                                                                 \
  };                                                                                 \
  static inline name##1 make_##name##1(type x) { return {x}; }                       \
  static inline name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
EMU_VECTOR(char, signed char, 1, 2, 4)
EMU_VECTOR(uchar, unsigned char, 1, 2, 4)
EMU_VECTOR(short, short, 2, 4, 8)
EMU_VECTOR(ushort, unsigned short, 2, 4, 8)
EMU_VECTOR(int, int, 4, 8, 16)
EMU_VECTOR(uint, unsigned, 4, 8, 16)
EMU_VECTOR(longlong, long long, 8, 16, 16)
EMU_VECTOR(ulonglong, unsigned long long, 8, 16, 16)
EMU_VECTOR(float, float, 4, 8, 16)
EMU_VECTOR(double, double, 8, 16, 16)
#undef EMU_VECTOR

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// The context at the top of the stack slot. Read by asm, so that it is neither checked nor read
// twice.
static inline unsigned long emu_context() {
  unsigned long stack;
  asm("mov %%rsp, %0" : "=r"(stack));
  return (stack | 0x1ffff) + 1 - 256;
}
template <int offset>
static inline unsigned emu_word() {
  unsigned value;
  asm("movl %c2(%1), %0" : "=r"(value) : "r"(emu_context()), "i"(offset));
  return value;
}
static inline void* emu_dynamic_shared() {
  void* value;
  asm("movq 48(%1), %0" : "=r"(value) : "r"(emu_context()));
  return value;
}
#define threadIdx (uint3{emu_word<0>(), emu_word<4>(), emu_word<8>()})
#define blockIdx (uint3{emu_word<12>(), emu_word<16>(), emu_word<20>()})
#define blockDim (uint3{emu_word<24>(), emu_word<28>(), emu_word<32>()})
#define gridDim (uint3{emu_word<36>(), emu_word<40>(), emu_word<44>()})
#define warpSize 32

// Barriers and warps. Macros, so that the place of the call is that of the kernel's text.
#define __syncthreads() ((void)emu_barrier(0, 0))
#define __syncthreads_count(p) ((int)emu_barrier(1, !!(p)))
#define __syncthreads_and(p) ((int)emu_barrier(2, !!(p)))
#define __syncthreads_or(p) ((int)emu_barrier(3, !!(p)))
#define __syncwarp(...) ((void)emu_warp(0, emu_mask(__VA_ARGS__), 0, 0, 32))
#define __shfl_sync(mask, ...) EMU_SHUFFLE(1, mask, __VA_ARGS__)
#define __shfl_up_sync(mask, ...) EMU_SHUFFLE(2, mask, __VA_ARGS__)
#define __shfl_down_sync(mask, ...) EMU_SHUFFLE(3, mask, __VA_ARGS__)
#define __shfl_xor_sync(mask, ...) EMU_SHUFFLE(4, mask, __VA_ARGS__)
#define EMU_SHUFFLE(op, mask, ...) emu_shuffle<op>(mask, __VA_ARGS__)
#define __all_sync(mask, p) ((int)emu_warp(5, mask, !!(p), 0, 32))
#define __any_sync(mask, p) ((int)emu_warp(6, mask, !!(p), 0, 32))
#define __ballot_sync(mask, p) ((unsigned)emu_warp(7, mask, !!(p), 0, 32))
#define __match_any_sync(mask, v) ((unsigned)emu_warp(8, mask, emu_bits(v), 0, 32))
#define __reduce_and_sync(mask, v) ((unsigned)emu_warp(15, mask, v, 0, 32))
#define __reduce_or_sync(mask, v) ((unsigned)emu_warp(16, mask, v, 0, 32))
#define __reduce_xor_sync(mask, v) ((unsigned)emu_warp(17, mask, v, 0, 32))
#define __activemask() ((unsigned)emu_warp(18, 0, 0, 0, 32))
static inline constexpr unsigned emu_mask(unsigned mask = 0xffffffffu) { return mask; }
template <class To, class From>
static inline To emu_bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, value);
}
template <class T>
static inline unsigned long long emu_bits(T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "CUDA exchanges 32 and 64 bits");
  if constexpr (sizeof(T) == 4)
    return emu_bits_as<unsigned>(value);
  else
    return emu_bits_as<unsigned long long>(value);
}
template <int op, class T>
__attribute__((always_inline)) inline T emu_shuffle(unsigned mask, T value, int lane,
                                                    int width = 32) {
  const unsigned long long bits = emu_warp(op, mask, emu_bits(value), lane, width);
  if constexpr (sizeof(T) == 4)
    return emu_bits_as<T>((unsigned)bits);
  else
    return emu_bits_as<T>(bits);
}
#define __reduce_add_sync(mask, v) emu_reduce<10, 10>(mask, v)
#define __reduce_min_sync(mask, v) emu_reduce<11, 13>(mask, v)
#define __reduce_max_sync(mask, v) emu_reduce<12, 14>(mask, v)
template <int op, int signed_op, class T>
__attribute__((always_inline)) inline T emu_reduce(unsigned mask, T value) {
  return (T)emu_warp((T)-1 < 0 ? signed_op : op, mask, (unsigned)value, 0, 32);
}
#define __threadfence() emu_fence()
#define __threadfence_block() emu_fence()
#define __threadfence_system() emu_fence()

// Atomics: nothing else runs, so plain operations do, once checked.
#define EMU_ATOMIC(name, type, expression)                        \
  EMU_CHECKED inline type name(type* place, type value) {         \
    emu_atomic(place, sizeof(type), __builtin_return_address(0)); \
    const type old = *place;                                      \
    *place = expression;                                          \
    return old;                                                   \
  }
#define EMU_ATOMIC_INTEGERS(name, expression) \
  EMU_ATOMIC(name, int, expression)           \
  EMU_ATOMIC(name, unsigned, expression)      \
  EMU_ATOMIC(name, unsigned long long, expression)
EMU_ATOMIC(atomicAdd, int, (int)((unsigned)old + (unsigned)value))
EMU_ATOMIC(atomicAdd, unsigned, old + value)
EMU_ATOMIC(atomicAdd, unsigned long long, old + value)
EMU_ATOMIC(atomicAdd, float, old + value)
EMU_ATOMIC(atomicAdd, double, old + value)
EMU_ATOMIC(atomicSub, int, (int)((unsigned)old - (unsigned)value))
EMU_ATOMIC(atomicSub, unsigned, old - value)
EMU_ATOMIC_INTEGERS(atomicExch, value)
EMU_ATOMIC(atomicExch, float, value)
EMU_ATOMIC_INTEGERS(atomicMin, value < old ? value : old)
EMU_ATOMIC(atomicMin, long long, value < old ? value : old)
EMU_ATOMIC_INTEGERS(atomicMax, value > old ? value : old)
EMU_ATOMIC(atomicMax, long long, value > old ? value : old)
EMU_ATOMIC_INTEGERS(atomicAnd, old& value)
EMU_ATOMIC_INTEGERS(atomicOr, old | value)
EMU_ATOMIC_INTEGERS(atomicXor, old ^ value)
EMU_ATOMIC(atomicInc, unsigned, old >= value ? 0 : old + 1)
EMU_ATOMIC(atomicDec, unsigned, old == 0 || old > value ? value : old - 1)
#undef EMU_ATOMIC
#define EMU_CAS(type)                                                         \
  EMU_CHECKED inline type atomicCAS(type* place, type expected, type value) { \
    emu_atomic(place, sizeof(type), __builtin_return_address(0));             \
    const type old = *place;                                                  \
    if (old == expected) *place = value;                                      \
    return old;                                                               \
  }
EMU_CAS(int)
EMU_CAS(unsigned)
EMU_CAS(unsigned long long)
EMU_CAS(unsigned short)
#undef EMU_CAS

// Loads and stores with a hint.
template <class T>
inline T __ldg(const T* p) {
  return *p;
}
template <class T>
inline T __ldcs(const T* p) {
  return *p;
}
template <class T>
inline T __ldcg(const T* p) {
  return *p;
}
template <class T>
inline T __ldca(const T* p) {
  return *p;
}
template <class T>
inline T __ldcv(const T* p) {
  return *p;
}
template <class T>
inline T __ldlu(const T* p) {
  return *p;
}
template <class T>
inline void __stcs(T* p, T value) {
  *p = value;
}
template <class T>
inline void __stcg(T* p, T value) {
  *p = value;
}
template <class T>
inline void __stwb(T* p, T value) {
  *p = value;
}
template <class T>
inline void __stwt(T* p, T value) {
  *p = value;
}

// Bits and arithmetic.
static inline unsigned __float_as_uint(float x) { return emu_bits_as<unsigned>(x); }
static inline int __float_as_int(float x) { return emu_bits_as<int>(x); }
static inline float __uint_as_float(unsigned x) { return emu_bits_as<float>(x); }
static inline float __int_as_float(int x) { return emu_bits_as<float>(x); }
static inline long long __double_as_longlong(double x) { return emu_bits_as<long long>(x); }
static inline double __longlong_as_double(long long x) { return emu_bits_as<double>(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline long long __mul64hi(long long a, long long b) {
  return (long long)((__int128)a * b >> 64);
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)((((unsigned long long)high << 32 | low) << (shift & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline float __fsqrt_rn(float a) { return sqrtf(a); }
static inline float __frcp_rn(float a) { return 1.0f / a; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float __expf(float x) { return expf(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __fdividef(float a, float b) { return a / b; }
static inline int min(int a, int b) { return b < a ? b : a; }
static inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
static inline long long min(long long a, long long b) { return b < a ? b : a; }
static inline int max(int a, int b) { return a < b ? b : a; }
static inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
static inline long long max(long long a, long long b) { return a < b ? b : a; }
static inline bool emu_nan(float x) { return x != x; }
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define __trap() emu_trap("__trap()")
#define assert(condition) ((condition) ? (void)0 : emu_trap(#condition))

// float16 is an extended type of the host compiler: conversions round as IEEE 754 says.
static inline float f32_from_f16(unsigned short x) { return (float)emu_bits_as<_Float16>(x); }
static inline unsigned short f16_from_f32(float x) {
  return emu_bits_as<unsigned short>((_Float16)x);
}

// A kernel's parameters and a way to call it, from its type alone.
struct emu_parameter {
  unsigned size, alignment;
  bool pointer;
};
struct emu_kernel {
  const void* address;
  void (*call)(void**);
  const emu_parameter* parameters;
  unsigned count, launch_bound;
};
template <class T>
constexpr bool emu_is_pointer = false;
template <class T>
constexpr bool emu_is_pointer<T*> = true;
template <class T>
constexpr bool emu_is_pointer<T* const> = true;
template <unsigned... i>
struct emu_indices {};
template <auto function>
struct emu_call;
template <class... A, void (*function)(A...)>
struct emu_call<function> {
  static constexpr emu_parameter parameters[sizeof...(A) + 1] = {
      {sizeof(A), alignof(A), emu_is_pointer<A>}..., {}};
  template <unsigned... i>
  static inline __attribute__((no_sanitize("thread"), always_inline)) void call(void** arguments,
                                                                                emu_indices<i...>) {
    function(*(A*)arguments[i]...);
  }
  static __attribute__((no_sanitize("thread"))) void run(void** arguments) {
    call(arguments, emu_indices<__integer_pack(sizeof...(A))...>());
  }
  static constexpr unsigned count = sizeof...(A);
};
