// Graphs with parts that no public function makes, compiled and called on contexts of their own
// runtime.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "croton/croton.h"
#include "runtime/program.h"
#include "runtime/runtime.h"
#include "runtime/shared_state.h"

namespace croton::test {

class ContextMachine {
 public:
  /// With the flags of the process, but for these contexts.
  explicit ContextMachine(const std::string& contexts, Config config = current_config())
      : config_(config.with("contexts", std::string_view(contexts))),
        runtime_(std::make_shared<Runtime>(config_)) {}

  Variable shared(const std::string& name, const Array& value, const char* context) const {
    auto state = make_shared_state(runtime_, value, name, context);
    return make_shared_node(std::move(state), {value.dtype(), value.shape()}, name, {});
  }

  /// `values` are the results of `outputs`, then the new values of `updated`.
  Program compile(const std::vector<Variable>& outputs, const std::vector<Variable>& updated,
                  const std::vector<Variable>& values,
                  const std::vector<Variable>& inputs = {}) const {
    FunctionGraph written;
    written.name = "f";
    written.graph.inputs = inputs;
    written.graph.outputs = outputs;
    written.user_outputs = outputs.size();
    written.updated = updated;
    written.graph.outputs.insert(written.graph.outputs.end(), values.begin(), values.end());
    const CompileContext context{
        config_, "cpu", [this](const std::string& name) { return runtime_->target(name); }, {}};
    std::vector<Program::Part> parts;
    for (FunctionPart& part : make_parts(written, optimize(written, context), context)) {
      parts.push_back({std::move(part.plan), part.taken});
    }
    return Program(runtime_, std::move(parts), config_);
  }

  const std::shared_ptr<Runtime>& runtime() const { return runtime_; }
  const Config& config() const { return config_; }

 private:
  const Config config_;
  const std::shared_ptr<Runtime> runtime_;
};

}  // namespace croton::test
