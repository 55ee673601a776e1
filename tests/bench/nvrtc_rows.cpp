// The training function through NVRTC, for a GPU that need not be there.
#include <croton/croton.h>
#include <fmt/format.h>

#include <atomic>
#include <future>

#include "compiler/codegen/cuda.h"
#include "frontend/function_graph.h"
#include "runtime/cuda/nvrtc.h"
#include "tests/bench/bench.h"
#include "tests/bench/limits.h"
#include "tests/bench/training_graph.h"
#include "tests/gpu_graph.h"

namespace croton::bench {
namespace {

/// Everything from the user's graph to machine code; gives the number of kernels.
std::size_t compile_training(const cuda::Nvrtc& nvrtc, const std::string& unique) {
  const TrainingGraph graph = training_graph();
  const Config config = current_config();
  FunctionMaker maker(graph.inputs, graph.outputs, graph.options, config, Loc::current());
  const Plan plan = compile(maker.graph, test::gpu_context(config));
  // Modules compile side by side on two threads, as those of the CPU do.
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t m; (m = next++) < plan.modules.size();) {
      nvrtc.compile("// " + unique + "\n" + plan.modules[m].text, "training.cu", {90, true},
                    codegen::cuda_options());
    }
  };
  std::future<void> second;
  if (all_threads() > 1) second = std::async(std::launch::async, work);
  work();
  if (second.valid()) second.get();
  return plan.kernels.size();
}

}  // namespace

void measure_nvrtc(const Options& options, Report& report) {
  report.section("the training function through NVRTC, for sm_90");
  const cuda::Nvrtc nvrtc;
  if (!nvrtc.usable()) {
    report.note("SKIP: " + nvrtc.report().text());
    return;
  }
  std::size_t kernels = 0;
  int count = 0;
  Turns turns(options.quick ? 3 : 15);
  const std::size_t whole =
      turns.add([&] { kernels = compile_training(nvrtc, fmt::format("run {}", ++count)); }, 0);
  turns.run();
  Row row{"graph to cubin", turns.times(whole), 1, "", {}, 0, 200e-3};
  row.note = fmt::format("{} kernels, NVRTC {}", kernels, nvrtc.version());
  report.add(std::move(row));
}

}  // namespace croton::bench
