#pragma once

#include <cstddef>
#include <string>

namespace croton {

/// A file that takes the place of `path` when it is complete, or never. Until then it stands beside
/// it under another name; it is removed when this ends before `commit`. Errors are FileErrors that
/// begin with `where`.
class WholeFile {
 public:
  WholeFile(std::string path, std::string where);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  /// Where it stands until `commit`, for those who write it themselves.
  const std::string& temporary() const { return temporary_; }
  void write(const void* data, std::size_t bytes);
  /// Brings all to disk and renames. After someone else wrote `temporary`, too.
  void commit();

 private:
  [[noreturn]] void fail(const std::string& reason) const;

  std::string path_, where_, temporary_;
  int file_ = -1;
  bool there_ = false;  ///< the temporary file
};

}  // namespace croton
