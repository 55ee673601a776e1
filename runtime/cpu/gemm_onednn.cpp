#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

#include "croton/error.h"
#include "runtime/cpu/gemm.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace croton::cpu {
namespace {

using dnnl::memory;

// Never destroyed: oneDNN's own statics may go first.
dnnl::engine& engine() {
  static auto* const instance = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *instance;
}

dnnl::stream& stream() {
  auto& instance = per_thread<std::unique_ptr<dnnl::stream>, struct StreamOfThread>();
  if (!instance) instance = std::make_unique<dnnl::stream>(engine());
  return *instance;
}

memory::data_type type_of(DType t) {
  return t == DType::bfloat16 ? memory::data_type::bf16 : memory::data_type::f32;
}

/// [batch, rows, columns], stored row-major or, `transposed`, by columns; a step of 0 broadcasts.
memory::desc matrix(DType dtype, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                    bool transposed, std::int64_t step) {
  const memory::dims strides = {step == 0 ? rows * columns : step, transposed ? 1 : columns,
                                transposed ? rows : 1};
  return {{step == 0 ? 1 : batch, rows, columns}, type_of(dtype), strides};
}

class OneDnnGemm final : public PreparedCall {
 public:
  OneDnnGemm(const GemmProblem& problem) : p_(problem) {
    const std::int64_t a_step = GemmProblem::step(p_.a_offset);
    const std::int64_t b_step = GemmProblem::step(p_.b_offset);
    // Batches that broadcast in part go one by one.
    whole_ = a_step >= 0 && b_step >= 0;
    const std::int64_t batch = whole_ ? p_.batch : 1;
    a_ = matrix(p_.dtype, batch, p_.m, p_.k, p_.transpose_a, whole_ ? a_step : 0);
    b_ = matrix(p_.dtype, batch, p_.k, p_.n, p_.transpose_b, whole_ ? b_step : 0);
    out_ = matrix(p_.dtype, batch, p_.m, p_.n, false, batch > 1 ? p_.m * p_.n : 0);
    bias_ = memory::desc({1, 1, p_.n}, type_of(p_.dtype), memory::dims{p_.n, p_.n, 1});
    // oneDNN adds the bias before it scales.
    native_bias_ = p_.bias && p_.alpha == 1;
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (p_.alpha != 1) attr.set_output_scales(0, {static_cast<float>(p_.alpha)});
    dnnl::post_ops after;
    if (p_.has_c()) after.append_sum(static_cast<float>(p_.beta));
    if (p_.bias && !native_bias_) after.append_binary(dnnl::algorithm::binary_add, bias_);
    attr.set_post_ops(after);
    const dnnl::matmul::desc desc =
        native_bias_ ? dnnl::matmul::desc(a_, b_, bias_, out_) : dnnl::matmul::desc(a_, b_, out_);
    const dnnl::matmul::primitive_desc pd(desc, attr, engine());
    reference_ = std::strstr(pd.impl_info_str(), "ref") != nullptr;
    scratchpad_ = pd.scratchpad_desc();
    primitive_ = dnnl::matmul(pd);
    binary_ = after.len() - 1;
  }

  ~OneDnnGemm() override { delete memories_.load(std::memory_order_acquire); }

  bool is_reference() const { return reference_; }
  std::size_t workspace() const override { return scratchpad_.get_size(); }
  std::int64_t work() const override { return p_.flop() / 15; }

  void run(void* const* operands, void* workspace, int threads, void*) const override {
    const GemmOperands o = operands_of(p_, operands);
    const std::size_t element = size_of(p_.dtype);
    const auto out_bytes = static_cast<std::size_t>(p_.m * p_.n) * element;
    if (o.c != nullptr) std::memcpy(o.out, o.c, out_bytes * static_cast<std::size_t>(p_.batch));
    if (p_.flop() < 2 * 96 * 96 * 96) threads = 1;
    {
      const LibraryThreads use(threads);
      const std::size_t members = whole_ ? 1 : static_cast<std::size_t>(p_.batch);
      for (std::size_t i = 0; i < members; ++i) {
        const auto move = [&](const void* base, std::int64_t offset) {
          return static_cast<char*>(const_cast<void*>(base)) +
                 static_cast<std::size_t>(whole_ ? 0 : offset) * element;
        };
        execute(move(o.a, p_.a_offset[i]), move(o.b, p_.b_offset[i]),
                static_cast<char*>(o.out) + i * out_bytes, o.bias, workspace);
      }
    }
    if (p_.relu) clamp(o.out, threads);
  }

 private:
  /// Making oneDNN's descriptions of memory takes as long as a small product; they are kept, one
  /// set for each call that runs at the same time.
  struct Memories {
    memory a, b, out, scratchpad, bias;
    dnnl_exec_arg_t arguments[5];
    int count = 4;
  };

  std::unique_ptr<Memories> make_memories() const {
    auto m = std::make_unique<Memories>();
    m->a = memory(a_, engine(), nullptr);
    m->b = memory(b_, engine(), nullptr);
    m->out = memory(out_, engine(), nullptr);
    m->scratchpad = memory(scratchpad_, engine(), nullptr);
    m->arguments[0] = {DNNL_ARG_SRC, m->a.get()};
    m->arguments[1] = {DNNL_ARG_WEIGHTS, m->b.get()};
    m->arguments[2] = {DNNL_ARG_DST, m->out.get()};
    m->arguments[3] = {DNNL_ARG_SCRATCHPAD, m->scratchpad.get()};
    if (!p_.bias) return m;
    m->bias = memory(bias_, engine(), nullptr);
    const int where =
        native_bias_ ? DNNL_ARG_BIAS : DNNL_ARG_ATTR_MULTIPLE_POST_OP(binary_) | DNNL_ARG_SRC_1;
    m->arguments[m->count++] = {where, m->bias.get()};
    return m;
  }

  void execute(void* a, void* b, void* out, const void* bias, void* workspace) const {
    std::unique_ptr<Memories> m(memories_.exchange(nullptr, std::memory_order_acquire));
    if (!m) m = make_memories();
    m->a.set_data_handle(a, stream());
    m->b.set_data_handle(b, stream());
    m->out.set_data_handle(out, stream());
    m->scratchpad.set_data_handle(workspace, stream());
    if (bias != nullptr) m->bias.set_data_handle(const_cast<void*>(bias), stream());
    const dnnl_status_t status =
        dnnl_primitive_execute(primitive_.get(), stream().get(), m->count, m->arguments);
    if (status != dnnl_success) throw DeviceError("[gemm] oneDNN failed to run a product");
    Memories* none = nullptr;
    if (memories_.compare_exchange_strong(none, m.get(), std::memory_order_release,
                                          std::memory_order_relaxed)) {
      (void)m.release();
    }
  }

  void clamp(void* out, int threads) const;

  const GemmProblem p_;
  bool whole_ = true;
  bool native_bias_ = false;
  bool reference_ = false;
  int binary_ = 0;
  memory::desc a_, b_, out_, bias_, scratchpad_;
  dnnl::matmul primitive_;
  mutable std::atomic<Memories*> memories_{nullptr};
};

/// Below this many bytes waking a thread takes longer than what it could do.
constexpr std::size_t kSerialClamp = 32 << 10;

/// x < 0 -> 0; NaN stays.
inline __attribute__((always_inline)) void clamp_floats(float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = x[i] < 0.0f ? 0.0f : x[i];
}
#if defined(__x86_64__)
__attribute__((target("avx512f,prefer-vector-width=512"))) void clamp_512(float* x,
                                                                          std::int64_t count) {
  clamp_floats(x, count);
}
__attribute__((target("avx2"))) void clamp_256(float* x, std::int64_t count) {
  clamp_floats(x, count);
}
#endif

void clamp_any(float* x, std::int64_t count) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return clamp_512(x, count);
  if (__builtin_cpu_supports("avx2")) return clamp_256(x, count);
#endif
  clamp_floats(x, count);
}

/// oneDNN's relu turns NaN into 0; ours does not.
void OneDnnGemm::clamp(void* out, int threads) const {
  const std::int64_t rows = p_.m * p_.batch;
  const auto bytes = static_cast<std::size_t>(rows * p_.n) * size_of(p_.dtype);
  // One range a thread, as oneDNN divides rows: what a thread wrote is in its own cache.
  const std::int64_t parts = bytes < kSerialClamp ? 1 : threads;
  parallel_for(parts, static_cast<int>(parts), [&](std::int64_t first, std::int64_t last) {
    const std::int64_t begin = rows * first / parts * p_.n, end = rows * last / parts * p_.n;
    if (p_.dtype == DType::float32) {
      clamp_any(static_cast<float*>(out) + begin, end - begin);
    } else {
      auto* x = static_cast<bfloat16*>(out);
      for (std::int64_t i = begin; i < end; ++i) {
        if (static_cast<float>(x[i]) < 0.0f) x[i] = bfloat16();
      }
    }
  });
}

}  // namespace

std::unique_ptr<PreparedCall> onednn_gemm(const GemmProblem& p) {
  try {
    auto call = std::make_unique<OneDnnGemm>(p);
    if (p.dtype == DType::bfloat16 && call->is_reference()) return nullptr;
    return call;
  } catch (const dnnl::error& e) {
    if (p.dtype == DType::bfloat16) return nullptr;
    throw DeviceError(std::string("[gemm] oneDNN cannot make this product: ") + e.what());
  }
}

}  // namespace croton::cpu
