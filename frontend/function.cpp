#include "croton/function.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <iostream>

#include "config/nearest_name.h"
#include "croton/context.h"
#include "croton/error.h"
#include "frontend/default_runtime.h"
#include "frontend/function_graph.h"
#include "frontend/function_impl.h"
#include "runtime/array_access.h"
#include "runtime/context.h"
#include "runtime/runtime.h"

namespace croton {

constinit const Arg Arg::kNone;

Outputs::Outputs(std::size_t size, const std::vector<std::string>* names,
                 std::shared_ptr<const void> owner)
    : size_(size), names_(names), owner_(std::move(owner)) {
  if (size_ > kInline) more_.resize(size_);
}

Array Outputs::operator[](std::size_t index) const {
  if (index >= size_) {
    throw UserError(fmt::format("output {} was asked for, but the function has {}", index, size_));
  }
  return data()[index];
}

Array Outputs::operator[](std::string_view name) const {
  if (names_ == nullptr || names_->empty()) {
    throw UserError(fmt::format(
        "output '{}' was asked for, but the outputs of this function have no names: give them as "
        "{{{{\"{}\", value}}}}",
        name, name));
  }
  for (std::size_t i = 0; i < names_->size(); ++i) {
    if ((*names_)[i] == name) return data()[i];
  }
  throw UserError(fmt::format("no output is called '{}'{}; there are: {}", name,
                              did_you_mean(name, *names_), fmt::join(*names_, ", ")));
}

std::string_view Outputs::name(std::size_t index) const {
  if (index >= size_) {
    throw UserError(fmt::format("output {} was asked for, but the function has {}", index, size_));
  }
  return names_ == nullptr || names_->empty() ? std::string_view() : (*names_)[index];
}

std::ostream& operator<<(std::ostream& out, const Outputs& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Array array = outputs[i];
    const std::string_view name = outputs.name(i);
    if (!name.empty()) out << name << (array.ndim() > 1 ? ":\n" : ": ");
    out << array << '\n';
  }
  return out;
}

namespace {

/// The array in another dtype when that changes no value; floats may be rounded to another float.
bool convert_exactly(const Array& value, DType dtype, Array& result) {
  result = value.astype(dtype);
  if (is_float(value.dtype()) && is_float(dtype)) return true;
  return array_equal(result.astype(value.dtype()), value);
}

}  // namespace

Array Function::Impl::argument(const Arg& arg, const Variable& input, std::size_t position,
                               const std::string& function) {
  const auto fail = [&](const std::string& what) {
    throw CallError(fmt::format("[{}] argument {}{}: {}", function, position,
                                input.name().empty() ? "" : " (\"" + input.name() + "\")", what));
  };
  if (arg.kind_ == Arg::Kind::array) return arg.array_;
  if (arg.kind_ == Arg::Kind::list) {
    if (arg.array_.dtype() == input.dtype()) return arg.array_;
    Array result;
    if (convert_exactly(arg.array_, input.dtype(), result)) return result;
    fail(fmt::format("the numbers do not fit {} exactly", name_of(input.dtype())));
  }
  const LiteralValue& value = arg.literal_;
  bool exact = true;
  if (is_float(value.kind)) {
    exact = is_float(input.dtype());
  } else if (is_float(input.dtype())) {
    exact = true;
    const Array rounded = Array::full({}, value, input.dtype());
    exact = rounded.astype(DType::float64).item<double>() == value.real;
  } else if (is_bool(input.dtype())) {
    exact = is_bool(value.kind);
  }
  if (!exact) {
    fail(fmt::format("the number {} does not fit {} exactly", value.real, name_of(input.dtype())));
  }
  try {
    return Array::full({}, value, input.dtype());
  } catch (const UserError& error) {
    fail(error.what());
  }
  return {};
}

Outputs Function::Impl::run(std::span<const Array> arguments,
                            const std::shared_ptr<const Impl>& self) const {
  Outputs outputs = self->make_outputs(self);
  const std::span<Array> into = self->results(outputs);
  if (debug) {
    const auto call = [&] { program->run(arguments, into); };
    debug->run(arguments, into, std::ref(call));
  } else {
    program->run(arguments, into);
  }
  return outputs;
}

Outputs Function::Impl::make_outputs(const std::shared_ptr<const Impl>& self) const {
  if (output_names.empty()) return Outputs(user_outputs, nullptr, nullptr);
  return Outputs(user_outputs, &output_names, self);
}

std::span<Array> Function::Impl::results(Outputs& outputs) const {
  return {outputs.data(), outputs.size()};
}

const Function::Impl& Function::impl() const {
  if (impl_ == nullptr) {
    throw UserError("an empty Function was used: make one with function({inputs}, {outputs})");
  }
  return *impl_;
}

Outputs Function::operator()(const Arg& a, const Arg& b, const Arg& c, const Arg& d, const Arg& e,
                             const Arg& f, const Arg& g, const Arg& h) const {
  const Impl& mine = impl();
  const Arg* const args[] = {&a, &b, &c, &d, &e, &f, &g, &h};
  std::size_t count = std::size(args);
  while (count > 0 && args[count - 1]->kind_ == Arg::Kind::none) --count;
  LentArrays<std::size(args)> arrays;
  for (std::size_t i = 0; i < count; ++i) {
    // One too many is lent as it is: the count is what gets reported.
    if (args[i]->kind_ == Arg::Kind::array || i >= mine.inputs.size()) {
      arrays.lend(i, args[i]->array_);
    } else {
      arrays.own(i, Impl::argument(*args[i], mine.inputs[i], i, mine.name));
    }
  }
  return mine.run(arrays.first(count), impl_);
}

Outputs Function::call(std::span<const Array> arguments) const {
  return impl().run(arguments, impl_);
}

const std::string& Function::name() const { return impl().name; }
const std::vector<Variable>& Function::inputs() const { return impl().inputs; }
const std::vector<std::string>& Function::output_names() const { return impl().output_names; }
const std::vector<std::string>& Function::output_contexts() const { return impl().output_contexts; }

FunctionStatistics Function::statistics() const { return impl().statistics(); }

FunctionStatistics Function::Impl::statistics() const {
  const PlanStatistics s = program->statistics();
  return {.launches = s.launches,
          .library_calls = s.library_calls,
          .copies = s.copies,
          .messages = s.messages,
          .bytes_copied = s.bytes_copied,
          .bytes_read = s.bytes_read,
          .bytes_written = s.bytes_written,
          .bytes_in = s.bytes_in,
          .bytes_out = s.bytes_out,
          .temporary_bytes = s.arena_bytes,
          .calls = s.calls,
          .replays = s.replays,
          .specialisations = s.specialisations,
          .refreshed_shareds = s.refreshed_shareds,
          .modules_compiled = s.modules_compiled,
          .compile_ms = s.compile_ms};
}

namespace {

/// Where each output is computed; a copy at the end does not count.
std::vector<std::string> contexts_of_outputs(const Plan& plan) {
  std::vector<std::int32_t> copied_from(plan.slots.size(), -1);
  for (const Step& step : plan.steps) {
    if (step.kind == Step::Kind::copy) copied_from[step.slots[0]] = step.slots[1];
  }
  std::vector<std::string> result;
  for (std::int32_t slot : plan.outputs) {
    while (plan.slots[slot].kind == SlotKind::view || copied_from[slot] >= 0) {
      slot = copied_from[slot] >= 0 ? copied_from[slot] : plan.slots[slot].index;
    }
    result.push_back(plan.contexts[plan.slots[slot].context]);
  }
  return result;
}

}  // namespace

std::shared_ptr<Function::Impl> compile_function(FunctionGraph graph,
                                                 std::vector<std::string> output_names,
                                                 const Config& config,
                                                 const std::shared_ptr<Runtime>& runtime) {
  CompileContext context{config, runtime->default_context(),
                         [&](const std::string& name) {
                           TargetInfo target = runtime->target(name);
                           if (config.vector_bits() != 0 && target.backend == Backend::cpu) {
                             target.vector_bits = static_cast<int>(config.vector_bits());
                           }
                           return target;
                         },
                         [](const std::string& pass, const std::string& text) {
                           std::cerr << "after " << pass << ":\n" << text << '\n';
                         }};
  context.log = [](const std::string& line) { std::cerr << "croton: " + line + '\n'; };
  context.has_library_op = [&](const std::string& op, const std::string& name) {
    return runtime->context(name).device().library(op) != nullptr;
  };
  auto impl = std::make_shared<Function::Impl>();
  impl->name = graph.name;
  impl->config = config;
  impl->inputs = graph.graph.inputs;
  impl->output_names = std::move(output_names);
  impl->user_outputs = graph.user_outputs;
  impl->graph = std::move(graph);
  if (config.mode() == Mode::debug) {
    context.trace = std::make_shared<RewriteTrace>();
    impl->debug = std::make_unique<DebugCheck>(context.trace, impl->graph);
  }
  impl->optimized = optimize(impl->graph, context);
  std::vector<Program::Part> parts;
  impl->parts = make_parts(impl->graph, impl->optimized, context);
  for (FunctionPart& part : impl->parts) {
    parts.push_back({std::move(part.plan), part.taken});
  }
  impl->program = std::make_unique<Program>(runtime, std::move(parts), config);
  impl->output_contexts = contexts_of_outputs(impl->program->plan(impl->parts.size() - 1));
  return impl;
}

Function function(const std::vector<Variable>& inputs, const OutputList& outputs,
                  const FunctionOptions& options, Loc loc) {
  const Config config = options.config.value_or(current_config());
  config.check_scopes(process_config(), {FlagScope::building, FlagScope::compile},
                      "function(..., {.config = })");
  FunctionMaker maker(inputs, outputs, options, config, loc);
  const std::shared_ptr<Runtime> runtime = default_runtime();
  maker.bind_transfers(*runtime);
  Function result;
  result.impl_ =
      compile_function(std::move(maker.graph), std::move(maker.output_names), config, runtime);
  return result;
}

}  // namespace croton
