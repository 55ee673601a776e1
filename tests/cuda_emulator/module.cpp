// The driver API: modules and functions.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/cuda_emulator/driver.h"
#include "tests/cuda_emulator/image.h"
#include "tests/temporary_folder.h"

using namespace emulator;

namespace {

/// A new file for a library. All go at the end of the process, so that debuggers and addr2line find
/// them until then.
std::string next_file() {
  static const croton::test::TemporaryFolder folder;
  static int count = 0;
  return folder / ("kernels-" + std::to_string(count++) + ".so");
}

struct Segments {
  std::uintptr_t begin = 0, end = 0;  // of all that is loaded
  std::uint32_t shared = 0;           // thread-local, that is, __shared__
};

Segments segments_of(void* library) {
  struct Search {
    std::uintptr_t base;
    Segments found;
  } search{};
  link_map* map = nullptr;
  dlinfo(library, RTLD_DI_LINKMAP, &map);
  search.base = map->l_addr;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        if (info->dlpi_addr != s.base) return 0;
        s.found.begin = s.base;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& p = info->dlpi_phdr[i];
          if (p.p_type == PT_LOAD)
            s.found.end = std::max(s.found.end, s.base + p.p_vaddr + p.p_memsz);
          if (p.p_type == PT_TLS) s.found.shared = static_cast<std::uint32_t>(p.p_memsz);
        }
        return 1;
      },
      &search);
  return search.found;
}

CUresult check_target(const Image& image, int device) {
  const int capability = driver().devices[static_cast<std::size_t>(device)].capability;
  int version = 0;
  cuDriverGetVersion(&version);
  if (image.ptx) {
    if (image.nvrtc_version > version) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    if (image.capability <= capability) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_PTX,
                format("cuModuleLoadData: PTX for compute_%d on a device of %d", image.capability,
                       capability));
  }
  // A cubin runs on its own capability and on later minor ones.
  if (image.capability / 10 == capability / 10 && image.capability <= capability)
    return CUDA_SUCCESS;
  return fail(CUDA_ERROR_NO_BINARY_FOR_GPU,
              format("cuModuleLoadData: a cubin for sm_%d on a device of %d", image.capability,
                     capability));
}

void add_functions(CUmodule module, const Kernel* kernels, const Image& image,
                   std::uint32_t shared) {
  for (const Kernel* kernel = kernels; kernel->address; ++kernel) {
    auto function = std::make_unique<CUfunc_st>();
    Dl_info info;
    if (!dladdr(kernel->address, &info) || !info.dli_sname) continue;
    function->module = module;
    function->kernel = kernel;
    function->name = info.dli_sname;
    function->static_shared = function->module_shared = shared;
    for (const KernelFacts& facts : image.kernels) {
      if (facts.name != function->name) continue;
      if (facts.registers) function->registers = facts.registers;
      if (facts.shared >= 0) function->static_shared = static_cast<std::uint32_t>(facts.shared);
    }
    driver().handles.insert(function.get());
    module->functions.push_back(std::move(function));
  }
}

CUresult load(CUmodule* module, const void* bytes) {
  if (!module || !bytes) return CUDA_ERROR_INVALID_VALUE;
  if (const int code = injected_failure("module")) return static_cast<CUresult>(code);
  Image image;
  if (!from_bytes(static_cast<const char*>(bytes), image)) {
    return fail(
        CUDA_ERROR_INVALID_IMAGE,
        "cuModuleLoadData: no image of the emulated NVRTC; machine code of GPUs cannot run here");
  }
  CUcontext context = current_context();
  if (const CUresult wrong = check_target(image, context->device)) return wrong;
  const std::string path = next_file();
  std::ofstream(path, std::ios::binary) << image.library;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return fail(CUDA_ERROR_INVALID_IMAGE, std::string("cuModuleLoadData: ") + dlerror());
  const auto attach =
      reinterpret_cast<std::uint32_t (*)(const Tables*)>(dlsym(library, "emulator_attach"));
  const auto* kernels = static_cast<const Kernel*>(dlsym(library, "emulator_kernels"));
  if (!attach || !kernels) return CUDA_ERROR_INVALID_IMAGE;
  if (attach(&machine().tables()) != kAbiVersion) {
    dlclose(library);
    return fail(CUDA_ERROR_INVALID_IMAGE,
                "cuModuleLoadData: an image of another version of the emulator: empty the cache of "
                "compiled kernels that it comes from");
  }
  const Segments segments = segments_of(library);
  memory().modules[segments.begin] = segments.end;
  *module = new CUmod_st;
  (*module)->context = context;
  (*module)->library = library;
  (*module)->data = segments.begin;
  driver().handles.insert(*module);
  add_functions(*module, kernels, image, segments.shared);
  return CUDA_SUCCESS;
}

}  // namespace

EMULATOR_API CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  const Call call(Call::context);
  return call.error ? call.error : load(module, image);
}

EMULATOR_API CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned,
                                         CUjit_option*, void**) {
  const Call call(Call::context);
  return call.error ? call.error : load(module, image);
}

EMULATOR_API CUresult cuModuleUnload(CUmodule module) {
  const Call call(Call::context);
  if (call.error) return call.error;
  if (!driver().alive(module)) return CUDA_ERROR_INVALID_HANDLE;
  finish_all();
  driver().handles.erase(module);
  for (const auto& function : module->functions) driver().handles.erase(function.get());
  memory().modules.erase(module->data);
  dlclose(module->library);
  delete module;
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const Call call(Call::context);
  if (call.error) return call.error;
  if (!driver().alive(module)) return CUDA_ERROR_INVALID_HANDLE;
  if (!function || !name) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& candidate : module->functions) {
    if (candidate->name == name) return *function = candidate.get(), CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

EMULATOR_API CUresult cuModuleGetGlobal(CUdeviceptr* pointer, std::size_t* bytes, CUmodule module,
                                        const char* name) {
  const Call call(Call::context);
  if (call.error) return call.error;
  if (!driver().alive(module)) return CUDA_ERROR_INVALID_HANDLE;
  void* address = name ? dlsym(module->library, name) : nullptr;
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  if (!address ||
      !dladdr1(address, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)),
               RTLD_DL_SYMENT) ||
      !symbol || ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT) {
    return CUDA_ERROR_NOT_FOUND;
  }
  if (pointer) *pointer = reinterpret_cast<CUdeviceptr>(address);
  if (bytes) *bytes = symbol->st_size;
  return CUDA_SUCCESS;
}
