#include "tests/cuda_emulator/test/scenario.h"

namespace scenario {

void need(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::printf("%s failed with %d\n", what, static_cast<int>(result));
  std::fflush(stdout);
  std::_Exit(1);
}

void show(const char* name, long long value) { std::printf("%s = %lld\n", name, value); }
void show_error(const char* name, CUresult result) { show(name, static_cast<long long>(result)); }

CUcontext use_device(int device) {
  CUcontext context = nullptr;
  NEED(cuInit(0));
  NEED(cuDevicePrimaryCtxRetain(&context, device));
  NEED(cuCtxSetCurrent(context));
  return context;
}

CUmodule compile(const std::string& source, const char* options) {
  nvrtcProgram program = nullptr;
  std::vector<const char*> list = {"--gpu-architecture=sm_90", "--fmad=false"};
  if (options) list.push_back(options);
  nvrtcCreateProgram(&program, source.c_str(), "scenario.cu", 0, nullptr, nullptr);
  const nvrtcResult result =
      nvrtcCompileProgram(program, static_cast<int>(list.size()), list.data());
  if (result != NVRTC_SUCCESS) {
    std::size_t size = 0;
    nvrtcGetProgramLogSize(program, &size);
    std::string log(size, 0);
    nvrtcGetProgramLog(program, log.data());
    std::printf("compile = %d\n%s\n", static_cast<int>(result), log.c_str());
    std::fflush(stdout);
    std::_Exit(1);
  }
  std::size_t size = 0;
  nvrtcGetCUBINSize(program, &size);
  std::string image(size, 0);
  nvrtcGetCUBIN(program, image.data());
  nvrtcDestroyProgram(&program);
  CUmodule module = nullptr;
  NEED(cuModuleLoadData(&module, image.data()));
  return module;
}

CUfunction kernel(const std::string& source, const char* name) {
  CUfunction function = nullptr;
  NEED(cuModuleGetFunction(&function, compile(source), name));
  return function;
}

void run_on_64_floats(const std::string& source, unsigned grid, unsigned block, unsigned shared) {
  use_device();
  const CUdeviceptr x = to_device(std::vector<float>(64, 1.0f));
  show_error("launch", launch(kernel(source), grid, block, shared, nullptr, x));
  show_error("wait", cuCtxSynchronize());
}

}  // namespace scenario

int main(int, char** arguments) {
  const scenario::Table tables[] = {
      scenario::bounds_scenarios(),     scenario::race_scenarios(),
      scenario::value_scenarios(),      scenario::driver_scenarios(),
#ifdef EMULATED_CUBLASLT
      scenario::product_scenarios(),
#endif
#ifdef EMULATED_NCCL
      scenario::collective_scenarios(),
#endif
  };
  for (const auto& table : tables) {
    const auto at = table.find(arguments[1]);
    if (at == table.end()) continue;
    at->second();
    std::printf("end\n");
    return 0;
  }
  std::printf("no scenario %s\n", arguments[1]);
  return 1;
}
