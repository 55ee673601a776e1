// The folder of compiled kernels as programs see it. Runs with a cache_dir of its own.
#include <croton/croton.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace croton;
namespace fs = std::filesystem;

namespace {

/// Makes the function anew, so that its kernels come from the folder or are compiled.
float value_at_two() {
  Variable x = scalar("x");
  return function({x}, exp(x) * 3 + x)(2.0f)[0].item<float>();
}

void change_entries(const std::function<void(std::string&)>& change) {
  for (const CachedKernel& entry : list_cache()) {
    const fs::path path = fs::path(cache_folder()) / entry.file;
    std::ifstream in(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    in.close();
    change(bytes);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
}

}  // namespace

TEST_CASE("kernels are kept, listed, pruned and cleared") {
  clear_cache();
  CHECK(list_cache().empty());
  const float expected = value_at_two();
  CHECK(expected == Approx(std::exp(2.0) * 3 + 2));
  const std::vector<CachedKernel> entries = list_cache();
  REQUIRE_FALSE(entries.empty());
  CHECK(entries[0].bytes > 0);
  CHECK(entries[0].last_used > 1700000000);
  CHECK_FALSE(entries[0].made_for.empty());
  CHECK(value_at_two() == expected);
  CHECK(list_cache().size() == entries.size());
  CHECK(prune_cache(std::int64_t{1} << 40) == 0);
  CHECK(prune_cache(0) == static_cast<int>(entries.size()));
  CHECK(list_cache().empty());
  CHECK(value_at_two() == expected);
  CHECK(clear_cache() == static_cast<int>(entries.size()));
}

TEST_CASE("damaged entries are compiled again and mended") {
  clear_cache();
  const float expected = value_at_two();
  const std::size_t count = list_cache().size();
  const std::function<void(std::string&)> damages[] = {
      [](std::string& bytes) { bytes.clear(); },
      [](std::string& bytes) { bytes.resize(bytes.size() / 2); },
      [](std::string& bytes) { bytes[bytes.size() - 5] ^= 1; },
      [](std::string& bytes) { bytes[0] ^= 1; },
      [](std::string& bytes) { bytes += "more"; },
      [](std::string& bytes) { bytes.assign(100000, 'x'); },
  };
  for (const auto& damage : damages) {
    change_entries(damage);
    CHECK(value_at_two() == expected);
    CHECK(list_cache().size() == count);
    for (const CachedKernel& entry : list_cache()) CHECK_FALSE(entry.made_for.empty());
  }
}

TEST_CASE("the folder may vanish while the program runs") {
  const float expected = value_at_two();
  fs::remove_all(cache_folder());
  CHECK(value_at_two() == expected);
}
