#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "croton/array.h"

namespace croton {

/// Where the bytes of one `.npy` come from: a file or a member of an archive.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Reads exactly `bytes`, or throws a FileError.
  virtual void read(void* target, std::size_t bytes) = 0;
  /// The most bytes that can still come; nothing larger is ever allocated.
  virtual std::uint64_t remaining() const = 0;
  /// Throws a FileError about this source.
  [[noreturn]] void fail(const std::string& reason) const;

 protected:
  explicit ByteSource(std::string name) : name_(std::move(name)) {}
  std::string name_;
};

/// Reads one array.
Array read_npy(ByteSource& source);

/// The bytes before the data of such an array, padded so that the data starts at a multiple of 64.
/// A FileError about `name` for dtypes that NumPy lacks.
std::string npy_header(const Array& array, const std::string& name);

}  // namespace croton
