// Descriptors of the emulated cuBLASLt: attributes by number, beside a descriptor of the real
// library, which judges them (it needs no GPU for that).
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

namespace emulator {

enum class LtKind { description, layout, preference };

struct LtObject {
  LtKind kind = LtKind::description;
  std::map<int, std::vector<char>> values;
  void* real = nullptr;

  template <class T>
  T get(int attribute, T otherwise) const {
    const auto at = values.find(attribute);
    if (at != values.end() && at->second.size() == sizeof(T)) {
      std::memcpy(&otherwise, at->second.data(), sizeof(T));
    }
    return otherwise;
  }
  template <class T>
  void set(int attribute, T value) {
    const auto* bytes = reinterpret_cast<const char*>(&value);
    values[attribute].assign(bytes, bytes + sizeof(T));
  }
};

/// A matrix as its layout says.
struct LtMatrix {
  cudaDataType_t type = CUDA_R_32F;
  bool row_order = false;
  std::int64_t rows = 0, columns = 0, leading = 0, step = 0;
  int batch = 1;

  /// Elements from the first to the last of one member.
  std::int64_t extent() const;
  std::int64_t at(std::int64_t row, std::int64_t column) const {
    return row_order ? row * leading + column : column * leading + row;
  }
};

/// A product, checked.
struct LtProduct {
  std::int64_t m = 0, n = 0, k = 0;
  int batch = 1;
  bool transpose_a = false, transpose_b = false, tf32 = false, wide = false;
  int epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  LtMatrix a, b, c, d;
  const void* bias = nullptr;
  cudaDataType_t bias_type = CUDA_R_32F;
  std::int64_t bias_step = 0;
};

const LtObject* lt_object(const void* handle, LtKind kind);

/// What the descriptors say, or why cuBLASLt refuses it.
cublasStatus_t read_product(const LtObject& description, const LtObject* a, const LtObject* b,
                            const LtObject* c, const LtObject* d, LtProduct& product);

struct LtOperands {
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void* d = nullptr;
  double alpha = 1, beta = 0;
};

/// D = epilogue(alpha A B + beta C), on memory of the host.
void multiply(const LtProduct& product, const LtOperands& operands);

std::size_t lt_size(cudaDataType_t type);

}  // namespace emulator
