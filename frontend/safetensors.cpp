#include "croton/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "croton/error.h"
#include "frontend/safetensors_file.h"
#include "frontend/whole_file.h"
#include "runtime/array_access.h"

namespace croton {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kLengthBytes = 8;
/// As in the format's own library.
constexpr std::uint64_t kLongestHeader = 100'000'000;

std::string code_of(DType dtype) {
  if (is_bool(dtype)) return "BOOL";
  if (dtype == DType::bfloat16) return "BF16";
  return fmt::format("{}{}",
                     is_float(dtype)    ? 'F'
                     : is_signed(dtype) ? 'I'
                                        : 'U',
                     8 * size_of(dtype));
}

/// As JSON writes it.
std::string in_quotes(const std::string& text, const std::string& title) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw FileError(fmt::format("{}: a name is not UTF-8", title));
  }
}

using Named = std::pair<std::string, Array>;

std::string header_of(const std::vector<Named>& arrays,
                      const std::map<std::string, std::string>& metadata,
                      const std::string& title) {
  std::string text = "{";
  for (const auto& [key, value] : metadata) {
    text += text.size() == 1 ? "\"__metadata__\":{" : ",";
    text += in_quotes(key, title) + ':' + in_quotes(value, title);
  }
  if (!metadata.empty()) text += '}';
  std::uint64_t at = 0;
  for (const auto& [name, array] : arrays) {
    if (name == "__metadata__") {
      throw FileError(fmt::format("{}: '__metadata__' is not a name for an array", title));
    }
    const std::uint64_t end = at + array.nbytes();
    if (text.size() > 1) text += ',';
    text += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        in_quotes(name, title), code_of(array.dtype()),
                        fmt::join(array.shape().begin(), array.shape().end(), ","), at, end);
    at = end;
  }
  text += '}';
  // The data begins at a multiple of 8.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kLongestHeader) {
    throw FileError(fmt::format("{}: the header would have {} bytes: expected at most {}", title,
                                text.size(), kLongestHeader));
  }
  return text;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path, const std::string& where)
    : title_(fmt::format("[{}] {}", where, path)) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) fail("no such file");
  if (error) fail(error.message());
  if (!std::filesystem::is_regular_file(status)) fail("not a regular file");
  file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) fail(std::strerror(errno));
  try {
    const off_t bytes = lseek(file_, 0, SEEK_END);
    if (bytes < 0) fail(std::strerror(errno));
    const auto size = static_cast<std::uint64_t>(bytes);
    if (size < kLengthBytes) fail("too short for a safetensors file");
    std::uint64_t length = 0;
    read_at(0, &length, kLengthBytes);
    if (length > size - kLengthBytes || length > kLongestHeader) {
      fail(
          fmt::format("not a safetensors file, or cut off: it announces a header of {} bytes and "
                      "has {}",
                      length, size));
    }
    std::string header(length, '\0');
    read_at(kLengthBytes, header.data(), length);
    start_ = kLengthBytes + length;
    arrays_ = parse_safetensors_header(header, size - start_, title_);
  } catch (...) {
    close(file_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() { close(file_); }

void SafetensorsFile::fail(const std::string& reason) const {
  throw FileError(fmt::format("{}: {}", title_, reason));
}

void SafetensorsFile::read_at(std::uint64_t place, void* target, std::size_t bytes) const {
  char* out = static_cast<char*>(target);
  while (bytes > 0) {
    const ssize_t n = pread(file_, out, bytes, static_cast<off_t>(place));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(n < 0 ? std::strerror(errno) : "the file ends early");
    out += n;
    place += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
}

Array SafetensorsFile::read(const StoredArray& stored) const {
  Array result = ArrayAccess::make_host(stored.dtype, stored.shape);
  std::byte* data = ArrayAccess::impl(result)->data;
  const std::size_t bytes = stored.end - stored.begin;
  read_at(start_ + stored.begin, data, bytes);
  if (is_bool(stored.dtype)) {
    for (std::size_t i = 0; i < bytes; ++i) data[i] = std::byte{data[i] != std::byte{0}};
  }
  return result;
}

void write_safetensors(const std::string& path, const std::string& where, std::vector<Named> arrays,
                       const std::map<std::string, std::string>& metadata) {
  // Wide elements first, so that all are aligned.
  std::stable_sort(arrays.begin(), arrays.end(), [](const Named& a, const Named& b) {
    return size_of(a.second.dtype()) > size_of(b.second.dtype());
  });
  const std::string header = header_of(arrays, metadata, fmt::format("[{}] {}", where, path));
  const std::uint64_t length = header.size();
  WholeFile file(path, where);
  file.write(&length, kLengthBytes);
  file.write(header.data(), header.size());
  for (Named& named : arrays) {
    const Array values = std::exchange(named.second, Array()).to_host().contiguous();
    file.write(values.raw_data(), values.nbytes());
  }
  file.commit();
}

std::map<std::string, Array> load_safetensors(const std::string& path) {
  const SafetensorsFile file(path, "load_safetensors");
  std::map<std::string, Array> arrays;
  for (const auto& [name, stored] : file.arrays()) arrays.emplace(name, file.read(stored));
  return arrays;
}

void save_safetensors(const std::string& path, const std::map<std::string, Array>& arrays,
                      const std::map<std::string, std::string>& metadata) {
  write_safetensors(path, "save_safetensors", {arrays.begin(), arrays.end()}, metadata);
}

}  // namespace croton
