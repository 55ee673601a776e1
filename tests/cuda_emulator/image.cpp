#include "tests/cuda_emulator/image.h"

#include <elf.h>

#include <cstring>
#include <map>
#include <sstream>

namespace emulator {
namespace {

constexpr const char* kMagic = "CROTON-CUDA-EMULATOR-1";

const Elf64_Shdr* section(const std::string& bytes, const Elf64_Ehdr& header, int index) {
  const std::size_t at = header.e_shoff + static_cast<std::size_t>(index) * header.e_shentsize;
  if (at + sizeof(Elf64_Shdr) > bytes.size()) return nullptr;
  return reinterpret_cast<const Elf64_Shdr*>(bytes.data() + at);
}

constexpr unsigned kRegisterShift = 24;

}  // namespace

std::string to_bytes(const Image& image) {
  std::ostringstream text;
  text << kMagic << "\n"
       << image.capability << " " << image.ptx << " " << image.nvrtc_version << " "
       << image.kernels.size() << " " << image.library.size() << "\n";
  for (const KernelFacts& k : image.kernels) {
    text << k.name << " " << k.registers << " " << k.shared << " " << k.stack << "\n";
  }
  return text.str() + image.library;
}

bool from_bytes(const char* bytes, Image& image) {
  if (!bytes || std::memcmp(bytes, ELFMAG, SELFMAG) == 0) return false;
  bytes = std::strstr(bytes, kMagic);  // in PTX behind the text
  if (!bytes) return false;
  const auto line = [&bytes] {
    const char* end = std::strchr(bytes, '\n');
    std::string text(bytes, end ? end : bytes);
    bytes = end ? end + 1 : bytes;
    return text;
  };
  line();
  std::istringstream head(line());
  std::size_t kernels = 0, size = 0;
  if (!(head >> image.capability >> image.ptx >> image.nvrtc_version >> kernels >> size))
    return false;
  for (std::size_t i = 0; i < kernels; ++i) {
    std::istringstream fields(line());
    KernelFacts& k = image.kernels.emplace_back();
    if (!(fields >> k.name >> k.registers >> k.shared >> k.stack)) return false;
  }
  image.library.assign(bytes, size);
  return true;
}

std::vector<KernelFacts> read_cubin(const std::string& bytes) {
  if (bytes.size() < sizeof(Elf64_Ehdr) || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0)
    return {};
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const Elf64_Shdr* names = section(bytes, header, header.e_shstrndx);
  if (!names) return {};
  std::map<std::string, KernelFacts> kernels;
  const auto of = [&](const char* name, const char* prefix) -> KernelFacts* {
    const std::size_t length = std::strlen(prefix);
    if (std::strncmp(name, prefix, length) != 0) return nullptr;
    KernelFacts& k = kernels[name + length];
    k.name = name + length;
    return &k;
  };
  for (int i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr* s = section(bytes, header, i);
    if (!s || names->sh_offset + s->sh_name >= bytes.size()) return {};
    const char* name = bytes.data() + names->sh_offset + s->sh_name;
    if (KernelFacts* k = of(name, ".text."))
      k->registers = static_cast<int>(s->sh_info >> kRegisterShift);
    if (KernelFacts* k = of(name, ".nv.shared.")) k->shared = static_cast<int>(s->sh_size);
  }
  std::vector<KernelFacts> list;
  for (auto& [name, k] : kernels) {
    if (k.registers == 0) continue;  // reserved sections
    if (k.shared < 0) k.shared = 0;
    list.push_back(k);
  }
  return list;
}

}  // namespace emulator
