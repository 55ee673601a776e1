// Small CUDA programs, each run in a process of its own by the tests.
#pragma once

#include <cuda.h>
#include <nvrtc.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace scenario {

/// Ends the process unless a call succeeded.
void need(CUresult result, const char* what);
#define NEED(call) scenario::need(call, #call)

/// Prints "NAME = RESULT" for the tests.
void show(const char* name, long long value);
void show_error(const char* name, CUresult result);

/// Initialises the driver and makes the primary context of a device current.
CUcontext use_device(int device = 0);

CUmodule compile(const std::string& source, const char* options = nullptr);
CUfunction kernel(const std::string& source, const char* name = "k");

template <class... A>
CUresult launch(CUfunction function, unsigned grid, unsigned block, unsigned shared,
                CUstream stream, A... arguments) {
  void* pointers[] = {&arguments..., nullptr};
  return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, stream, pointers, nullptr);
}

template <class T>
CUdeviceptr to_device(const std::vector<T>& values) {
  CUdeviceptr pointer = 0;
  NEED(cuMemAlloc(&pointer, values.size() * sizeof(T)));
  NEED(cuMemcpyHtoD(pointer, values.data(), values.size() * sizeof(T)));
  return pointer;
}

template <class T>
std::vector<T> to_host(CUdeviceptr pointer, std::size_t count) {
  std::vector<T> values(count);
  NEED(cuMemcpyDtoH(values.data(), pointer, count * sizeof(T)));
  return values;
}

/// Launches a kernel `k` of one pointer to 64 floats, waits, and shows what the wait says.
void run_on_64_floats(const std::string& source, unsigned grid, unsigned block,
                      unsigned shared = 0);

using Table = std::map<std::string, void (*)()>;
Table bounds_scenarios();
Table race_scenarios();
Table value_scenarios();
Table driver_scenarios();
Table product_scenarios();
Table collective_scenarios();

}  // namespace scenario
