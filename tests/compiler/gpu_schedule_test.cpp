// How groups are laid out over the blocks and threads of a GPU: what a launch asks for.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/cuda.h"
#include "compiler/fuse/schedule.h"
#include "runtime/plan.h"
#include "tests/gpu_graph.h"

using namespace croton;

namespace {

/// The launches of a function, of which all sizes follow from those of the first input.
class GpuLaunches {
 public:
  GpuLaunches(const std::vector<Variable>& inputs, const std::vector<Variable>& outputs)
      : function_(test::optimized_for_gpu(inputs, outputs)), shapes_(function_.graph, {}, dims_) {
    for (const FusionGroup& group : fuse(function_.graph, shapes_, true)) {
      const bool has_kernel = group.kind == GroupKind::map || group.kind == GroupKind::row ||
                              group.kind == GroupKind::reduce || group.kind == GroupKind::kernel;
      if (!has_kernel) continue;
      Scheduled scheduled = schedule(group, shapes_, test::gpu_target());
      for (KernelLaunch& launch : scheduled.launches) launches.push_back(std::move(launch));
    }
  }

  /// A size in a call; `sizes` are those of the inputs, axis by axis.
  std::int64_t in_call(Dim dim, const std::vector<std::vector<std::int64_t>>& sizes) {
    const DimRef ref = dims_.ref(dim);
    std::vector<std::int64_t> values(dims_.terms().size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const DimTable::Term& term = dims_.terms()[i];
      if (term.op != DimOp::input_size) continue;
      values[i] = sizes.at(static_cast<std::size_t>(term.a)).at(static_cast<std::size_t>(term.b));
    }
    dims_.evaluate(values);
    return values[static_cast<std::size_t>(ref)];
  }

  /// Dynamic shared memory of a block of the launch.
  Dim shared(const KernelLaunch& launch) {
    std::vector<Dim> sizes;
    for (const DimRef ref : launch.sizes) sizes.push_back(dims_.dim(ref));
    const Dim packed = launch.packed.is(-1) ? Dim(1) : launch.packed;
    return codegen::cuda_shared_term(launch.kernel, sizes) * packed;
  }

  std::vector<KernelLaunch> launches;

 private:
  FunctionGraph function_;
  DimTable dims_;
  Shapes shapes_;
};

/// Bytes that a kernel declares.
std::int64_t declared(const kernel::Kernel& kernel) {
  std::int64_t bytes = 0;
  for (const kernel::Node& node : kernel.nodes) {
    if (node.op != kernel::Op::local) continue;
    const kernel::Node& size = kernel.nodes[static_cast<std::size_t>(node.in[0])];
    if (size.op != kernel::Op::constant) continue;
    bytes += static_cast<std::int64_t>(size.bits * size_of(node.dtype));
  }
  return bytes;
}

constexpr std::int64_t kShared = 48 << 10;

}  // namespace

TEST_CASE("a launch tells of a domain that is larger than its buffers", "[cuda]") {
  constexpr std::int64_t n = 1 << 16;
  SECTION("sizes that are known") {
    Variable x = tensor("x", DType::float32, {n, 1}), y = tensor("y", DType::float32, {1, n});
    for (const Variable& z : {sum(x * y), max(x - y), sum(x * y, 0), sum(x * y, 1)}) {
      GpuLaunches f({x, y}, {z});
      REQUIRE_FALSE(f.launches.empty());
      CHECK(f.launches[0].span.is(n * n));
      CHECK(n * n >= kWideFrom);
    }
  }
  SECTION("sizes that calls tell") {
    Variable x = vector("x"), y = vector("y");
    GpuLaunches f({x, y}, {sum(dimshuffle(x, {0, -1}) * y)});
    REQUIRE_FALSE(f.launches.empty());
    CHECK(f.in_call(f.launches[0].span, {{n}, {n}}) == n * n);
    CHECK(f.in_call(f.launches[0].span, {{3}, {5}}) == 15);
  }
}

TEST_CASE("rows that share a block share its shared memory", "[cuda]") {
  SECTION("sizes that are known") {
    Variable x = tensor("x", DType::float32, {50, 80, 100}), b = tensor("b", DType::float32, {100});
    GpuLaunches f({x, b}, {var(x + b, {1, 2})});
    REQUIRE(f.launches.size() == 1);
    const KernelLaunch& launch = f.launches[0];
    REQUIRE(launch.kernel.packed);
    CHECK(launch.packed.is(1));
    CHECK(f.shared(launch).is(32000));
  }
  SECTION("short rows") {
    Variable x = tensor("x", DType::float32, {50, 8, 100}), b = tensor("b", DType::float32, {100});
    GpuLaunches f({x, b}, {var(x + b, {1, 2})});
    REQUIRE(f.launches.size() == 1);
    CHECK(f.launches[0].packed.is(8));
    CHECK(f.shared(f.launches[0]).is(8 * 3200));
  }
  SECTION("rows that do not fit are read again") {
    Variable x = tensor("x", DType::float32, {5, 160, 100}), b = tensor("b", DType::float32, {100});
    GpuLaunches f({x, b}, {var(x + b, {1, 2})});
    REQUIRE(f.launches.size() == 1);
    CHECK(f.launches[0].packed.is(8));
    CHECK(f.shared(f.launches[0]).is(0));
  }
  SECTION("sizes that calls tell") {
    Variable x = tensor3("x"), b = vector("b");
    GpuLaunches f({x, b}, {var(x + b, {1, 2})});
    REQUIRE(f.launches.size() == 2);
    for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{80, 100},
                                        {8, 100},
                                        {160, 100},
                                        {122, 100},
                                        {123, 100},
                                        {1, 12288},
                                        {1, 12289},
                                        {3, 3}}) {
      INFO(rows << " x " << columns);
      const std::vector<std::vector<std::int64_t>> sizes{{50, rows, columns}, {columns}};
      const bool fits = rows * columns * 4 <= kShared;
      CHECK(f.in_call(f.launches[0].blocks, sizes) == (fits ? 50 : 0));
      CHECK(f.in_call(f.launches[1].blocks, sizes) == (fits ? 0 : 50));
      if (fits) CHECK(f.in_call(f.shared(f.launches[0]), sizes) <= kShared);
      CHECK(f.in_call(f.launches[0].packed, sizes) >= 1);
      CHECK(f.in_call(f.shared(f.launches[1]), sizes) == 0);
    }
  }
}

TEST_CASE("tiles of many reductions fit shared memory", "[cuda]") {
  Variable x = tensor("x", DType::float64, {300000, 4});
  for (const int count : {1, 4, 40}) {
    INFO(count);
    std::vector<Variable> outputs;
    for (int i = 0; i < count; ++i) outputs.push_back(argmax(x * (i + 1), 0));
    GpuLaunches f({x}, outputs);
    for (const KernelLaunch& launch : f.launches) {
      CHECK(declared(launch.kernel) <= kShared);
      CHECK(launch.kernel.threads >= 32);
    }
  }
}

TEST_CASE("tiles of many transposed operands fit shared memory", "[cuda]") {
  std::vector<Variable> inputs;
  Variable total = tensor("x", DType::float64, {256, 512});
  inputs.push_back(total);
  for (int i = 0; i < 12; ++i) {
    inputs.push_back(tensor("y" + std::to_string(i), DType::float64, {512, 256}));
    total = total + transpose(inputs.back());
  }
  GpuLaunches f(inputs, {total});
  REQUIRE(f.launches.size() == 1);
  CHECK(declared(f.launches[0].kernel) <= kShared);
  CHECK(declared(f.launches[0].kernel) >= 8 * 32 * 32);
}

TEST_CASE("whatever reads along another axis than it is written along goes over tiles", "[cuda]") {
  Variable x = tensor("x", DType::float32, {300, 500}), y = tensor("y", DType::float32, {500, 300});
  const auto tiles = [&](const Variable& z) {
    GpuLaunches f({x, y}, {z});
    REQUIRE(f.launches.size() == 1);
    return declared(f.launches[0].kernel) / (4 * 32 * 33);
  };
  CHECK(tiles(x + transpose(y)) == 1);
  CHECK(tiles(transpose(x) + transpose(x * 2)) == 2);
  CHECK(tiles(concatenate({transpose(x), transpose(x) * 3}, 0)) == 1);
  // The one half is read as it is written.
  CHECK(tiles(concatenate({x, transpose(y) * 3}, 0)) == 0);
  CHECK(tiles(x(Slice(none, none, 2)) + 1) == 0);
}

TEST_CASE("copies are called by what they are for", "[cuda]") {
  Shared w = shared(Array::ones({3}), {.name = "w", .target = "cpu"});
  Variable x = tensor("x", DType::float32, {3});
  FunctionGraph function;
  function.graph.inputs = {x};
  function.graph.outputs = {exp(x), x * 2};
  function.user_outputs = 1;
  function.updated = {w};
  const Plan plan = make_plan(optimize(std::move(function), test::gpu_context(current_config())),
                              test::gpu_context(current_config()));
  std::vector<std::string> labels;
  for (const Step& step : plan.steps) {
    if (step.kind == Step::Kind::copy) labels.push_back(step.label);
  }
  CHECK(std::find(labels.begin(), labels.end(), "output") != labels.end());
  CHECK(std::find(labels.begin(), labels.end(), "update of w") != labels.end());
}
