#include "frontend/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "croton/error.h"

namespace croton {
namespace {

std::atomic<unsigned> next_number{0};

/// Of a folder, so that a rename in it survives a loss of power; not every file system can.
void sync_folder(const std::filesystem::path& folder) {
  const int handle = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle < 0) return;
  fsync(handle);
  close(handle);
}

}  // namespace

WholeFile::WholeFile(std::string path, std::string where)
    : path_(std::move(path)), where_(std::move(where)) {
  if (std::error_code ignored; std::filesystem::is_directory(path_, ignored)) {
    fail("is a folder");
  }
  // Others may have left a file of that name behind.
  for (int tries = 0; file_ < 0; ++tries) {
    temporary_ = fmt::format("{}.part{}-{}", path_, getpid(), next_number++);
    file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0 && (errno != EEXIST || tries == 1000)) fail(std::strerror(errno));
  }
  there_ = true;
}

WholeFile::~WholeFile() {
  if (file_ >= 0) close(file_);
  if (there_) unlink(temporary_.c_str());
}

void WholeFile::fail(const std::string& reason) const {
  throw FileError(fmt::format("[{}] {}: {}", where_, path_, reason));
}

void WholeFile::write(const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(file_, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(std::strerror(errno));
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

void WholeFile::commit() {
  // Whoever wrote it himself may have put another file in its place.
  close(file_);
  file_ = open(temporary_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0 || fsync(file_) != 0) fail(std::strerror(errno));
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail(std::strerror(errno));
  there_ = false;
  sync_folder(std::filesystem::path(path_).parent_path());
}

}  // namespace croton
