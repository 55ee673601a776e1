#include "tests/cuda_emulator/host_build.h"

#include <dlfcn.h>
#include <unistd.h>
#include <xxhash.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/cuda_emulator/report.h"
#include "tests/cuda_emulator/settings.h"
#include "tests/temporary_folder.h"

namespace emulator {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCompile =
    "g++ -c -std=c++20 -O1 -g1 -w -fPIC -fvisibility=hidden -fno-gnu-unique -fno-exceptions "
    "-fno-rtti -fno-semantic-interposition -fno-strict-aliasing -ffp-contract=off -fno-math-errno "
    "-fno-tree-sra "
    "-fsanitize=thread --param tsan-instrument-func-entry-exit=0 "
    "-fsanitize=bounds,shift,integer-divide-by-zero,signed-integer-overflow,float-cast-overflow";
constexpr const char* kLink = "g++ -shared -nostdlib -Wl,-Bsymbolic";

std::string own_folder() {
  Dl_info info;
  dladdr(reinterpret_cast<const void*>(&hash_of), &info);
  return fs::path(info.dli_fname).parent_path().string() + "/";
}

std::string device_header() { return own_folder() + "device.h"; }
std::string callbacks() { return own_folder() + "callbacks.o"; }

std::string identifier(const std::string& text, std::size_t& at) {
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
  const std::size_t begin = at;
  while (at < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_'))
    ++at;
  return text.substr(begin, at - begin);
}

std::string parenthesised(const std::string& text, std::size_t& at) {
  const std::size_t begin = at + 1;
  int depth = 0;
  for (; at < text.size(); ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (depth == 0) break;
  }
  return text.substr(begin, at++ - begin);
}

struct Found {
  std::string name, bound;
};

// The kernel whose `__global__` ends at `at`; templates have no name of their own.
Found kernel_at(const std::string& text, std::size_t at) {
  Found kernel;
  for (;;) {
    const std::size_t before = at;
    const std::string word = identifier(text, at);
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
    if (at >= text.size() || (word.empty() && at == before)) return {};
    if (text[at] != '(') continue;
    if (word == "__launch_bounds__") {
      kernel.bound = parenthesised(text, at);
      kernel.bound = kernel.bound.substr(0, kernel.bound.find(','));
    } else if (word.starts_with("__")) {
      parenthesised(text, at);
    } else {
      kernel.name = word;
      return kernel;
    }
  }
}

std::vector<Found> kernels_of(const std::string& text) {
  static const std::string kWord = "__global__";
  std::vector<Found> kernels;
  for (std::size_t at = 0; (at = text.find(kWord, at)) != std::string::npos; at += kWord.size()) {
    const std::size_t before = text.find_last_not_of(" \n\t", at == 0 ? 0 : at - 1);
    if (at > 0 && before != std::string::npos && text[before] == '>') continue;
    const Found kernel = kernel_at(text, at + kWord.size());
    if (!kernel.name.empty()) kernels.push_back(kernel);
  }
  return kernels;
}

bool run(const std::string& command, const std::string& log) {
  // The compiler must not meet the emulator's libraries.
  const std::string clean =
      "env -u LD_LIBRARY_PATH -u LD_PRELOAD " + command + " >" + log + " 2>&1";
  return std::system(clean.c_str()) == 0;
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

std::string hash_of(const std::string& bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return format("%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& bytes) {
  std::error_code ignored;
  fs::create_directories(fs::path(path).parent_path(), ignored);
  const std::string aside = path + "." + std::to_string(getpid());
  std::ofstream(aside, std::ios::binary) << bytes;
  fs::rename(aside, path, ignored);
}

std::string build_key() {
  static const std::string key =
      hash_of(read_file(device_header()) + read_file(callbacks()) + kCompile + kLink);
  return key;
}

std::string host_text(const std::string& source) {
  static const std::regex dynamic(
      R"(extern\s+__shared__\s+(?:__align__\s*\(\s*\d+\s*\)\s*)?([\w ]*\w)\s+(\w+)\s*\[\s*\]\s*;)");
  std::string text =
      std::regex_replace(source, dynamic, "$1* const $2 = ($1*)emu_dynamic_shared();");
  text +=
      "\nextern \"C\" {\n"
      "extern __attribute__((visibility(\"default\"))) const emu_kernel emulator_kernels[];\n"
      "const emu_kernel emulator_kernels[] = {\n";
  for (const Found& kernel : kernels_of(source)) {
    const std::string call = "emu_call<&" + kernel.name + ">";
    text += "  {(const void*)&" + kernel.name + ", &" + call + "::run, " + call + "::parameters, " +
            call + "::count, " + (kernel.bound.empty() ? "0" : kernel.bound) + "},\n";
  }
  return text + "  {}};\n}\n";
}

HostBuild build_for_host(const std::string& text, const std::string& name,
                         const std::vector<std::string>& options,
                         const std::vector<std::pair<std::string, std::string>>& headers) try {
  const croton::test::TemporaryFolder own;
  const std::string& folder = own.path();
  // Under its own name, for the lines of reports.
  const std::string file = own.write(fs::path(name).filename().string(), text);
  for (const auto& [header, content] : headers) write_file(folder + "/" + header, content);
  std::string passed;
  for (const std::string& option : options) passed += " " + quoted(option);
  const std::string log = folder + "/log";
  HostBuild build;
  const bool built =
      run(std::string(kCompile) + " -I" + folder + passed + " -include " + device_header() +
              " -x c++ " + quoted(file) + " -o " + folder + "/kernels.o",
          log) &&
      run(std::string(kLink) + " " + folder + "/kernels.o " + callbacks() + " -o " + folder +
              "/kernels.so -lm -lc -lgcc",
          log);
  if (built)
    build.library = read_file(folder + "/kernels.so");
  else
    build.log = read_file(log);
  return build;
} catch (const std::exception& error) {
  return {"", error.what()};
}

}  // namespace emulator
