// GPU 0 by calls of the driver and of cuBLASLt alone: what Croton is held against.
#pragma once

#include <croton/croton.h>

#include <cstdint>
#include <string>

#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/driver.h"

namespace croton::gpu_check {

/// Error unless the driver's call succeeded.
void check_driver(cuda::Result result, const char* what);

/// The device with a stream of its own. Its context is current on this thread while it lives.
class RawGpu {
 public:
  RawGpu();
  ~RawGpu();
  RawGpu(const RawGpu&) = delete;
  RawGpu& operator=(const RawGpu&) = delete;

  std::string name() const;
  int capability() const;
  cuda::StreamHandle stream() const { return stream_; }
  void wait() const;

 private:
  cuda::DeviceNumber device_ = 0;
  cuda::ContextHandle context_ = nullptr;
  cuda::StreamHandle stream_ = nullptr;
};

/// Memory of the device.
class RawMemory {
 public:
  RawMemory(const RawGpu& gpu, std::size_t bytes);
  /// With a copy of the array's elements.
  RawMemory(const RawGpu& gpu, const Array& values);
  ~RawMemory();
  RawMemory(const RawMemory&) = delete;
  RawMemory& operator=(const RawMemory&) = delete;
  cuda::DevicePointer place() const { return place_; }
  void* pointer() const { return reinterpret_cast<void*>(place_); }

 private:
  cuda::DevicePointer place_ = 0;
};

/// A CUDA graph of kernels that each add 1 to one number, one after the other.
class BareGraph {
 public:
  BareGraph(const RawGpu& gpu, int kernels);
  ~BareGraph();
  BareGraph(const BareGraph&) = delete;
  BareGraph& operator=(const BareGraph&) = delete;
  void launch() const;
  /// The number: launches times kernels.
  float value() const;

 private:
  const RawGpu& gpu_;
  RawMemory number_;
  cuda::ModuleHandle module_ = nullptr;
  cuda::GraphHandle graph_ = nullptr;
  cuda::GraphExecHandle exec_ = nullptr;
};

/// A product of row-major square matrices by cuBLASLt, with its own choice of algorithm.
class RawProduct {
 public:
  /// `bias` holds nothing where none is added.
  RawProduct(const RawGpu& gpu, const Array& a, const Array& b, const Array& bias, bool tf32);
  ~RawProduct();
  RawProduct(const RawProduct&) = delete;
  RawProduct& operator=(const RawProduct&) = delete;
  void run() const;

 private:
  void choose();

  const RawGpu& gpu_;
  RawMemory a_, b_, bias_, out_, workspace_;
  cuda::LtHandle handle_ = nullptr;
  cuda::LtDescription description_ = nullptr;
  cuda::LtLayout layout_ = nullptr;
  cuda::LtAlgorithm algorithm_;
};

}  // namespace croton::gpu_check
