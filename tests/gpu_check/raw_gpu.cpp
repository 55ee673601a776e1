#include "tests/gpu_check/raw_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "runtime/cuda/nvrtc.h"

namespace croton::gpu_check {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;

void check_blas(int status, const char* what) {
  if (status == cuda::kLtSuccess) return;
  throw std::runtime_error(
      fmt::format("cuBLASLt, {}: {}", what, cuda::cublaslt()->status_string(status)));
}

cuda::LtType lt_type(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return cuda::LtType::float16;
    case DType::bfloat16:
      return cuda::LtType::bfloat16;
    default:
      return cuda::LtType::float32;
  }
}

int attribute(cuda::Attribute which, cuda::DeviceNumber device) {
  int value = 0;
  check_driver(cuda::driver()->device_attribute(&value, static_cast<int>(which), device),
               "reading an attribute");
  return value;
}

}  // namespace

void check_driver(cuda::Result result, const char* what) {
  if (result == cuda::kSuccess) return;
  throw std::runtime_error(fmt::format("{}: {}", what, cuda::driver().error_text(result)));
}

RawGpu::RawGpu() {
  cuda::driver().require_usable();
  const cuda::Driver& driver = cuda::driver();
  check_driver(driver->device_get(&device_, 0), "finding GPU 0");
  check_driver(driver->primary_retain(&context_, device_), "opening GPU 0");
  check_driver(driver->push_context(context_), "making the context current");
  check_driver(driver->stream_create(&stream_, cuda::kStreamNonBlocking), "making a stream");
}

RawGpu::~RawGpu() {
  const cuda::Driver& driver = cuda::driver();
  driver->stream_destroy(stream_);
  driver->pop_context(&context_);
  driver->primary_release(device_);
}

std::string RawGpu::name() const {
  std::array<char, 256> text{};
  check_driver(cuda::driver()->device_name(text.data(), static_cast<int>(text.size()) - 1, device_),
               "asking for the name");
  return text.data();
}

int RawGpu::capability() const {
  return 10 * attribute(cuda::Attribute::capability_major, device_) +
         attribute(cuda::Attribute::capability_minor, device_);
}

void RawGpu::wait() const {
  check_driver(cuda::driver()->stream_synchronize(stream_), "waiting for the stream");
}

RawMemory::RawMemory(const RawGpu& gpu, std::size_t bytes) {
  check_driver(cuda::driver()->memory_allocate(&place_, std::max<std::size_t>(bytes, 1)),
               "allocating memory");
  check_driver(cuda::driver()->set_bytes(place_, 0, std::max<std::size_t>(bytes, 1), gpu.stream()),
               "clearing memory");
  gpu.wait();
}

RawMemory::RawMemory(const RawGpu& gpu, const Array& values)
    : RawMemory(gpu, values.has_value() ? values.nbytes() : 0) {
  if (!values.has_value()) return;
  check_driver(
      cuda::driver()->copy_to_device(place_, values.raw_data(), values.nbytes(), gpu.stream()),
      "copying to the GPU");
  gpu.wait();
}

RawMemory::~RawMemory() { cuda::driver()->memory_free(place_); }

BareGraph::BareGraph(const RawGpu& gpu, int kernels) : gpu_(gpu), number_(gpu, sizeof(float)) {
  const cuda::Nvrtc& nvrtc = cuda::nvrtc();
  const cuda::NvrtcModule compiled =
      nvrtc.compile("extern \"C\" __global__ void add_one(float* number) { *number += 1.0f; }\n",
                    "add_one.cu", nvrtc.target_for(gpu.capability()), cuda::nvrtc_options());
  const cuda::Driver& driver = cuda::driver();
  check_driver(driver->module_load(&module_, compiled.image.data(), 0, nullptr, nullptr),
               "loading a module");
  cuda::FunctionHandle function = nullptr;
  check_driver(driver->module_function(&function, module_, "add_one"), "finding a kernel");
  check_driver(driver->stream_begin_capture(gpu.stream(), cuda::kCaptureRelaxed), "capturing");
  cuda::DevicePointer place = number_.place();
  void* parameters[] = {&place};
  for (int i = 0; i < kernels; ++i) {
    check_driver(driver->launch(function, 1, 1, 1, 1, 1, 1, 0, gpu.stream(), parameters, nullptr),
                 "launching");
  }
  check_driver(driver->stream_end_capture(gpu.stream(), &graph_), "ending a capture");
  check_driver(driver->graph_instantiate(&exec_, graph_, 0), "making a graph");
}

BareGraph::~BareGraph() {
  const cuda::Driver& driver = cuda::driver();
  driver->graph_exec_destroy(exec_);
  driver->graph_destroy(graph_);
  driver->module_unload(module_);
}

void BareGraph::launch() const {
  check_driver(cuda::driver()->graph_launch(exec_, gpu_.stream()), "launching a graph");
}

float BareGraph::value() const {
  float value = 0;
  check_driver(cuda::driver()->copy_to_host(&value, number_.place(), sizeof value, gpu_.stream()),
               "copying to the host");
  gpu_.wait();
  return value;
}

RawProduct::RawProduct(const RawGpu& gpu, const Array& a, const Array& b, const Array& bias,
                       bool tf32)
    : gpu_(gpu),
      a_(gpu, a),
      b_(gpu, b),
      bias_(gpu, bias),
      out_(gpu, a.nbytes()),
      workspace_(gpu, kWorkspace) {
  if (!cuda::cublaslt().usable()) throw std::runtime_error(cuda::cublaslt().report().text());
  const cuda::LtSymbols& lt = *cuda::cublaslt().operator->();
  check_blas(lt.create(&handle_), "starting");
  const bool rounds = tf32 && a.dtype() == DType::float32;
  check_blas(lt.description_create(&description_,
                                   static_cast<int>(rounds ? cuda::LtCompute::float32_tf32
                                                           : cuda::LtCompute::float32),
                                   static_cast<int>(cuda::LtType::float32)),
             "describing");
  if (bias.has_value()) {
    const int epilogue = cuda::kLtEpilogueBias;
    const void* const place = bias_.pointer();
    check_blas(
        lt.description_set(description_, static_cast<int>(cuda::LtDescriptionAttribute::epilogue),
                           &epilogue, sizeof epilogue),
        "setting the epilogue");
    check_blas(
        lt.description_set(description_, static_cast<int>(cuda::LtDescriptionAttribute::bias),
                           &place, sizeof place),
        "setting the bias");
  }
  const std::int64_t n = a.shape()[0];
  check_blas(lt.layout_create(&layout_, static_cast<int>(lt_type(a.dtype())),
                              static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(n), n),
             "describing a matrix");
  choose();
}

void RawProduct::choose() {
  const cuda::LtSymbols& lt = *cuda::cublaslt().operator->();
  cuda::LtPreference preference = nullptr;
  check_blas(lt.preference_create(&preference), "making a preference");
  const std::uint64_t bytes = kWorkspace;
  check_blas(lt.preference_set(preference, static_cast<int>(cuda::LtPreferenceAttribute::workspace),
                               &bytes, sizeof bytes),
             "setting the workspace");
  cuda::LtHeuristic found;
  int count = 0;
  const int status = lt.heuristic(handle_, description_, layout_, layout_, layout_, layout_,
                                  preference, 1, &found, &count);
  lt.preference_destroy(preference);
  check_blas(status, "choosing an algorithm");
  if (count == 0) throw std::runtime_error("cuBLASLt knows no algorithm for this product");
  algorithm_ = found.algorithm;
}

RawProduct::~RawProduct() {
  const cuda::LtSymbols& lt = *cuda::cublaslt().operator->();
  lt.layout_destroy(layout_);
  lt.description_destroy(description_);
  lt.destroy(handle_);
}

// Row-major matrices are column-major ones transposed: out' = b' a'.
void RawProduct::run() const {
  const float one = 1, zero = 0;
  check_blas(
      cuda::cublaslt()->matmul(handle_, description_, &one, b_.pointer(), layout_, a_.pointer(),
                               layout_, &zero, out_.pointer(), layout_, out_.pointer(), layout_,
                               &algorithm_, workspace_.pointer(), kWorkspace, gpu_.stream()),
      "multiplying");
}

}  // namespace croton::gpu_check
