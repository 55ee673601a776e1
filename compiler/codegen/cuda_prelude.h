// The part of a CUDA program that its kernels share: type names and device functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "croton/dtype.h"

namespace croton::codegen {

/// The name that a program gives to a dtype: f32, i64 ... float16 and bfloat16 are their bits.
std::string_view cuda_type(DType dtype);

/// Collects the device functions that a program uses.
class Prelude {
 public:
  Prelude();

  /// Marks a device function, and those it calls, as used; gives back its name.
  std::string_view use(std::string_view name);

  /// Type names and the used functions.
  std::string text() const;

 private:
  std::vector<bool> used_;
};

}  // namespace croton::codegen
