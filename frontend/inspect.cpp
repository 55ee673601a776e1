#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "compiler/fuse/group.h"
#include "compiler/fuse/own_kernels.h"
#include "compiler/fuse/schedule.h"
#include "compiler/graph/op.h"
#include "compiler/kernel/kernel.h"
#include "compiler/plan/shapes.h"
#include "croton/error.h"
#include "croton/printing.h"
#include "frontend/default_runtime.h"
#include "frontend/function_impl.h"
#include "frontend/graph_tree.h"
#include "runtime/runtime.h"
#include "runtime/shared_state.h"

namespace croton {
namespace {

TargetInfo cuda_target(int sm) {
  TargetInfo target;
  target.backend = Backend::cuda;
  target.sm = sm;
  target.multiprocessors = 132;
  return target;
}

/// The groups of a part, worked out again as the compiler did.
class Groups {
 public:
  Groups(const FunctionPart& part, const Config& config)
      : shapes_(part.optimized.graph, shareds_of(part.optimized), dims_, &part.written.graph) {
    list = fuse(part.optimized.graph, shapes_, config.fuse() && config.mode() != Mode::fast_compile,
                [&](const Node& producer, const Node& root, const char* reason) {
                  apart.push_back(fmt::format("{} ({}) and {} ({}): {}", producer.op->name,
                                              to_text(producer.loc), root.op->name,
                                              to_text(root.loc), reason));
                });
    use_own_kernels(list, [](const std::string& name) { return default_runtime()->target(name); });
    for (const FusionGroup& group : list) {
      if (group.kind == GroupKind::view) continue;
      for (const Node* node : group.nodes) number_.emplace(node, steps_);
      steps_ += launches_of(group);
    }
  }

  /// The number of the step that computes a node, the first one where it takes two; -1 for leaves
  /// and views, and what each reader computes itself.
  int number_of(const Node& node) const {
    const auto found = number_.find(&node);
    return found == number_.end() ? -1 : found->second;
  }

  /// "12288 bytes", or a product with "?" where sizes are known in the call only.
  std::string bytes_of(const Variable& v) const {
    std::int64_t bytes = static_cast<std::int64_t>(size_of(v.dtype()));
    std::string open;
    for (const Dim& size : shapes_.of(v).shape) {
      if (size.is_number()) {
        bytes *= size.number();
      } else {
        open += fmt::format(" * {}", dims_.to_text(size));
      }
    }
    return fmt::format("{}{} bytes", bytes, open);
  }

  const Shapes& shapes() const { return shapes_; }

 private:
  int launches_of(const FusionGroup& group) const {
    if (group.kind != GroupKind::reduce && group.kind != GroupKind::kernel) return 1;
    const TargetInfo& target = default_runtime()->target(*group.context);
    return static_cast<int>(schedule(group, shapes_, target).launches.size());
  }

  DimTable dims_;
  Shapes shapes_;
  int steps_ = 0;
  std::unordered_map<const Node*, int> number_;

 public:
  std::vector<std::string> apart;  ///< why values have kernels of their own
  std::vector<FusionGroup> list;
};

const char* word_for(GroupKind kind) {
  switch (kind) {
    case GroupKind::map:
    case GroupKind::row:
    case GroupKind::reduce:
    case GroupKind::kernel:
      return "kernel";
    case GroupKind::library:
      return "call";
    case GroupKind::copy:
      return "copy";
    case GroupKind::view:
      return "view";
  }
  return "";
}

/// One line a group, "step 2 on dev0, kernel: mul add tanh", then why others did not join.
std::string fused_text(const Groups& groups) {
  std::string text;
  for (const FusionGroup& group : groups.list) {
    if (group.kind == GroupKind::view) continue;
    std::vector<std::string> names;
    for (const Node* node : group.nodes) names.push_back(node->op->name);
    text += fmt::format("step {} on {}, {}: {}", groups.number_of(*group.nodes[0]), *group.context,
                        word_for(group.kind), fmt::join(names, " "));
    if (group.kind == GroupKind::copy) {
      const Variable& source = group.nodes[0]->inputs[0];
      text += fmt::format(" of {} from {}", groups.bytes_of(source), source.context());
    }
    text += '\n';
  }
  for (const std::string& line : groups.apart) text += fmt::format("apart: {}\n", line);
  return text;
}

/// The text with sizes by the names of inputs: "x.shape[0]" for "in0.shape[0]".
std::string with_names(std::string text, const Plan& plan) {
  std::string result;
  std::size_t done = 0;
  for (std::size_t at = text.find("in"); at != text.npos; at = text.find("in", at + 1)) {
    const std::size_t digits = at + 2;
    const std::size_t end = text.find_first_not_of("0123456789", digits);
    const bool word = at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0 ||
                                 text[at - 1] == '_');
    if (word || end == digits || end == text.npos || text.compare(end, 7, ".shape[") != 0) continue;
    const std::size_t number = std::stoul(text.substr(digits, end - digits));
    const std::size_t inputs = plan.inputs.size();
    const std::string name = number < inputs ? plan.inputs[number].name
                             : number - inputs < plan.shareds.size()
                                 ? plan.shareds[number - inputs]->name
                                 : std::string();
    if (name.empty()) continue;
    result += text.substr(done, at - done) + name;
    done = end;
  }
  return result + text.substr(done);
}

std::string kernels_text(const Groups& groups, const TargetInfo& target) {
  std::string text;
  for (const FusionGroup& group : groups.list) {
    if (word_for(group.kind) != std::string_view("kernel")) continue;
    int step = groups.number_of(*group.nodes[0]);
    for (const KernelLaunch& launch : schedule(group, groups.shapes(), target).launches) {
      text += fmt::format("# step {}: {}\n{}\n", step++, launch.kernel.name,
                          kernel::to_text(launch.kernel));
    }
  }
  return text;
}

/// The text of each part, headed by its number where there are several.
template <class TextOf>
std::string of_parts(const Function::Impl& function, const TextOf& text_of) {
  std::string text;
  for (std::size_t s = 0; s < function.parts.size(); ++s) {
    if (function.parts.size() > 1) text += fmt::format("# part {}\n", s);
    text += text_of(function.parts[s], function.program->plan(s));
  }
  return text;
}

/// The modules that a part would have if all contexts were devices like `target`.
std::string modules_text(const Function::Impl& function, const FunctionPart& part,
                         const TargetInfo& target) {
  const CompileContext context{function.config,
                               default_runtime()->default_context(),
                               [&](const std::string&) { return target; },
                               {}};
  const Plan plan = make_plan(part.optimized, context, &part.written.graph);
  std::vector<bool> variant(plan.modules.size(), false);
  for (const PlanKernel& kernel : plan.kernels) {
    if (kernel.streaming_module >= 0) variant[kernel.streaming_module] = true;
    if (kernel.rare) variant[kernel.module] = true;
  }
  std::string text;
  for (std::size_t i = 0; i < plan.modules.size(); ++i) {
    if (!variant[i]) text += plan.modules[i].text;
  }
  return text;
}

void print_values(TreePrinter& printer, const FunctionGraph& function,
                  const std::vector<std::string>& names) {
  const Graph& graph = function.graph;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    std::string title = fmt::format("output {}: ", i);
    if (i >= function.user_outputs) {
      const Node& target = *function.updated[i - function.user_outputs].node();
      title = fmt::format("update of {}: ", target.shared->title());
    } else if (i < names.size() && !names[i].empty()) {
      title = fmt::format("output {} '{}': ", i, names[i]);
    }
    printer.print(graph.outputs[i], title);
  }
}

}  // namespace

std::string debug_text(const Function& f, const PrintOptions& options) {
  const Function::Impl& function = f.impl();
  std::string text = fmt::format("function {}\n\nbefore compilation:\n", function.name);
  TreePrinter before(options);
  print_values(before, function.graph, function.output_names);
  return text + before.text + of_parts(function, [&](const FunctionPart& part, const Plan& plan) {
           const Groups groups(part, function.config);
           TreePrinter after(options);
           after.note = [&](const Node& node) {
             const int number = groups.number_of(node);
             if (number < 0) return std::string();
             std::string note = fmt::format(" -> step {}", number);
             if (node.op->form == OpForm::move) {
               const Variable& source = node.inputs[0];
               note += fmt::format(" ({} from {})", groups.bytes_of(source), source.context());
             }
             return note;
           };
           const bool last = &part == &function.parts.back();
           print_values(after, part.optimized,
                        last ? function.output_names : std::vector<std::string>());
           return with_names("\nafter compilation:\n" + after.text + "\nfused:\n" +
                                 fused_text(groups) + '\n' + to_text(plan),
                             plan);
         });
}

Inspection inspect(const Function& f, const InspectOptions& options) {
  if (options.sm < 50 || options.sm > 999) {
    throw UserError(
        fmt::format("[inspect] sm is the compute capability times ten, such as 90 for "
                    "9.0: got {}",
                    options.sm));
  }
  const Function::Impl& function = f.impl();
  const TargetInfo host = host_target(), gpu = cuda_target(options.sm);
  const auto modules = [&](const TargetInfo& target) {
    return of_parts(function, [&](const FunctionPart& part, const Plan&) {
      return modules_text(function, part, target);
    });
  };
  return {to_text(function.graph.graph),
          to_text(function.optimized.graph),
          of_parts(function,
                   [&](const FunctionPart& part, const Plan& plan) {
                     return with_names(fused_text(Groups(part, function.config)), plan);
                   }),
          of_parts(function, [&](const FunctionPart&,
                                 const Plan& plan) { return with_names(to_text(plan), plan); }),
          of_parts(function,
                   [&](const FunctionPart& part, const Plan&) {
                     return kernels_text(Groups(part, function.config), host);
                   }),
          modules(host),
          modules(gpu)};
}

}  // namespace croton
