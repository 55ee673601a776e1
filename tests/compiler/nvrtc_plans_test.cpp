// The kernels of whole functions, scheduled for a GPU: NVRTC compiles each of them for every
// architecture that we support. It needs no GPU.
#include <catch2/catch.hpp>
#include <iostream>
#include <set>

#include "compiler/codegen/cuda.h"
#include "compiler/fuse/own_kernels.h"
#include "compiler/fuse/schedule.h"
#include "compiler/graph/op.h"
#include "runtime/cuda/nvrtc.h"
#include "tests/fuzz/random_graph.h"
#include "tests/gpu_graph.h"

using namespace croton;

namespace {

constexpr int kArchitectures[] = {75, 80, 90, 100};

/// Kernels by name, each once.
class Collected {
 public:
  void add(const std::vector<Variable>& inputs, const std::vector<Variable>& outputs) {
    const FunctionGraph function = test::optimized_for_gpu(inputs, outputs);
    DimTable dims;
    const Shapes shapes(function.graph, {}, dims);
    std::vector<FusionGroup> groups = fuse(function.graph, shapes, true);
    use_own_kernels(groups, [](const std::string&) { return test::gpu_target(); });
    for (const FusionGroup& group : groups) {
      if (group.kind == GroupKind::library || group.kind == GroupKind::copy ||
          group.kind == GroupKind::view) {
        continue;
      }
      for (KernelLaunch& launch : schedule(group, shapes, test::gpu_target()).launches) {
        if (names_.insert(launch.kernel.name).second) kernels.push_back(std::move(launch.kernel));
      }
    }
  }

  std::vector<kernel::Kernel> kernels;

 private:
  std::set<std::string> names_;
};

void compile_all(const Collected& collected) {
  static const cuda::Nvrtc nvrtc;
  if (!nvrtc.usable()) {
    std::cout << "SKIP: compiling with NVRTC: " << nvrtc.report().text() << std::endl;
    return;
  }
  for (std::size_t first = 0; first < collected.kernels.size(); first += 16) {
    std::vector<const kernel::Kernel*> module;
    for (std::size_t i = first; i < std::min(first + 16, collected.kernels.size()); ++i) {
      module.push_back(&collected.kernels[i]);
    }
    const std::string text = codegen::emit_cuda(module);
    for (const int architecture : kArchitectures) {
      INFO("sm_" << architecture << "\n" << text);
      cuda::NvrtcModule result;
      REQUIRE_NOTHROW(result = nvrtc.compile(text, "functions.cu", nvrtc.target_for(architecture),
                                             codegen::cuda_options()));
      CHECK_FALSE(result.image.empty());
    }
  }
}

}  // namespace

TEST_CASE("NVRTC compiles the kernels of random graphs", "[cuda]") {
  Collected collected;
  for (unsigned seed = 1000; seed < 1040; ++seed) {
    const test::RandomGraph graph(seed, seed % 2 == 0 ? DType::float32 : DType::float64);
    collected.add(graph.inputs, graph.outputs());
  }
  CHECK(collected.kernels.size() > 40);
  compile_all(collected);
}

TEST_CASE("NVRTC compiles a kernel of every op", "[cuda]") {
  Collected collected;
  std::size_t ops = 0;
  for (const OpDef* op : OpRegistry::instance().all()) {
    const bool library = op->form == OpForm::library && op->kernel == nullptr;
    if (op->form == OpForm::leaf || library || op->form == OpForm::move) continue;
    bool any = op->examples.empty();
    for (const DType dtype : {DType::float32, DType::int32, DType::boolean, DType::bfloat16}) {
      // Which inputs are indices: none, all but the first, all.
      for (const std::size_t first_index : {99, 1, 0}) {
        for (const Example& example : op->examples) {
          std::vector<Variable> inputs;
          for (std::size_t k = 0; k < example.shapes.size(); ++k) {
            const bool index = k >= first_index;
            inputs.push_back(
                make_input({index ? DType::int64 : dtype, example.shapes[k]}, "x", Loc::current()));
          }
          Variable y;
          try {
            y = apply(*op, inputs, example.attrs, Loc::current());
          } catch (const GraphError&) {
            continue;  // the op does not take these dtypes
          }
          INFO(op->name);
          REQUIRE_NOTHROW(collected.add(inputs, {y}));
          any = true;
          break;
        }
      }
    }
    INFO(op->name);
    CHECK(any);
    ++ops;
  }
  CHECK(ops > 60);
  compile_all(collected);
}

TEST_CASE("NVRTC compiles the kernels of a training step", "[cuda]") {
  Collected collected;
  Variable x = matrix("x"), t = vector("t", DType::int64);
  Variable w1 = matrix("w1"), b1 = vector("b1"), w2 = matrix("w2"), b2 = vector("b2");
  Variable hidden = relu(dot(x, w1) + b1);
  Variable loss = mean(cross_entropy_from_logits(dot(hidden, w2) + b2, t));
  std::vector<Variable> outputs = grad(loss, {w1, b1, w2, b2});
  outputs.push_back(loss);
  collected.add({x, t, w1, b1, w2, b2}, outputs);
  Variable gamma = vector("gamma"), beta = vector("beta");
  collected.add({x, gamma, beta}, {layer_norm(x, gamma, beta), softmax(x), log_softmax(x)});
  CHECK(collected.kernels.size() >= 8);
  compile_all(collected);
}
