#include "runtime/kernel_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/runtime/fake_device.h"
#include "tests/temporary_folder.h"

using namespace croton;
using namespace croton::test;
namespace fs = std::filesystem;

namespace {

struct Folder {
  TemporaryFolder own;
  fs::path path = own.path();
  Config config() const { return Config().with("cache_dir", (path / "kernels").string()); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    if (!fs::exists(path / "kernels")) return found;
    for (const auto& entry : fs::directory_iterator(path / "kernels"))
      found.push_back(entry.path());
    return found;
  }
};

struct Machine {
  std::shared_ptr<FakeState> state = std::make_shared<FakeState>();
  FakeDevice device{state};
};

/// Runs `act` and gives what it wrote to stderr.
template <class F>
std::string stderr_of(F act) {
  const TemporaryFolder folder;
  const std::string name = folder / "stderr";
  const int file = open(name.c_str(), O_CREAT | O_WRONLY, 0600);
  fflush(stderr);
  const int saved = dup(2);
  dup2(file, 2);
  act();
  fflush(stderr);
  dup2(saved, 2);
  close(saved);
  close(file);
  std::ifstream in(name);
  return {std::istreambuf_iterator<char>(in), {}};
}

int lines_with(const std::string& text, const std::string& what) {
  int count = 0;
  for (std::size_t p = text.find(what); p != std::string::npos; p = text.find(what, p + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a module is compiled once, kept in memory and on disk") {
  Folder folder;
  Machine m;
  {
    KernelCache cache(folder.config());
    const auto a = cache.module(m.device, "text", {"k"}, "");
    const auto b = cache.module(m.device, "text", {"k"}, "");
    CHECK(a == b);
    CHECK(m.state->compiled == 1);
    CHECK(cache.statistics().from_memory == 1);
  }
  CHECK(folder.files().size() == 1);
  KernelCache again(folder.config());
  again.module(m.device, "text", {"k"}, "");
  CHECK(m.state->compiled == 1);
  CHECK(again.statistics().from_disk == 1);
  CHECK(folder.files().size() == 1);
  again.module(m.device, "text", {"k"}, "check_bounds=on");
  again.module(m.device, "text 2", {"k"}, "");
  CHECK(m.state->compiled == 3);
  CHECK(folder.files().size() == 3);
  struct stat info {};
  stat((folder.path / "kernels").c_str(), &info);
  CHECK((info.st_mode & 0777) == 0700);
}

TEST_CASE("cache=off keeps nothing on disk") {
  Folder folder;
  Machine m;
  KernelCache cache(folder.config().with("cache", false));
  cache.module(m.device, "text", {"k"}, "");
  CHECK(folder.files().empty());
}

TEST_CASE("damaged and foreign entries are compiled again") {
  Folder folder;
  Machine m;
  KernelCache(folder.config()).module(m.device, "text", {"k"}, "");
  REQUIRE(folder.files().size() == 1);
  const fs::path file = folder.files()[0];
  std::string whole;
  {
    std::ifstream in(file, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::vector<std::string> broken = {"", "short", whole.substr(0, whole.size() - 1), whole + "x"};
  for (std::size_t i = 0; i < whole.size(); i += 7) {
    broken.push_back(whole);
    broken.back()[i] = static_cast<char>(broken.back()[i] ^ 0x40);
  }
  int compiled = 1;
  for (const std::string& bytes : broken) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    KernelCache cache(folder.config());
    REQUIRE(cache.module(m.device, "text", {"k"}, "") != nullptr);
    REQUIRE(m.state->compiled == ++compiled);
    REQUIRE(cache.store()->damaged() == 1);
    REQUIRE(fs::file_size(file) == whole.size());
  }
  // Another key's entry under this one's name.
  KernelCache(folder.config()).module(m.device, "other text", {"k"}, "");
  for (const fs::path& other : folder.files()) {
    if (other != file) fs::rename(other, file);
  }
  const int before = m.state->compiled;
  KernelCache(folder.config()).module(m.device, "text", {"k"}, "");
  CHECK(m.state->compiled == before + 1);
}

TEST_CASE("a folder that cannot be written is one warning") {
  Folder folder;
  Machine m;
  std::ofstream(folder.path / "kernels") << "a file";
  const std::string text = stderr_of([&] {
    KernelCache cache(folder.config());
    for (int i = 0; i < 3; ++i) cache.module(m.device, "text " + std::to_string(i), {"k"}, "");
  });
  CHECK(lines_with(text, "warning") == 1);
  CHECK(text.find("kernels are not kept") != std::string::npos);
  CHECK(m.state->compiled == 3);
}

TEST_CASE("a folder that others may write to is not trusted") {
  Folder folder;
  Machine m;
  fs::create_directory(folder.path / "kernels");
  chmod((folder.path / "kernels").c_str(), 0777);
  const std::string text =
      stderr_of([&] { KernelCache(folder.config()).module(m.device, "text", {"k"}, ""); });
  CHECK(text.find("others may write to it") != std::string::npos);
  CHECK(folder.files().empty());
}

TEST_CASE("the folder is bounded, and the least recently used entries go first") {
  Folder folder;
  Machine m;
  const std::string padding(10000, ' ');
  const Config config = folder.config().with("cache_max_bytes", 100000);
  {
    KernelCache cache(config);
    for (int i = 0; i < 30; ++i) {
      cache.module(m.device, padding + std::to_string(i), {"k"}, "");
      std::int64_t total = 0;
      for (const fs::path& f : folder.files()) total += static_cast<std::int64_t>(fs::file_size(f));
      REQUIRE(total <= 110000);
    }
  }
  KernelStore store((folder.path / "kernels").string(), 0);
  const auto entries = store.list();
  CHECK(entries.size() >= 3);
  CHECK(entries[0].title == "fake compiler 1");
  CHECK(store.prune(entries[0].bytes + 10) == static_cast<int>(entries.size()) - 1);
  CHECK(store.clear() == 1);
  CHECK(store.list().empty());
}

TEST_CASE("many processes and threads share a folder") {
  Folder folder;
  std::vector<pid_t> children;
  for (int p = 0; p < 4; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      Machine m;
      KernelCache cache(folder.config());
      bool good = true;
      for (int i = 0; i < 50; ++i) {
        const auto module = cache.module(m.device, "text " + std::to_string(i), {"k"}, "");
        good = good && module != nullptr;
      }
      _exit(good && cache.store()->damaged() == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  CHECK(folder.files().size() == 50);

  Machine m;
  KernelCache cache(folder.config());
  std::vector<std::thread> threads;
  std::vector<std::shared_ptr<Module>> modules(8);
  for (std::size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] { modules[t] = cache.module(m.device, "new", {"k"}, ""); });
  }
  for (std::thread& t : threads) t.join();
  for (const auto& module : modules) CHECK(module == modules[0]);
  CHECK(m.state->compiled == 1);
}

TEST_CASE("leftovers of a process that died are cleared away") {
  Folder folder;
  Machine m;
  fs::create_directories(folder.path / "kernels");
  chmod((folder.path / "kernels").c_str(), 0700);
  const fs::path left = folder.path / "kernels" / "x.kernel.1.0.tmp";
  std::ofstream(left) << "half";
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(2));
  KernelCache(folder.config()).module(m.device, "text", {"k"}, "");
  CHECK_FALSE(fs::exists(left));
}
