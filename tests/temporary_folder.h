// A folder for the files of a test or a benchmark.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace croton::test {

/// A new empty folder, removed with all that is in it by the process that made it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    // mkdtemp wants six of this letter at the end and replaces them.
    path_ = (std::filesystem::temp_directory_path() / ("croton-" + std::string(6, 'X'))).string();
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder: " + path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (owner_ == getpid()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Writes a file into it; its path.
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }
  /// The path of a file in it.
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  const pid_t owner_ = getpid();
};

}  // namespace croton::test
