#include "tests/compiler/cuda_host.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "compiler/codegen/cuda.h"
#include "runtime/plan.h"

namespace croton::test {
namespace {

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

void write_int(std::ofstream& file, std::int64_t value) {
  file.write(reinterpret_cast<const char*>(&value), sizeof value);
}

void write_launch(std::ofstream& file, std::size_t index, const kernel::Kernel& k,
                  const Launch& launch, bool wide) {
  write_int(file, static_cast<std::int64_t>(index));
  // Of the wide form in two rows, of which the last may hold blocks that are none of the kernel.
  const std::int64_t grid = (launch.blocks + launch.packed - 1) / launch.packed;
  write_int(file, wide ? (grid + 1) / 2 : grid);
  write_int(file, wide ? 2 : 1);
  write_int(file, launch.threads > 0 ? launch.threads : k.threads);
  write_int(file, launch.packed);
  write_int(file, codegen::cuda_shared_bytes(k, launch.sizes) * launch.packed);
  write_int(file, static_cast<std::int64_t>(launch.buffers.size()));
  for (const Bytes& bytes : launch.buffers) {
    write_int(file, static_cast<std::int64_t>(bytes.size()));
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  const bool counted = k.packed || wide;
  write_int(file, k.sizes + (counted ? 1 : 0));
  for (int i = 0; i < k.sizes; ++i) write_int(file, launch.sizes[static_cast<std::size_t>(i)]);
  if (counted) write_int(file, launch.blocks);
  write_int(file, k.checks.empty() ? 0 : 1);
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

#ifdef CROTON_RUN_KERNELS
bool can_run_kernels() { return std::system("g++ --version >/dev/null 2>&1") == 0; }
constexpr const char* kRunner = CROTON_RUN_KERNELS;
#else
bool can_run_kernels() { return false; }
constexpr const char* kRunner = "";
#endif

HostProgram::HostProgram(const std::vector<KernelCase>& cases, bool wide)
    : cases_(cases), wide_(wide) {
  std::vector<const kernel::Kernel*> kernels;
  for (const KernelCase& c : cases) kernels.push_back(&c.kernel);
  folder_.write("kernels.cu",
                (wide ? std::string(kWideForm) : std::string()) + codegen::emit_cuda(kernels));
}

std::vector<Outcome> HostProgram::run(bool descending) const {
  std::int64_t launches = 0;
  for (const KernelCase& c : cases_) launches += static_cast<std::int64_t>(c.launches.size());
  std::ofstream input(folder_ / "input", std::ios::binary);
  write_int(input, static_cast<std::int64_t>(cases_.size()));
  for (const KernelCase& c : cases_) {
    write_int(input, static_cast<std::int64_t>(c.kernel.name.size()));
    input << c.kernel.name;
  }
  write_int(input, launches);
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    for (const Launch& launch : cases_[i].launches) {
      write_launch(input, i, cases_[i].kernel, launch, wide_);
    }
  }
  input.close();
  // What the real NVRTC says of these texts is for other tests.
  run_command(fmt::format("env CROTON_EMULATOR_THREADS={1} CROTON_EMULATOR_NVRTC=none "
                          "CROTON_EMULATOR_CACHE={0}/cache {2} {0}/kernels.cu {0}/input {0}/output",
                          folder_.path(), descending ? "descending" : "ascending", kRunner),
              folder_ / "run.log");
  std::ifstream output(folder_ / "output", std::ios::binary);
  std::vector<Outcome> outcomes;
  for (const KernelCase& c : cases_) {
    for (const Launch& launch : c.launches) outcomes.push_back(read_outcome(output, launch));
  }
  return outcomes;
}

}  // namespace croton::test
