#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "croton/error.h"
#include "croton/numpy_io.h"
#include "runtime/npy_format.h"

namespace croton {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

class FileSource final : public ByteSource {
 public:
  explicit FileSource(const std::string& path) : ByteSource(path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (status.type() == std::filesystem::file_type::not_found) fail("no such file");
    if (error) fail(error.message());
    if (!std::filesystem::is_regular_file(status)) fail("not a regular file");
    file_.reset(std::fopen(path.c_str(), "rb"));
    if (!file_) fail(std::strerror(errno));
    remaining_ = std::filesystem::file_size(path, error);
    if (error) fail(error.message());
  }

  void read(void* target, std::size_t bytes) override {
    if (bytes > 0 && std::fread(target, 1, bytes, file_.get()) != bytes) {
      fail(std::ferror(file_.get()) ? std::strerror(errno) : "the file ends early");
    }
    remaining_ -= bytes;
  }
  std::uint64_t remaining() const override { return remaining_; }

 private:
  File file_;
  std::uint64_t remaining_ = 0;
};

}  // namespace

Array load_npy(const std::string& path) {
  FileSource source(path);
  return read_npy(source);
}

Array Array::load_npy(const std::string& path) { return croton::load_npy(path); }

void save_npy(const std::string& path, const Array& array) {
  const Array values = array.to_host().contiguous();
  const std::string header = npy_header(values, path);
  File file(std::fopen(path.c_str(), "wb"));
  const auto fail = [&] {
    throw FileError(fmt::format("[save_npy] {}: {}", path, std::strerror(errno)));
  };
  if (!file) fail();
  if (std::fwrite(header.data(), 1, header.size(), file.get()) != header.size()) fail();
  const std::size_t bytes = values.nbytes();
  if (bytes > 0 && std::fwrite(values.raw_data(), 1, bytes, file.get()) != bytes) fail();
  // Closing writes what is buffered: a full disk shows here.
  if (std::fclose(file.release()) != 0) fail();
}

}  // namespace croton
