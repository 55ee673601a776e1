// What the common kernels cost on a GPU, as far as that can be told without one: bytes moved, the
// width of accesses, registers, shared memory, spills, occupancy. Prints a table.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <iostream>

#include "compiler/codegen/cuda.h"
#include "compiler/fuse/schedule.h"
#include "runtime/cuda/nvrtc.h"
#include "tests/gpu_graph.h"

using namespace croton;

namespace {

/// What NVRTC says of one kernel.
struct Figures {
  std::string name;
  int registers = 0;
  std::int64_t shared = 0;
  std::int64_t spills = 0;
  std::int64_t stack = 0;
  int wide_loads = 0;
  int wide_stores = 0;
  int threads = 0;  ///< of a block of the launch
  double occupancy = 0;
};

struct Measured {
  std::vector<Figures> kernels;
  int calls = 0;     ///< of libraries
  double bytes = 0;  ///< moved, over those of inputs and outputs
};

/// Of the threads that a multiprocessor of compute capability 9.0 holds, how many run.
double occupancy_of(const Figures& f) {
  constexpr int kThreads = 2048, kBlocks = 32, kRegisters = 65536, kShared = 228 << 10;
  const int warps = (f.threads + 31) / 32;
  const int per_warp = (f.registers * 32 + 255) / 256 * 256;
  const int by_registers = kRegisters / (per_warp * warps);
  const int by_shared = static_cast<int>(kShared / (f.shared + 1024));
  const int blocks = std::min({kBlocks, kThreads / (warps * 32), by_registers, by_shared});
  return static_cast<double>(blocks * warps * 32) / kThreads;
}

/// Instructions on 16 bytes: `what` is "ld.global" or "st.global".
int count_wide(const std::string& ptx, std::string_view what) {
  int found = 0;
  for (std::size_t at = 0; (at = ptx.find(what, at)) != std::string::npos; at += what.size()) {
    const std::string_view line(ptx.data() + at, ptx.find('\n', at) - at);
    const bool four = line.find(".v4.") != line.npos && line.find("32") != line.npos;
    const bool two = line.find(".v2.") != line.npos && line.find("64") != line.npos;
    found += four || two;
  }
  return found;
}

/// The sum of the numbers that stand before `what`.
std::int64_t number_in(const std::string& log, std::string_view what) {
  std::int64_t sum = 0;
  for (std::size_t at = 0; (at = log.find(what, at)) != std::string::npos; at += what.size()) {
    std::size_t first = at;
    while (first > 0 && std::isdigit(static_cast<unsigned char>(log[first - 1]))) --first;
    if (first < at) sum += std::stoll(log.substr(first, at - first));
  }
  return sum;
}

const cuda::Nvrtc& nvrtc() {
  static const cuda::Nvrtc library;
  return library;
}

Figures figures_of(const KernelLaunch& launch) {
  const kernel::Kernel* list[] = {&launch.kernel};
  const std::string text = codegen::emit_cuda(list);
  std::vector<std::string_view> options(codegen::cuda_options().begin(),
                                        codegen::cuda_options().end());
  const std::string ptx = nvrtc().compile(text, "figures.cu", {90, false}, options).image;
  options.emplace_back("--ptxas-options=-v");
  const std::string log = nvrtc().compile(text, "figures.cu", {90, true}, options).log;
  Figures f;
  f.name = launch.kernel.name;
  INFO(log);
  f.registers = static_cast<int>(number_in(log, " registers"));
  CHECK(f.registers > 0);
  f.shared = number_in(log, " bytes smem");
  f.spills = number_in(log, " bytes spill");
  f.stack = number_in(log, " bytes stack frame");
  f.wide_loads = count_wide(ptx, "ld.global");
  f.wide_stores = count_wide(ptx, "st.global");
  f.threads = launch.kernel.threads;
  if (launch.packed.is_number() && launch.packed.number() > 1) {
    f.threads *= static_cast<int>(launch.packed.number());
  }
  f.occupancy = occupancy_of(f);
  return f;
}

Measured measure(const std::string& name, const std::vector<Variable>& inputs,
                 const std::vector<Variable>& outputs) {
  const FunctionGraph function = test::optimized_for_gpu(inputs, outputs);
  DimTable dims;
  const Shapes shapes(function.graph, {}, dims);
  const auto bytes_of = [&](const Variable& v) {
    return static_cast<double>(shapes.numel(v).number()) * static_cast<double>(size_of(v.dtype()));
  };
  Measured measured;
  double least = 0;
  for (const Variable& v : function.graph.inputs) least += bytes_of(v);
  for (const Variable& v : function.graph.outputs) least += bytes_of(v);
  for (const FusionGroup& group : fuse(function.graph, shapes, true)) {
    if (group.kind == GroupKind::view) continue;
    if (group.kind == GroupKind::library) {
      const Node& node = *group.nodes[0];
      ++measured.calls;
      for (const Variable& v : node.inputs) measured.bytes += bytes_of(v);
      measured.bytes += bytes_of(node.out());
      continue;
    }
    const Scheduled scheduled = schedule(group, shapes, test::gpu_target());
    for (const KernelLaunch& launch : scheduled.launches) {
      for (const KernelBuffer& buffer : launch.buffers) {
        const PartialBuffer* partial =
            buffer.partial >= 0 ? &scheduled.partials[static_cast<std::size_t>(buffer.partial)]
                                : nullptr;
        measured.bytes += partial ? static_cast<double>(partial->elements.number()) *
                                        static_cast<double>(size_of(partial->dtype))
                                  : bytes_of(buffer.value);
      }
      measured.kernels.push_back(figures_of(launch));
    }
  }
  measured.bytes /= least;
  for (const Figures& f : measured.kernels) {
    std::cout << fmt::format("{:<24}{:>7}{:>8.3f}{:>7}{:>7}{:>6}{:>8}{:>8}{:>9}{:>8.0f}%\n", name,
                             measured.kernels.size(), measured.bytes, f.wide_loads, f.wide_stores,
                             f.registers, f.shared, f.spills, f.threads, 100 * f.occupancy);
  }
  return measured;
}

struct Expected {
  std::size_t kernels = 1;
  double bytes = 1.001;
  int calls = 0;
  bool wide = true;  ///< its first kernel reads or writes 16 bytes at a time
  int registers = 64;
  double occupancy = 0.5;
};

void check(const std::string& name, const std::vector<Variable>& inputs,
           const std::vector<Variable>& outputs, const Expected& expected = {}) {
  INFO(name);
  const Measured measured = measure(name, inputs, outputs);
  CHECK(measured.kernels.size() == expected.kernels);
  CHECK(measured.calls == expected.calls);
  CHECK(measured.bytes <= expected.bytes);
  if (expected.wide) {
    CHECK(measured.kernels[0].wide_loads + measured.kernels[0].wide_stores > 0);
  }
  for (const Figures& f : measured.kernels) {
    CHECK(f.spills == 0);
    CHECK(f.stack == 0);
    CHECK(f.registers <= expected.registers);
    CHECK(f.occupancy >= expected.occupancy);
  }
}

/// A step of training a network of two layers: the cost and the new weights.
void check_training_step(const Expected& expected) {
  const auto matrix = [](std::int64_t m, std::int64_t n) {
    return tensor("m", DType::float32, {m, n});
  };
  const auto vector = [](std::int64_t n) { return tensor("v", DType::float32, {n}); };
  const Variable x = matrix(1024, 1024), y = tensor("y", DType::int64, {1024});
  const std::vector<Variable> weights{matrix(1024, 4096), vector(4096), matrix(4096, 256),
                                      vector(256)};
  const Variable hidden = relu(dot(x, weights[0]) + weights[1]);
  const Variable cost = mean(cross_entropy_from_logits(dot(hidden, weights[2]) + weights[3], y));
  const std::vector<Variable> slopes = grad(cost, weights);
  std::vector<Variable> inputs{x, y}, outputs{cost};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    inputs.push_back(weights[i]);
    outputs.push_back(weights[i] - 0.1f * slopes[i]);
  }
  check("training step", inputs, outputs, expected);
}

Variable rows(DType dtype, std::int64_t m, std::int64_t n) { return tensor("x", dtype, {m, n}); }

}  // namespace

TEST_CASE("registers, shared memory and accesses of common kernels", "[cuda]") {
  if (!nvrtc().usable()) {
    std::cout << "SKIP: figures of kernels: " << nvrtc().report().text() << std::endl;
    return;
  }
  std::cout << fmt::format("{:<24}{:>7}{:>8}{:>7}{:>7}{:>6}{:>8}{:>8}{:>9}{:>9}\n", "sm_90",
                           "kernels", "bytes", "loads", "stores", "regs", "shared", "spills",
                           "threads", "occupied");
  constexpr std::int64_t m = 8192;
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16, DType::float64}) {
    Variable x = rows(dtype, m, 1024), y = rows(dtype, m, 1024);
    check(fmt::format("x * y + x {}", name_of(dtype)), {x, y}, {x * y + x});
  }
  Variable x = rows(DType::float32, m, 1024);
  Variable wide = rows(DType::float32, m, 4096);
  Variable narrow = rows(DType::float32, m, 10);
  Variable row = tensor("row", DType::float32, {1024}), other = tensor("b", DType::float32, {1024});
  Variable targets = tensor("t", DType::int64, {m});
  check("tanh(x) * x", {x}, {tanh(x) * x});
  check("relu(x + row)", {x, row}, {relu(x + row)});
  check("softmax 1024", {x}, {softmax(x)});
  check("softmax 4096", {wide}, {softmax(wide)});
  check("softmax 10", {narrow}, {softmax(narrow)}, {.wide = false});
  check("log_softmax 1024", {x}, {log_softmax(x)});
  check("layer_norm 1024", {x, row, other}, {layer_norm(x, row, other)});
  check("cross-entropy 1024", {x, targets}, {cross_entropy_from_logits(x, targets)},
        {.bytes = 1.01});
  check("sum of rows", {x}, {sum(x, 1)});
  check("sum of columns", {x}, {sum(x, 0)}, {.kernels = 2, .bytes = 1.2});
  check("sum of 10 columns", {narrow}, {sum(narrow, 0)},
        {.kernels = 2, .bytes = 1.4, .wide = false});
  check("sum", {x}, {sum(x)}, {.kernels = 2, .bytes = 1.001});
  check("argmax of rows", {x}, {argmax(x, 1)});
  check("transpose", {x}, {transpose(x) + 1}, {.wide = false});
  Variable places = tensor("places", DType::int64, {m});
  check("gather of rows", {x, places}, {x(places) * 2});
  Variable values = rows(DType::float32, m, 1024);
  check("scatter of rows", {x, places, values}, {inc_subtensor(x(places), values)},
        {.kernels = 2, .bytes = 1.34});
  Variable offset = tensor("offset", DType::int64, {});
  check("dropout", {x, offset},
        {where(lt(philox_uniform(offset, {m, 1024}), 0.9f), x / 0.9f, 0.0f)});
  check_training_step({.kernels = 7, .bytes = 5.5, .calls = 5});
}
