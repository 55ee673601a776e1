// Compiles a text of kernels and runs launches of a file:
//   run_kernels SOURCE INPUT OUTPUT OPTION...
// The input holds int64 numbers: the count of kernels, for each the length of its name and the
// name; the count of launches, for each: kernel, blocks of the grid in x and in y, threads of a
// block in x and in y, bytes of dynamic shared memory, count of buffers and for each its bytes and
// data, count of numbers and the numbers, whether there are error words. The output holds, for each
// launch, the buffers and the three error words.
#include <cuda.h>
#include <nvrtc.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "run_kernels: %s\n", what.c_str());
  std::_Exit(1);
}

void need(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) fail(std::string(what) + ": error " + std::to_string(result));
}

class Input {
 public:
  explicit Input(const char* path) : file_(path, std::ios::binary) {}
  std::int64_t number() {
    std::int64_t value = 0;
    bytes(&value, sizeof value);
    return value;
  }
  void bytes(void* into, std::size_t count) {
    if (!file_.read(static_cast<char*>(into), static_cast<std::streamsize>(count)))
      fail("the input ends early");
  }

 private:
  std::ifstream file_;
};

CUmodule compile(const char* path, std::vector<const char*> options) {
  std::ifstream file(path);
  const std::string source((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
  nvrtcProgram program = nullptr;
  options.push_back("--gpu-architecture=sm_90");
  nvrtcCreateProgram(&program, source.c_str(), "kernels.cu", 0, nullptr, nullptr);
  const nvrtcResult result =
      nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  std::size_t size = 0;
  if (result != NVRTC_SUCCESS) {
    nvrtcGetProgramLogSize(program, &size);
    std::string log(size, 0);
    nvrtcGetProgramLog(program, log.data());
    fail(log);
  }
  nvrtcGetCUBINSize(program, &size);
  std::string image(size, 0);
  nvrtcGetCUBIN(program, image.data());
  nvrtcDestroyProgram(&program);
  CUmodule module = nullptr;
  need(cuModuleLoadData(&module, image.data()), "loading the module");
  return module;
}

CUdeviceptr to_device(const std::vector<char>& data) {
  if (data.empty()) return 0;  // what nobody may touch
  CUdeviceptr pointer = 0;
  need(cuMemAlloc(&pointer, data.size()), "memory");
  need(cuMemcpyHtoD(pointer, data.data(), data.size()), "a copy");
  return pointer;
}

void give_back(CUdeviceptr pointer, std::vector<char> data, std::ofstream& out) {
  if (pointer == 0) return;
  need(cuMemcpyDtoH(data.data(), pointer, data.size()), "a launch");
  need(cuMemFree(pointer), "freeing");
  out.write(data.data(), static_cast<std::streamsize>(data.size()));
}

void launch(Input& in, std::ofstream& out, const std::vector<CUfunction>& kernels) {
  const CUfunction kernel = kernels.at(static_cast<std::size_t>(in.number()));
  const auto grid = static_cast<unsigned>(in.number()), rows = static_cast<unsigned>(in.number());
  const auto x = static_cast<unsigned>(in.number()), y = static_cast<unsigned>(in.number());
  const auto shared = static_cast<unsigned>(in.number());
  std::vector<std::vector<char>> buffers(static_cast<std::size_t>(in.number()));
  std::vector<CUdeviceptr> pointers;
  for (auto& buffer : buffers) {
    buffer.resize(static_cast<std::size_t>(in.number()));
    in.bytes(buffer.data(), buffer.size());
    pointers.push_back(to_device(buffer));
  }
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(in.number()));
  for (std::int64_t& number : numbers) number = in.number();
  const std::vector<char> no_error(3 * sizeof(std::int64_t));
  CUdeviceptr error = to_device(no_error);
  std::vector<void*> arguments;
  for (CUdeviceptr& pointer : pointers) arguments.push_back(&pointer);
  for (std::int64_t& number : numbers) arguments.push_back(&number);
  if (in.number() != 0) arguments.push_back(&error);
  arguments.push_back(nullptr);
  if (shared > 48 * 1024) {
    need(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                            static_cast<int>(shared)),
         "the limit of shared memory");
  }
  if (grid > 0) {
    need(cuLaunchKernel(kernel, grid, rows, 1, x, y, 1, shared, nullptr, arguments.data(), nullptr),
         "launching");
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) give_back(pointers[i], buffers[i], out);
  give_back(error, no_error, out);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) fail("usage: run_kernels SOURCE INPUT OUTPUT OPTION...");
  CUcontext context = nullptr;
  need(cuInit(0), "cuInit");
  need(cuDevicePrimaryCtxRetain(&context, 0), "the context");
  need(cuCtxSetCurrent(context), "the context");
  const CUmodule module = compile(arguments[1], {arguments + 4, arguments + count});
  Input in(arguments[2]);
  std::ofstream out(arguments[3], std::ios::binary);
  std::vector<CUfunction> kernels(static_cast<std::size_t>(in.number()));
  for (CUfunction& kernel : kernels) {
    std::string name(static_cast<std::size_t>(in.number()), 0);
    in.bytes(name.data(), name.size());
    need(cuModuleGetFunction(&kernel, module, name.c_str()), name.c_str());
  }
  for (std::int64_t left = in.number(); left > 0; --left) launch(in, out, kernels);
  return out.flush() ? 0 : 1;
}
