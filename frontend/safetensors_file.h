// The safetensors format: 8 bytes that hold the length of the header, the header (JSON: for each
// array dtype, shape, and where its bytes begin and end behind the header), the bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "croton/array.h"

namespace croton {

/// An array as a header has it.
struct StoredArray {
  DType dtype = DType::float32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  ///< in the bytes behind the header
};

/// The arrays of a header; checks all that can be known without their bytes, of which there are
/// `bytes`. FileError that begins with `title`.
std::map<std::string, StoredArray> parse_safetensors_header(std::string_view json,
                                                            std::uint64_t bytes,
                                                            const std::string& title);

/// A file whose header has been read and checked.
class SafetensorsFile {
 public:
  SafetensorsFile(const std::string& path, const std::string& where);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::map<std::string, StoredArray>& arrays() const { return arrays_; }
  Array read(const StoredArray& stored) const;

 private:
  [[noreturn]] void fail(const std::string& reason) const;
  void read_at(std::uint64_t place, void* target, std::size_t bytes) const;

  std::string title_;
  int file_ = -1;
  std::uint64_t start_ = 0;  ///< of the bytes behind the header
  std::map<std::string, StoredArray> arrays_;
};

/// Writes a file whole. Arrays may live anywhere; one after the other is copied to the host.
void write_safetensors(const std::string& path, const std::string& where,
                       std::vector<std::pair<std::string, Array>> arrays,
                       const std::map<std::string, std::string>& metadata);

}  // namespace croton
