// Compiled kernels on disk: a folder of files, one for each key.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace croton {

struct StoredKernel {
  std::string file;  ///< name inside the folder
  std::int64_t bytes = 0;
  std::int64_t last_used = 0;  ///< seconds since the epoch
  std::string title;           ///< first line of its key: device and compiler; empty when damaged
};

/// Any number of processes may use one folder at once. An entry is written under another name and
/// renamed, holds its whole key and a checksum, and is dropped when either does not match. A folder
/// that cannot be used gives one warning, and nothing is kept.
class KernelStore {
 public:
  /// `max_bytes` bounds the folder, least recently used entries go first; 0 sets no bound.
  KernelStore(std::string folder, std::int64_t max_bytes);

  std::optional<std::string> load(std::string_view key);
  void store(std::string_view key, std::string_view object);

  /// The entries, latest used first.
  std::vector<StoredKernel> list() const;
  /// Deletes the least recently used entries until at most `bytes` are left; gives how many.
  int prune(std::int64_t bytes);
  /// Deletes all entries; gives how many.
  int clear() { return prune(-1); }

  /// Held over a fork.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

  const std::string& folder() const { return folder_; }
  /// Entries found damaged or under another key's name, so far.
  int damaged() const { return damaged_; }

 private:
  bool usable();
  bool make_folder();
  void give_up(const std::string& reason);
  std::string path_of(std::string_view key) const;
  void bound(std::int64_t added);

  const std::string folder_;
  const std::int64_t max_bytes_;
  std::mutex mutex_;
  enum class State { untried, usable, unusable } state_ = State::untried;
  std::int64_t since_scan_ = -1;  ///< bytes written since the folder was measured; -1: never
  std::atomic<int> damaged_{0};
};

}  // namespace croton
