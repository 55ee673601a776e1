// NVRTC: CUDA C++ text to machine code, without a GPU. Opened at run time.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cuda/library.h"

namespace croton::cuda {

/// What to compile for: compute capability 9.0 is 90.
struct NvrtcTarget {
  int capability = 0;
  bool cubin = true;  ///< else PTX, which the driver compiles for its device

  /// "sm_90" or "compute_90".
  std::string text() const;
  bool operator==(const NvrtcTarget&) const = default;
};

/// What came out: a cubin or PTX that the driver loads, and what the compiler had to say.
struct NvrtcModule {
  std::string image;
  std::string log;
};

/// The functions of NVRTC that are used. Prototypes as in nvrtc.h of CUDA 11 and later, with the
/// program and the result as plain types.
struct NvrtcSymbols {
  using Program = void*;
  int (*version)(int* major, int* minor) = nullptr;
  int (*arch_count)(int* count) = nullptr;
  int (*arch_list)(int* list) = nullptr;
  const char* (*error_string)(int result) = nullptr;
  int (*create)(Program*, const char* source, const char* name, int headers,
                const char* const* header_texts, const char* const* header_names) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int count, const char* const* options) = nullptr;
  int (*log_size)(Program, std::size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*cubin_size)(Program, std::size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*ptx_size)(Program, std::size_t*) = nullptr;
  int (*ptx)(Program, char*) = nullptr;
};

/// The options under which emitted text means what the kernel language says: no contraction, no
/// flush to zero, IEEE division and square root.
std::span<const std::string_view> nvrtc_options();

/// An open NVRTC. Its functions may be called from several threads at once.
class Nvrtc {
 public:
  /// Looks for the library. A missing one is no error here: ask `usable()`.
  explicit Nvrtc(const LibrarySearch& search = {});

  bool usable() const { return library_.report().usable; }
  /// DeviceError with the reason unless it is.
  void require_usable() const;

  /// For `croton devices`: where it was found and in which version, or why it is not usable.
  const LibraryReport& report() const { return library_.report(); }

  /// "13.0"; part of the key under which modules are cached.
  const std::string& version() const { return library_.report().version; }

  /// The compute capabilities that it compiles for, ascending.
  const std::vector<int>& capabilities() const { return capabilities_; }

  /// How to compile for a device: to a cubin where this version knows its capability, else to PTX
  /// for the newest one it knows, for the driver to compile. DeviceError where it knows none.
  NvrtcTarget target_for(int capability) const;

  /// What each compilation gets besides its options: this version can leave out the parts of CUDA
  /// that no kernel uses, and more. Part of the key under which modules are cached.
  std::span<const std::string_view> quick_options() const;

  /// Compiles a program. DeviceError where the library is missing or does not know the target;
  /// InternalError with the compiler's log and the numbered source where the text is wrong.
  NvrtcModule compile(const std::string& source, const std::string& name, NvrtcTarget target,
                      std::span<const std::string_view> options) const;

 private:
  void bind();

  Library library_;
  NvrtcSymbols symbols_;
  std::vector<int> capabilities_;
  bool quick_ = false;  // whether there are quick_options
};

/// The NVRTC of the process, opened by the first call, with the places that the environment names.
const Nvrtc& nvrtc();

}  // namespace croton::cuda
