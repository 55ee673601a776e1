#include "runtime/cpu/llvm/object_loader.h"

#include <dlfcn.h>
#include <llvm/ExecutionEngine/JITSymbol.h>
#include <llvm/ExecutionEngine/RTDyldMemoryManager.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <unordered_map>

namespace croton {
namespace {

std::uint64_t process_symbol(const std::string& name) {
  // A program that opened libcroton with RTLD_LOCAL has the math library out of global sight.
  static void* const math = dlopen("libm.so.6", RTLD_LAZY | RTLD_LOCAL);
  static void* const runtime = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_LOCAL);
  void* address = dlsym(RTLD_DEFAULT, name.c_str());
  if (!address && math) address = dlsym(math, name.c_str());
  if (!address && runtime) address = dlsym(runtime, name.c_str());
  return reinterpret_cast<std::uint64_t>(address);
}

/// One mapping a module: code and constants lie within reach of 32-bit displacements, and all of
/// it goes away at once.
class Memory final : public llvm::RTDyldMemoryManager {
 public:
  ~Memory() override {
    if (start_) munmap(start_, size_);
  }

  bool needsToReserveAllocationSpace() override { return true; }

  void reserveAllocationSpace(uintptr_t code, llvm::Align, uintptr_t constants, llvm::Align,
                              uintptr_t data, llvm::Align) override {
    auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    auto round = [page](std::size_t bytes) { return (bytes + 64 + page - 1) / page * page; };
    size_ = round(code) + round(constants) + round(data);
    void* start = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return;
    start_ = static_cast<std::uint8_t*>(start);
    code_ = {start_, start_ + round(code)};
    constants_ = {code_.end, code_.end + round(constants)};
    data_ = {constants_.end, start_ + size_};
    begin_code_ = code_.next;
    begin_constants_ = constants_.next;
  }

  std::uint8_t* allocateCodeSection(uintptr_t size, unsigned alignment, unsigned,
                                    llvm::StringRef) override {
    return code_.take(size, alignment);
  }

  std::uint8_t* allocateDataSection(uintptr_t size, unsigned alignment, unsigned, llvm::StringRef,
                                    bool constant) override {
    return (constant ? constants_ : data_).take(size, alignment);
  }

  bool finalizeMemory(std::string* error) override {
    auto protect = [](std::uint8_t* begin, std::uint8_t* end, int rights) {
      return begin == end || mprotect(begin, static_cast<std::size_t>(end - begin), rights) == 0;
    };
    bool done = protect(begin_code_, code_.end, PROT_READ | PROT_EXEC) &&
                protect(begin_constants_, constants_.end, PROT_READ);
    if (!done && error) *error = "the system refuses executable memory";
    return !done;
  }

  // Kernels never throw, so nobody unwinds through them.
  void registerEHFrames(std::uint8_t*, std::uint64_t, std::size_t) override {}
  void deregisterEHFrames() override {}

  llvm::JITSymbol findSymbol(const std::string& name) override {
    std::uint64_t address = process_symbol(name);
    if (!address) return nullptr;
    return {address, llvm::JITSymbolFlags::Exported};
  }

 private:
  struct Range {
    std::uint8_t* next = nullptr;
    std::uint8_t* end = nullptr;

    std::uint8_t* take(std::size_t size, std::size_t alignment) {
      auto at = (reinterpret_cast<std::uintptr_t>(next) + alignment - 1) / alignment * alignment;
      auto* start = reinterpret_cast<std::uint8_t*>(at);
      if (!next || start + size > end) return nullptr;
      next = start + size;
      return start;
    }
  };

  std::uint8_t* start_ = nullptr;
  std::size_t size_ = 0;
  Range code_, constants_, data_;
  std::uint8_t* begin_code_ = nullptr;
  std::uint8_t* begin_constants_ = nullptr;
};

class LoadedModule {
 public:
  bool load(std::string_view bytes, std::string& error) {
    llvm::MemoryBufferRef buffer(llvm::StringRef(bytes.data(), bytes.size()), "kernels");
    auto object = llvm::object::ObjectFile::createObjectFile(buffer);
    if (!object) {
      error = llvm::toString(object.takeError());
      return false;
    }
    llvm::RuntimeDyld linker(memory_, memory_);
    linker.loadObject(**object);
    linker.resolveRelocations();
    if (linker.hasError()) {
      error = linker.getErrorString().str();
      return false;
    }
    for (const auto& [name, symbol] : linker.getSymbolTable()) {
      kernels_.emplace(name.str(), reinterpret_cast<CpuKernel>(symbol.getAddress()));
    }
    return !memory_.finalizeMemory(&error);
  }

  CpuKernel kernel(const std::string& name) const {
    auto found = kernels_.find(name);
    return found == kernels_.end() ? nullptr : found->second;
  }

 private:
  Memory memory_;
  std::unordered_map<std::string, CpuKernel> kernels_;
};

}  // namespace

void* load_object(std::string_view object, std::string& error) {
  auto module = std::make_unique<LoadedModule>();
  return module->load(object, error) ? module.release() : nullptr;
}

CpuKernel find_kernel(void* module, const std::string& name) {
  return static_cast<const LoadedModule*>(module)->kernel(name);
}

void unload_object(void* module) { delete static_cast<LoadedModule*>(module); }

}  // namespace croton
