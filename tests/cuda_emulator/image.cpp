#include "tests/cuda_emulator/image.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <sstream>

namespace emulator {
namespace {

constexpr const char* kMagic = "CROTON-CUDA-EMULATOR-1";

// The sections of a cubin.
class Sections {
 public:
  explicit Sections(const std::string& bytes) : bytes_(bytes) {
    if (bytes.size() < sizeof header_ || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0) return;
    std::memcpy(&header_, bytes.data(), sizeof header_);
    if (!names_.assign(content(header_.e_shstrndx)).empty()) count_ = header_.e_shnum;
  }

  int count() const { return count_; }

  Elf64_Shdr at(int index) const {
    Elf64_Shdr section{};
    const std::size_t from =
        header_.e_shoff + static_cast<std::size_t>(index) * header_.e_shentsize;
    if (from + sizeof section <= bytes_.size()) {
      std::memcpy(&section, bytes_.data() + from, sizeof section);
    }
    return section;
  }

  std::string name(int index) const { return text(names_, at(index).sh_name); }

  std::string content(int index) const {
    const Elf64_Shdr section = at(index);
    if (section.sh_offset > bytes_.size()) return "";
    return bytes_.substr(section.sh_offset, section.sh_size);
  }

  static std::string text(const std::string& table, std::size_t at) {
    return at < table.size() ? table.c_str() + at : "";
  }

 private:
  const std::string& bytes_;
  Elf64_Ehdr header_{};
  std::string names_;
  int count_ = 0;
};

// An entry of .nv.info: a format, an attribute, and for this format the size of what follows.
constexpr unsigned char kSizedFormat = 4, kRegisterCount = 0x2f;
struct InfoEntry {
  std::uint8_t format, attribute;
  std::uint16_t size;
};

// Registers by the index of the kernel's symbol.
std::map<std::uint32_t, std::uint32_t> registers_of(const std::string& info) {
  std::map<std::uint32_t, std::uint32_t> registers;
  InfoEntry entry;
  for (std::size_t at = 0; at + sizeof entry <= info.size(); at += sizeof entry) {
    std::memcpy(&entry, info.data() + at, sizeof entry);
    if (entry.format != kSizedFormat) continue;
    std::uint32_t pair[2];
    if (entry.attribute == kRegisterCount && entry.size == sizeof pair &&
        at + sizeof entry + sizeof pair <= info.size()) {
      std::memcpy(pair, info.data() + at + sizeof entry, sizeof pair);
      registers[pair[0]] = pair[1];
    }
    at += entry.size;
  }
  return registers;
}

// The first bytes of a block's shared memory, which the driver keeps for itself. The sections of
// kernels count them where there is a section of their own for them.
constexpr std::uint64_t kReservedShared = 1024;

}  // namespace

std::string to_bytes(const Image& image) {
  std::ostringstream text;
  text << kMagic << "\n"
       << image.capability << " " << image.ptx << " " << image.nvrtc_version << " "
       << image.kernels.size() << " " << image.library.size() << "\n";
  for (const KernelFacts& k : image.kernels) {
    text << k.name << " " << k.registers << " " << k.shared << "\n";
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
    if (!(fields >> k.name >> k.registers >> k.shared)) return false;
  }
  image.library.assign(bytes, size);
  return true;
}

std::vector<KernelFacts> read_cubin(const std::string& bytes) {
  const Sections sections(bytes);
  std::map<std::string, std::uint64_t> shared;
  std::map<std::uint32_t, std::uint32_t> registers;
  std::string symbols, names;
  std::uint64_t reserved = 0;
  for (int i = 0; i < sections.count(); ++i) {
    const std::string name = sections.name(i), prefix = ".nv.shared.";
    if (name == ".nv.info") registers = registers_of(sections.content(i));
    if (name == ".symtab") {
      symbols = sections.content(i);
      names = sections.content(static_cast<int>(sections.at(i).sh_link));
    }
    if (name.starts_with(".nv.shared.reserved.")) {
      reserved = kReservedShared;
    } else if (name.starts_with(prefix)) {
      shared[name.substr(prefix.size())] = sections.at(i).sh_size;
    }
  }
  std::vector<KernelFacts> kernels;
  for (const auto& [index, count] : registers) {
    Elf64_Sym symbol;
    if ((index + std::size_t{1}) * sizeof symbol > symbols.size()) continue;
    std::memcpy(&symbol, symbols.data() + index * sizeof symbol, sizeof symbol);
    if (ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL) continue;  // no kernel but a function
    const std::string name = Sections::text(names, symbol.st_name);
    const std::uint64_t declared = shared.contains(name) ? shared[name] : 0;
    kernels.push_back(
        {name, static_cast<int>(count), static_cast<int>(declared - std::min(declared, reserved))});
  }
  return kernels;
}

}  // namespace emulator
