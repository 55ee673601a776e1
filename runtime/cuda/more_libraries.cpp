#include "runtime/cuda/more_libraries.h"

#include <fmt/format.h>

#include <array>

#include "runtime/cuda/cublaslt.h"

namespace croton::cuda {
namespace {

template <class Symbols, std::size_t n>
Opened<Symbols>* open(const char* title, std::span<const std::string_view> sonames,
                      const std::array<Symbol, n>& symbols) {
  Library library(title, sonames, search_from_environment());
  Symbols table{};
  if (library) {
    const std::string missing = library.bind(symbols, &table);
    if (!missing.empty()) {
      library.reject(fmt::format("{} lacks {}", library.report().path, missing));
    }
  }
  return new Opened<Symbols>(std::move(library), table);
}

template <class Symbols>
void add_version(Opened<Symbols>& opened, int number, int major, int minor) {
  opened.set_version(
      fmt::format("{}.{}.{}", number / major, number % major / minor, number % minor));
}

constexpr std::string_view kLtSonames[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                           "libcublasLt.so.11"};
constexpr std::array kLtSymbols = {
    Symbol{"cublasLtGetVersion", &bind_symbol<&LtSymbols::version>},
    Symbol{"cublasLtGetStatusString", &bind_symbol<&LtSymbols::status_string>},
    Symbol{"cublasLtCreate", &bind_symbol<&LtSymbols::create>},
    Symbol{"cublasLtDestroy", &bind_symbol<&LtSymbols::destroy>},
    Symbol{"cublasLtMatmul", &bind_symbol<&LtSymbols::matmul>},
    Symbol{"cublasLtMatmulAlgoGetHeuristic", &bind_symbol<&LtSymbols::heuristic>},
    Symbol{"cublasLtMatmulDescCreate", &bind_symbol<&LtSymbols::description_create>},
    Symbol{"cublasLtMatmulDescDestroy", &bind_symbol<&LtSymbols::description_destroy>},
    Symbol{"cublasLtMatmulDescSetAttribute", &bind_symbol<&LtSymbols::description_set>},
    Symbol{"cublasLtMatrixLayoutCreate", &bind_symbol<&LtSymbols::layout_create>},
    Symbol{"cublasLtMatrixLayoutDestroy", &bind_symbol<&LtSymbols::layout_destroy>},
    Symbol{"cublasLtMatrixLayoutSetAttribute", &bind_symbol<&LtSymbols::layout_set>},
    Symbol{"cublasLtMatmulPreferenceCreate", &bind_symbol<&LtSymbols::preference_create>},
    Symbol{"cublasLtMatmulPreferenceDestroy", &bind_symbol<&LtSymbols::preference_destroy>},
    Symbol{"cublasLtMatmulPreferenceSetAttribute", &bind_symbol<&LtSymbols::preference_set>},
};

constexpr std::string_view kNcclSonames[] = {"libnccl.so.2"};
constexpr std::array kNcclSymbols = {
    Symbol{"ncclGetVersion", &bind_symbol<&NcclSymbols::version>},
    Symbol{"ncclGetErrorString", &bind_symbol<&NcclSymbols::error_string>},
    Symbol{"ncclGetUniqueId", &bind_symbol<&NcclSymbols::unique_id>},
    Symbol{"ncclCommInitRank", &bind_symbol<&NcclSymbols::comm_init_rank>},
    Symbol{"ncclCommDestroy", &bind_symbol<&NcclSymbols::comm_destroy>},
};

// CUDA 13 has NVTX as headers and this; before it was a library of its own.
constexpr std::string_view kNvtxSonames[] = {"libnvtx3interop.so.1", "libnvToolsExt.so.1"};
constexpr std::array kNvtxSymbols = {
    Symbol{"nvtxRangePushA", &bind_symbol<&NvtxSymbols::push>},
    Symbol{"nvtxRangePop", &bind_symbol<&NvtxSymbols::pop>},
};

}  // namespace

const Opened<LtSymbols>& cublaslt() {
  static const Opened<LtSymbols>* const opened = [] {
    auto* lt = open<LtSymbols>("cuBLASLt", kLtSonames, kLtSymbols);
    if (lt->usable()) {
      const auto version = static_cast<int>((*lt)->version());
      // 130001 is 13.0.1; before version 13 it was 120903 for 12.9.3 as well.
      add_version(*lt, version, 10000, 100);
    }
    return lt;
  }();
  return *opened;
}

const Opened<NcclSymbols>& nccl() {
  static const Opened<NcclSymbols>* const opened = [] {
    auto* library = open<NcclSymbols>("NCCL", kNcclSonames, kNcclSymbols);
    int version = 0;
    if (library->usable() && (*library)->version(&version) == 0) {
      add_version(*library, version, 10000, 100);
    }
    return library;
  }();
  return *opened;
}

const Opened<NvtxSymbols>& nvtx() {
  static const Opened<NvtxSymbols>* const opened =
      open<NvtxSymbols>("NVTX", kNvtxSonames, kNvtxSymbols);
  return *opened;
}

}  // namespace croton::cuda
