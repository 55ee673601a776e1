// What the emulated NVRTC gives out as cubin or PTX: a text header, then a host library.
#pragma once

#include <string>
#include <vector>

namespace emulator {

struct KernelFacts {
  std::string name;
  int registers = 0;  // from the real compiler; 0: unknown
  int shared = -1;    // declared bytes, from the real compiler; -1: unknown
};

struct Image {
  int capability = 0;
  bool ptx = false;
  int nvrtc_version = 0;  // 13000
  std::vector<KernelFacts> kernels;
  std::string library;
};

std::string to_bytes(const Image& image);

/// False when the bytes are none of ours.
bool from_bytes(const char* bytes, Image& image);

/// What a real cubin says about its kernels. `kFactsVersion` counts changes of what is read, for
/// results that are kept.
constexpr int kFactsVersion = 2;
std::vector<KernelFacts> read_cubin(const std::string& bytes);

}  // namespace emulator
