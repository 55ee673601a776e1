#include "runtime/cuda/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "croton/error.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/gpu_device.h"
#include "runtime/cuda/queue.h"

namespace croton::cuda {
namespace {

using cpu::GemmOperands;
using cpu::GemmProblem;

/// What memory from pools is aligned to, and the most that cuBLASLt asks for.
constexpr std::uint32_t kBestAlignment = 256;

void check_status(Gpu& gpu, int status, const char* what) {
  if (status == kLtSuccess) return;
  gpu.require_alive();
  const std::string text = fmt::format("[gemm] cuBLASLt {} on {}: {} (status {})", what, gpu.name(),
                                       cublaslt()->status_string(status), status);
  if (status == kLtAllocationFailed) throw OutOfMemory(text);
  throw DeviceError(text);
}

/// The handle of cuBLASLt on one GPU and the algorithms that it chose there.
struct BlasState {
  explicit BlasState(Gpu& the_gpu) : gpu(the_gpu) {
    check_status(gpu, cublaslt()->create(&handle), "cannot be started");
  }
  ~BlasState() { cublaslt()->destroy(handle); }

  Gpu& gpu;
  LtHandle handle = nullptr;
  std::mutex mutex;
  std::map<std::string, LtHeuristic> chosen;
};

std::shared_ptr<BlasState> blas_of(Gpu& gpu) {
  if (!cublaslt().usable()) {
    throw DeviceError("[gemm] products of floats on a GPU need cuBLASLt: " +
                      cublaslt().report().text());
  }
  const std::lock_guard hold(gpu.blas_mutex);
  if (!gpu.blas) {
    const Current current(gpu);
    gpu.blas = std::make_shared<BlasState>(gpu);
  }
  return std::static_pointer_cast<BlasState>(gpu.blas);
}

LtType type_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return LtType::float64;
    case DType::float16:
      return LtType::float16;
    case DType::bfloat16:
      return LtType::bfloat16;
    default:
      return LtType::float32;
  }
}

/// The product of row-major matrices as cuBLASLt sees it: column-major, D' = B' A'.
class BlasGemm final : public PreparedCall {
 public:
  BlasGemm(GpuDevice& device, const GemmProblem& problem, BlasOptions options)
      : p_(problem), options_(options), gpu_(device.shared_gpu()), blas_(blas_of(*gpu_)) {
    const std::int64_t a = GemmProblem::step(p_.a_offset), b = GemmProblem::step(p_.b_offset);
    strided_ = a >= 0 && b >= 0;
    describe(strided_ ? p_.batch : 1, a, b);
    // A place for the bias decides its alignment.
    set_bias(reinterpret_cast<const void*>(std::uintptr_t{kBestAlignment}));
    std::optional<LtHeuristic> found = choose(kBestAlignment, most_workspace());
    GemmProblem rest = p_;
    rest.bias = !found && p_.bias;
    if (rest.bias) {
      set_epilogue(kLtEpilogueNone);
      found = choose(kBestAlignment, most_workspace());
    }
    if (!found) throw DeviceError(no_way());
    best_ = *found;
    // The relu of cuBLASLt does not promise to keep NaN.
    if (rest.bias || rest.relu) finish_ = finish_gemm(device, rest);
  }

  std::size_t workspace() const override { return best_.workspace; }
  std::int64_t work() const override { return p_.flop() / 100; }

  void run(void* const* operands, void* workspace, int, void* queue) const override {
    const auto& place = *static_cast<const LibraryQueue*>(queue);
    const GemmOperands o = cpu::operands_of(p_, operands);
    const std::size_t size = size_of(p_.dtype);
    const std::int64_t members = strided_ ? 1 : p_.batch;
    // The description holds the place of the bias.
    std::unique_lock hold(mutex_, std::defer_lock);
    const bool bias = epilogue_ == kLtEpilogueBias;
    if (bias) {
      hold.lock();
      set_bias(o.bias);
    }
    for (std::int64_t i = 0; i < members; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto offset = [&](std::int64_t elements) {
        return static_cast<std::size_t>(elements) * size;
      };
      const auto* a = static_cast<const std::byte*>(o.a) + offset(p_.a_offset[at]);
      const auto* b = static_cast<const std::byte*>(o.b) + offset(p_.b_offset[at]);
      auto* out = static_cast<std::byte*>(o.out) + offset(i * p_.m * p_.n);
      const std::byte* c =
          o.c == nullptr ? out : static_cast<const std::byte*>(o.c) + offset(i * p_.m * p_.n);
      multiply(place, a, b, c, out, bias ? o.bias : nullptr, workspace);
    }
    if (finish_) finish_->run(operands, nullptr, 1, queue);
  }

 private:
  void multiply(const LibraryQueue& place, const void* a, const void* b, const void* c, void* out,
                const void* bias, void* workspace) const {
    const double wide[2] = {p_.alpha, p_.beta};
    const float narrow[2] = {static_cast<float>(p_.alpha), static_cast<float>(p_.beta)};
    const bool is_wide = p_.dtype == DType::float64;
    const void* alpha = is_wide ? static_cast<const void*>(&wide[0]) : &narrow[0];
    const void* beta = is_wide ? static_cast<const void*>(&wide[1]) : &narrow[1];
    const LtAlgorithm algorithm = algorithm_for({a, b, c, out, bias, workspace});
    check_status(*gpu_,
                 cublaslt()->matmul(blas_->handle, handles_.description, alpha, b, handles_.b, a,
                                    handles_.a, beta, c, handles_.c, out, handles_.c, &algorithm,
                                    workspace, best_.workspace, place.stream),
                 "failed");
  }

  /// Views of arrays that lie anywhere may be aligned worse than memory from the pool.
  LtAlgorithm algorithm_for(std::initializer_list<const void*> places) const {
    std::uintptr_t bits = kBestAlignment;
    for (const void* p : places) bits |= reinterpret_cast<std::uintptr_t>(p);
    const auto alignment = std::uint32_t{1} << std::countr_zero(bits);
    if (alignment >= kBestAlignment) return best_.algorithm;
    const std::optional<LtHeuristic> found = choose(alignment, best_.workspace);
    if (!found) throw DeviceError(no_way());
    return found->algorithm;
  }

  void describe(std::int64_t batch, std::int64_t a_step, std::int64_t b_step) {
    const LtSymbols& lt = *cublaslt().operator->();
    const bool is_wide = p_.dtype == DType::float64;
    const LtCompute compute = is_wide ? LtCompute::float64
                              : options_.tf32 && p_.dtype == DType::float32
                                  ? LtCompute::float32_tf32
                                  : LtCompute::float32;
    const auto check = [&](int status) { check_status(*gpu_, status, "takes no such product"); };
    check(lt.description_create(&handles_.description, static_cast<int>(compute),
                                static_cast<int>(is_wide ? LtType::float64 : LtType::float32)));
    const auto set = [&](LtDescriptionAttribute attribute, int value) {
      check(lt.description_set(handles_.description, static_cast<int>(attribute), &value,
                               sizeof value));
    };
    set(LtDescriptionAttribute::transpose_a, p_.transpose_b ? 1 : 0);
    set(LtDescriptionAttribute::transpose_b, p_.transpose_a ? 1 : 0);
    set_epilogue(p_.bias ? kLtEpilogueBias : kLtEpilogueNone);
    const auto layout = [&](LtLayout& made, std::int64_t rows, std::int64_t columns,
                            std::int64_t step) {
      // Row-major rows x columns is column-major columns x rows.
      check(lt.layout_create(&made, static_cast<int>(type_of(p_.dtype)),
                             static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows),
                             columns));
      if (batch == 1) return;
      const auto count = static_cast<std::int32_t>(batch);
      check(lt.layout_set(made, static_cast<int>(LtLayoutAttribute::batch), &count, sizeof count));
      check(
          lt.layout_set(made, static_cast<int>(LtLayoutAttribute::batch_step), &step, sizeof step));
    };
    layout(handles_.a, p_.transpose_a ? p_.k : p_.m, p_.transpose_a ? p_.m : p_.k, a_step);
    layout(handles_.b, p_.transpose_b ? p_.n : p_.k, p_.transpose_b ? p_.k : p_.n, b_step);
    layout(handles_.c, p_.m, p_.n, p_.m * p_.n);
  }

  void set_epilogue(int epilogue) {
    epilogue_ = epilogue;
    check_status(*gpu_,
                 cublaslt()->description_set(handles_.description,
                                             static_cast<int>(LtDescriptionAttribute::epilogue),
                                             &epilogue, sizeof epilogue),
                 "takes no such epilogue");
  }

  void set_bias(const void* bias) const {
    if (epilogue_ != kLtEpilogueBias) return;
    check_status(*gpu_,
                 cublaslt()->description_set(handles_.description,
                                             static_cast<int>(LtDescriptionAttribute::bias), &bias,
                                             sizeof bias),
                 "takes no such bias");
  }

  std::size_t most_workspace() const {
    return std::size_t{gpu_->target().sm >= 90 ? 32u : 8u} << 20;
  }

  std::string key(std::uint32_t alignment, std::size_t workspace) const {
    return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}", static_cast<int>(p_.dtype),
                       p_.m, p_.n, p_.k, p_.transpose_a, p_.transpose_b, strided_ ? p_.batch : 1,
                       GemmProblem::step(p_.a_offset), GemmProblem::step(p_.b_offset), epilogue_,
                       options_.tf32, options_.deterministic, alignment, workspace);
  }

  /// The fastest algorithm by cuBLASLt's judgement, which it is asked for once a process.
  std::optional<LtHeuristic> choose(std::uint32_t alignment, std::size_t workspace) const {
    const std::string name = key(alignment, workspace);
    const std::lock_guard hold(blas_->mutex);
    if (const auto known = blas_->chosen.find(name); known != blas_->chosen.end()) {
      return known->second;
    }
    const LtSymbols& lt = *cublaslt().operator->();
    const Current current(*gpu_);
    LtPreference preference = nullptr;
    check_status(*gpu_, lt.preference_create(&preference), "has no memory");
    const auto set = [&](LtPreferenceAttribute attribute, const auto& value) {
      lt.preference_set(preference, static_cast<int>(attribute), &value, sizeof value);
    };
    const auto bytes = static_cast<std::uint64_t>(workspace);
    set(LtPreferenceAttribute::workspace, bytes);
    if (options_.deterministic) {
      set(LtPreferenceAttribute::reductions, kLtDeterministicReductions);
    }
    if (alignment < kBestAlignment) {
      set(LtPreferenceAttribute::alignment_a, alignment);
      set(LtPreferenceAttribute::alignment_b, alignment);
      set(LtPreferenceAttribute::alignment_c, alignment);
      set(LtPreferenceAttribute::alignment_d, alignment);
    }
    LtHeuristic found;
    int count = 0;
    const int status = lt.heuristic(blas_->handle, handles_.description, handles_.b, handles_.a,
                                    handles_.c, handles_.c, preference, 1, &found, &count);
    lt.preference_destroy(preference);
    gpu_->require_alive();
    if (status == kLtNotSupported) return {};
    check_status(*gpu_, status, "cannot look for a way to multiply");
    if (count < 1 || found.state != kLtSuccess) return {};
    blas_->chosen.emplace(name, found);
    return found;
  }

  std::string no_way() const {
    return fmt::format(
        "[gemm] cuBLASLt {} has no way to multiply {} x {} by {} x {} of {} (batch {}) on {}",
        cublaslt().report().version, p_.m, p_.k, p_.k, p_.n, name_of(p_.dtype), p_.batch,
        gpu_->name());
  }

  const GemmProblem p_;
  const BlasOptions options_;
  const std::shared_ptr<Gpu> gpu_;
  const std::shared_ptr<BlasState> blas_;
  bool strided_ = true;  ///< one call does the whole batch
  int epilogue_ = kLtEpilogueNone;
  struct Handles {
    LtDescription description = nullptr;
    LtLayout a = nullptr, b = nullptr, c = nullptr;

    Handles() = default;
    Handles(const Handles&) = delete;
    Handles& operator=(const Handles&) = delete;
    ~Handles() {
      for (const LtLayout layout : {a, b, c}) {
        if (layout != nullptr) cublaslt()->layout_destroy(layout);
      }
      if (description != nullptr) cublaslt()->description_destroy(description);
    }
  };
  Handles handles_;
  LtHeuristic best_;
  std::unique_ptr<PreparedCall> finish_;
  mutable std::mutex mutex_;
};

std::string unsupported(const Attrs& attrs, std::span<const OperandType> operands) {
  std::string reason;
  cpu::read_gemm(attrs, operands, reason);
  return reason;
}

std::unique_ptr<PreparedCall> prepare(Device& device, const Attrs& attrs,
                                      std::span<const OperandType> operands) {
  std::string reason;
  const GemmProblem p = cpu::read_gemm(attrs, operands, reason);
  auto& gpu = static_cast<GpuDevice&>(device);
  const bool empty = p.m == 0 || p.n == 0 || p.k == 0 || p.batch == 0;
  if (empty || !is_float(p.dtype)) return plain_gemm(gpu, p);
  return blas_gemm(gpu, p,
                   {attrs.integer_or("tf32", 0) != 0, attrs.integer_or("deterministic", 0) != 0});
}

constexpr LibraryFunction kTable[] = {{"gemm", unsupported, prepare}};

}  // namespace

std::unique_ptr<PreparedCall> blas_gemm(GpuDevice& device, const GemmProblem& problem,
                                        BlasOptions options) {
  return std::make_unique<BlasGemm>(device, problem, options);
}

std::span<const LibraryFunction> gpu_library() { return kTable; }

}  // namespace croton::cuda
