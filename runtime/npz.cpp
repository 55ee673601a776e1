#include <fmt/format.h>
#include <zip.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <vector>

#include "croton/error.h"
#include "croton/numpy_io.h"
#include "runtime/npy_format.h"

namespace croton {
namespace {

constexpr std::string_view kSuffix = ".npy";

struct DiscardArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, DiscardArchive>;

struct CloseMember {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

Archive open_archive(const std::string& path, int flags, const char* where) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), flags, &code));
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    throw FileError(fmt::format("[{}] {}: {}", where, path, reason));
  }
  return archive;
}

class MemberSource final : public ByteSource {
 public:
  /// `left` is what the members before it left of the archive's size.
  MemberSource(zip_t* archive, const zip_stat_t& stat, const std::string& path, std::uint64_t& left)
      : ByteSource(fmt::format("{}, member '{}'", path, stat.name)),
        file_(zip_fopen_index(archive, stat.index, 0)) {
    if (!file_) fail(zip_strerror(archive));
    if ((stat.valid & ZIP_STAT_SIZE) == 0 || (stat.valid & ZIP_STAT_COMP_SIZE) == 0) {
      fail("the archive does not tell its size");
    }
    // The size is only a claim; deflate cannot shrink by more than about 1032.
    constexpr std::uint64_t kMostDeflate = 1040;
    remaining_ = stat.size;
    if (stat.comp_size > left || stat.size / kMostDeflate > stat.comp_size) {
      fail("the archive claims an impossible size");
    }
    left -= stat.comp_size;
  }

  void read(void* target, std::size_t bytes) override {
    char* out = static_cast<char*>(target);
    for (std::size_t left = bytes; left > 0;) {
      const zip_int64_t n = zip_fread(file_.get(), out, left);
      if (n < 0) fail(zip_file_strerror(file_.get()));
      if (n == 0) fail("the data ends early");
      out += n;
      left -= static_cast<std::size_t>(n);
    }
    remaining_ -= bytes;
  }
  std::uint64_t remaining() const override { return remaining_; }

  /// Reads to the end, where libzip compares the checksum.
  void finish() {
    std::array<char, 4096> rest;
    zip_int64_t n;
    while ((n = zip_fread(file_.get(), rest.data(), rest.size())) > 0) {
    }
    if (n < 0) fail(zip_file_strerror(file_.get()));
  }

 private:
  std::unique_ptr<zip_file_t, CloseMember> file_;
  std::uint64_t remaining_ = 0;
};

/// What of an array goes into one member; must live until the archive is closed.
struct Member {
  Array values;
  std::string header;
  std::array<zip_buffer_fragment_t, 2> fragments;
};

void add_member(zip_t* archive, const std::string& name, Member& m, const std::string& path,
                bool compressed) {
  m.fragments[0] = {reinterpret_cast<zip_uint8_t*>(m.header.data()), m.header.size()};
  m.fragments[1] = {const_cast<zip_uint8_t*>(static_cast<const zip_uint8_t*>(m.values.raw_data())),
                    m.values.nbytes()};
  const auto fail = [&] {
    throw FileError(
        fmt::format("[save_npz] {}, member '{}': {}", path, name, zip_strerror(archive)));
  };
  zip_source_t* source =
      zip_source_buffer_fragment(archive, m.fragments.data(), m.values.nbytes() > 0 ? 2 : 1, 0);
  if (source == nullptr) fail();
  const zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    fail();
  }
  const zip_int32_t method = compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
  if (zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), method, 0) != 0) fail();
}

/// An archive without members, which libzip would rather not write.
void write_empty_archive(const std::string& path) {
  constexpr std::array<char, 22> kEndRecord = {'P', 'K', 5, 6};
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(kEndRecord.data(), kEndRecord.size());
  out.close();
  if (!out) throw FileError(fmt::format("[save_npz] {}: cannot be written", path));
}

}  // namespace

std::map<std::string, Array> load_npz(const std::string& path) {
  const Archive archive = open_archive(path, ZIP_RDONLY, "load");
  std::map<std::string, Array> arrays;
  std::error_code error;
  std::uint64_t left = std::filesystem::file_size(path, error);
  if (error) throw FileError(fmt::format("[load] {}: {}", path, error.message()));
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), 0, &stat) != 0 ||
        (stat.valid & ZIP_STAT_NAME) == 0) {
      throw FileError(
          fmt::format("[load] {}, member {}: {}", path, i, zip_strerror(archive.get())));
    }
    const std::string_view name = stat.name;
    if (!name.ends_with(kSuffix)) continue;
    MemberSource source(archive.get(), stat, path, left);
    Array array = read_npy(source);
    source.finish();
    arrays.insert_or_assign(std::string(name.substr(0, name.size() - kSuffix.size())),
                            std::move(array));
  }
  return arrays;
}

Array Array::load_npz(const std::string& path, std::string_view name) {
  const std::map<std::string, Array> arrays = croton::load_npz(path);
  const auto found = arrays.find(std::string(name));
  if (found != arrays.end()) return found->second;
  std::string names;
  for (const auto& [key, value] : arrays) names += (names.empty() ? "'" : ", '") + key + "'";
  throw FileError(fmt::format("[load] {}: no array '{}'; the file holds {}", path, name,
                              names.empty() ? "none" : names));
}

void save_npz(const std::string& path, const std::map<std::string, Array>& arrays,
              bool compressed) {
  if (arrays.empty()) return write_empty_archive(path);
  std::vector<Member> members;
  members.reserve(arrays.size());
  Archive archive = open_archive(path, ZIP_CREATE | ZIP_TRUNCATE, "save_npz");
  for (const auto& [name, array] : arrays) {
    Member& m = members.emplace_back();
    m.values = array.to_host().contiguous();
    m.header = npy_header(m.values, fmt::format("{}, member '{}'", path, name));
    add_member(archive.get(), name + std::string(kSuffix), m, path, compressed);
  }
  if (zip_close(archive.get()) != 0) {
    throw FileError(fmt::format("[save_npz] {}: {}", path, zip_strerror(archive.get())));
  }
  archive.release();
}

}  // namespace croton
