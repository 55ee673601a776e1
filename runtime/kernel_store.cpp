#include "runtime/kernel_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "runtime/log.h"

namespace croton {
namespace {

constexpr std::string_view kSuffix = ".kernel";
constexpr std::string_view kUnfinished = ".tmp";
constexpr std::uint64_t kMagic = 0x31304e4f544f5243;  // "CROTON01"

struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t key_bytes = 0;
  std::uint64_t object_bytes = 0;
  std::uint64_t checksum = 0;  // of key and object
};

std::uint64_t checksum(std::string_view key, std::string_view object) {
  return XXH3_64bits_withSeed(object.data(), object.size(), XXH3_64bits(key.data(), key.size()));
}

class File {
 public:
  File(const std::string& path, int flags, mode_t mode = 0600)
      : fd_(open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  bool read_all(void* target, std::size_t bytes) const {
    auto* p = static_cast<char*>(target);
    while (bytes > 0) {
      const ssize_t n = ::read(fd_, p, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      p += n;
      bytes -= static_cast<std::size_t>(n);
    }
    return true;
  }
  bool write_all(const void* source, std::size_t bytes) const {
    const auto* p = static_cast<const char*>(source);
    while (bytes > 0) {
      const ssize_t n = ::write(fd_, p, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      p += n;
      bytes -= static_cast<std::size_t>(n);
    }
    return true;
  }

 private:
  int fd_;
};

/// Names in `folder` that end in `suffix`.
std::vector<std::string> names_in(const std::string& folder, std::string_view suffix) {
  std::vector<std::string> names;
  if (DIR* dir = opendir(folder.c_str())) {
    while (const dirent* entry = readdir(dir)) {
      const std::string_view name = entry->d_name;
      if (name.ends_with(suffix)) names.emplace_back(name);
    }
    closedir(dir);
  }
  return names;
}

std::string system_reason() { return std::strerror(errno); }

}  // namespace

KernelStore::KernelStore(std::string folder, std::int64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {}

void KernelStore::give_up(const std::string& reason) {
  state_ = State::unusable;
  log_warning(fmt::format(
      "compiled kernels are not kept: the folder \"{}\" cannot be used ({}); set cache_dir to a "
      "folder of yours, or cache=off",
      folder_, reason));
}

bool KernelStore::make_folder() {
  for (std::size_t i = 1; i <= folder_.size(); ++i) {
    if (i < folder_.size() && folder_[i] != '/') continue;
    if (mkdir(folder_.substr(0, i).c_str(), 0700) != 0 && errno != EEXIST) return false;
  }
  return true;
}

bool KernelStore::usable() {
  const std::lock_guard hold(mutex_);
  if (state_ != State::untried) return state_ == State::usable;
  struct stat info {};
  if (folder_.empty()) {
    give_up("no home folder is known");
  } else if (!make_folder() || stat(folder_.c_str(), &info) != 0) {
    give_up(system_reason());
  } else if (!S_ISDIR(info.st_mode)) {
    give_up("it is a file");
  } else if (info.st_uid != geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    // What lies there is run as machine code.
    give_up("others may write to it");
  } else if (access(folder_.c_str(), W_OK | X_OK) != 0) {
    give_up(system_reason());
  } else {
    state_ = State::usable;
  }
  return state_ == State::usable;
}

std::string KernelStore::path_of(std::string_view key) const {
  const XXH128_hash_t h = XXH3_128bits(key.data(), key.size());
  return fmt::format("{}/{:016x}{:016x}{}", folder_, h.high64, h.low64, kSuffix);
}

std::optional<std::string> KernelStore::load(std::string_view key) {
  if (!usable()) return {};
  const std::string path = path_of(key);
  const File file(path, O_RDONLY);
  if (!file) return {};
  struct stat info {};
  Header header;
  std::string found, object;
  bool whole = fstat(file.fd(), &info) == 0 && file.read_all(&header, sizeof header) &&
               header.magic == kMagic && header.key_bytes == key.size() &&
               static_cast<std::uint64_t>(info.st_size) - sizeof header - header.key_bytes ==
                   header.object_bytes;
  if (whole) {
    found.resize(key.size());
    object.resize(header.object_bytes);
    whole = file.read_all(found.data(), found.size()) &&
            file.read_all(object.data(), object.size()) && found == key &&
            checksum(found, object) == header.checksum;
  }
  if (!whole) {
    ++damaged_;
    unlink(path.c_str());
    return {};
  }
  const timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
  futimens(file.fd(),
           times);  // the age that `prune` goes by; without it the entry only looks older
  return object;
}

void KernelStore::store(std::string_view key, std::string_view object) {
  if (!usable()) return;
  static std::atomic<unsigned> counter{0};
  const std::string path = path_of(key);
  const std::string unfinished = fmt::format("{}.{}.{}{}", path, getpid(), counter++, kUnfinished);
  const Header header{kMagic, key.size(), object.size(), checksum(key, object)};
  bool written = false;
  {
    const File file(unfinished, O_WRONLY | O_CREAT | O_EXCL);
    written = file && file.write_all(&header, sizeof header) &&
              file.write_all(key.data(), key.size()) &&
              file.write_all(object.data(), object.size());
  }
  if (written) written = rename(unfinished.c_str(), path.c_str()) == 0;
  if (!written) {
    const std::string reason = system_reason();
    unlink(unfinished.c_str());
    const std::lock_guard hold(mutex_);
    if (state_ == State::usable) give_up(reason);
    return;
  }
  bound(static_cast<std::int64_t>(sizeof header + key.size() + object.size()));
}

void KernelStore::bound(std::int64_t added) {
  if (max_bytes_ <= 0) return;
  {
    // Measuring the folder is slow; it cannot outgrow its bound by more than a sixteenth unseen.
    const std::lock_guard hold(mutex_);
    const bool first = since_scan_ < 0;
    since_scan_ = std::max<std::int64_t>(since_scan_, 0) + added;
    if (!first && since_scan_ < max_bytes_ / 16) return;
    since_scan_ = 0;
  }
  std::int64_t total = 0;
  for (const std::string& name : names_in(folder_, kSuffix)) {
    struct stat info {};
    if (stat((folder_ + "/" + name).c_str(), &info) == 0) total += info.st_size;
  }
  if (total > max_bytes_) prune(max_bytes_ / 8 * 7);
  // What a process left that died while it wrote.
  for (const std::string& name : names_in(folder_, kUnfinished)) {
    struct stat info {};
    const std::string path = folder_ + "/" + name;
    if (stat(path.c_str(), &info) == 0 && std::time(nullptr) - info.st_mtime > 3600) {
      unlink(path.c_str());
    }
  }
}

std::vector<StoredKernel> KernelStore::list() const {
  std::vector<StoredKernel> entries;
  for (std::string& name : names_in(folder_, kSuffix)) {
    const File file(folder_ + "/" + name, O_RDONLY);
    struct stat info {};
    if (!file || fstat(file.fd(), &info) != 0) continue;
    StoredKernel entry{std::move(name), info.st_size, info.st_mtime, {}};
    Header header;
    if (file.read_all(&header, sizeof header) && header.magic == kMagic) {
      entry.title.resize(std::min<std::uint64_t>(header.key_bytes, 200));
      if (!file.read_all(entry.title.data(), entry.title.size())) entry.title.clear();
      entry.title.resize(std::min(entry.title.find('\n'), entry.title.size()));
    }
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const StoredKernel& a, const StoredKernel& b) {
    return a.last_used != b.last_used ? a.last_used > b.last_used : a.file < b.file;
  });
  return entries;
}

int KernelStore::prune(std::int64_t bytes) {
  int deleted = 0;
  std::int64_t kept = 0;
  for (const StoredKernel& entry : list()) {
    if (kept + entry.bytes <= bytes) {
      kept += entry.bytes;
    } else if (unlink((folder_ + "/" + entry.file).c_str()) == 0) {
      ++deleted;
    }
  }
  return deleted;
}

}  // namespace croton
