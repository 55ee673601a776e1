#include "tests/compiler/cuda_host.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "compiler/codegen/cuda.h"

namespace croton::test {
namespace {

namespace fs = std::filesystem;

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void run_command(const std::string& command, const std::string& log) {
  if (std::system((command + " >" + log + " 2>&1").c_str()) != 0) {
    throw std::runtime_error(command + "\n" + slurp(log).substr(0, 8000));
  }
}

// Shared memory of unknown size has no counterpart in C++.
void replace_dynamic_shared(std::string& text) {
  const std::string declaration = "extern __shared__ __align__(16) u8 shared_memory[];";
  const std::string pointer = "u8* const shared_memory = shim::dynamic_shared.data();";
  for (std::size_t at; (at = text.find(declaration)) != std::string::npos;) {
    text.replace(at, declaration.size(), pointer);
  }
}

// Calls one kernel with arguments from arrays.
std::string wrapper(const kernel::Kernel& k, std::size_t index) {
  std::string arguments;
  const auto add = [&](const std::string& text) {
    arguments += (arguments.empty() ? "" : ", ") + text;
  };
  for (int i = 0; i < k.arguments(); ++i) add(fmt::format("Any{{buffers[{}]}}", i));
  for (int i = 0; i < k.sizes; ++i) add(fmt::format("sizes[{}]", i));
  if (k.packed) add(fmt::format("sizes[{}]", k.sizes));
  if (!k.checks.empty()) add("error");
  return fmt::format(
      "static void call_{}(void** buffers, const long long* sizes, long long* error) {{\n"
      "  {}({});\n}}\n",
      index, k.name, arguments);
}

std::string program(const std::vector<KernelCase>& cases) {
  std::vector<const kernel::Kernel*> kernels;
  for (const KernelCase& c : cases) kernels.push_back(&c.kernel);
  std::string text = "#include \"cuda_host_shim.h\"\n" + codegen::emit_cuda(kernels);
  replace_dynamic_shared(text);
  text += "struct Any { void* p; template <class T> operator T*() const { return (T*)p; } };\n";
  std::string table;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    text += wrapper(cases[i].kernel, i);
    table += fmt::format("  {{call_{}}},\n", i);
  }
  return text + "static const shim::Entry kEntries[] = {\n" + table +
         "};\nint main(int, char** a) {\n"
         "  return shim::serve(kEntries, a[1], a[2], a[3][0] == 'd');\n}\n";
}

void write_int(std::ofstream& file, std::int64_t value) {
  file.write(reinterpret_cast<const char*>(&value), sizeof value);
}

void write_launch(std::ofstream& file, std::size_t index, const kernel::Kernel& k,
                  const Launch& launch) {
  write_int(file, static_cast<std::int64_t>(index));
  write_int(file, launch.blocks);
  write_int(file, launch.threads > 0 ? launch.threads : k.threads);
  write_int(file, launch.packed);
  write_int(file, codegen::cuda_shared_bytes(k, launch.sizes) * launch.packed);
  write_int(file, static_cast<std::int64_t>(launch.sizes.size()) + 1);
  for (const std::int64_t size : launch.sizes) write_int(file, size);
  write_int(file, launch.blocks);
  write_int(file, static_cast<std::int64_t>(launch.buffers.size()));
  for (const Bytes& bytes : launch.buffers) {
    write_int(file, static_cast<std::int64_t>(bytes.size()));
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
}

Outcome read_outcome(std::ifstream& file, const Launch& launch) {
  Outcome outcome;
  for (const Bytes& before : launch.buffers) {
    Bytes after(before.size());
    file.read(reinterpret_cast<char*>(after.data()), static_cast<std::streamsize>(after.size()));
    outcome.buffers.push_back(std::move(after));
  }
  outcome.error.resize(3);
  file.read(reinterpret_cast<char*>(outcome.error.data()), 3 * sizeof(std::int64_t));
  if (!file) throw std::runtime_error("the output of the host program ends early");
  return outcome;
}

}  // namespace

bool has_host_compiler() { return std::system("g++ --version >/dev/null 2>&1") == 0; }

HostProgram::HostProgram(const std::vector<KernelCase>& cases) : cases_(cases) {
  std::string name = (fs::temp_directory_path() / "croton_host_XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder: " + name);
  folder_ = name;
  std::ofstream(folder_ + "/kernels.cpp") << program(cases);
  const std::string source = fs::path(CROTON_TEST_DATA).parent_path();
  run_command(fmt::format("g++ -std=c++20 -O1 -ffp-contract=off -fno-strict-aliasing "
                          "-fsanitize=undefined,float-cast-overflow -fno-sanitize-recover=all "
                          "-w -I{0}/compiler -I{0}/../runtime/include -I{0}/../config/include "
                          "{1}/kernels.cpp -o {1}/kernels",
                          source, folder_),
              folder_ + "/build.log");
}

HostProgram::~HostProgram() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::vector<Outcome> HostProgram::run(bool descending) const {
  std::int64_t launches = 0;
  for (const KernelCase& c : cases_) launches += static_cast<std::int64_t>(c.launches.size());
  std::ofstream input(folder_ + "/input", std::ios::binary);
  write_int(input, launches);
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    for (const Launch& launch : cases_[i].launches) {
      write_launch(input, i, cases_[i].kernel, launch);
    }
  }
  input.close();
  run_command(fmt::format("{0}/kernels {0}/input {0}/output {1}", folder_,
                          descending ? "descending" : "ascending"),
              folder_ + "/run.log");
  std::ifstream output(folder_ + "/output", std::ios::binary);
  std::vector<Outcome> outcomes;
  for (const KernelCase& c : cases_) {
    for (const Launch& launch : c.launches) outcomes.push_back(read_outcome(output, launch));
  }
  return outcomes;
}

}  // namespace croton::test
