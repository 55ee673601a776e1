#include "compiler/graph/node.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <unordered_set>

#include "compiler/graph/infer.h"
#include "compiler/graph/op.h"
#include "croton/error.h"
#include "runtime/fork.h"
#include "runtime/shared_state.h"

namespace croton {

// A node that dies may be the last user of a chain of a million others, so they are released by a
// worklist instead of by recursion.
void release(const Node* node) {
  if (node->references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  std::vector<const Node*> dead{node};
  while (!dead.empty()) {
    Node* last = const_cast<Node*>(dead.back());
    dead.pop_back();
    for (Variable& input : last->inputs) {
      const Node* below = std::exchange(input.node_, nullptr);
      if (below != nullptr && below->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        dead.push_back(below);
      }
    }
    delete last;
  }
}

Variable::Variable(const Node* node, int output) : node_(node), output_(output) {
  if (node_ != nullptr) node_->references_.fetch_add(1, std::memory_order_relaxed);
}
Variable::Variable(const Variable& other) : Variable(other.node_, other.output_) {}
Variable::Variable(Variable&& other) noexcept
    : node_(std::exchange(other.node_, nullptr)), output_(other.output_) {}
Variable::~Variable() {
  if (node_ != nullptr) release(node_);
}
Variable& Variable::operator=(const Variable& other) & {
  Variable copy(other);
  std::swap(node_, copy.node_);
  std::swap(output_, copy.output_);
  return *this;
}
Variable& Variable::operator=(Variable&& other) & noexcept {
  std::swap(node_, other.node_);
  std::swap(output_, other.output_);
  return *this;
}

namespace {

const Node& checked(const Node* node) {
  if (node == nullptr) {
    throw GraphError(
        "an empty Variable was used: it was default constructed and never assigned; make one with "
        "matrix(\"x\"), shared(...) or an expression");
  }
  return *node;
}

std::atomic<std::uint64_t> next_id{1};

}  // namespace

DType Variable::dtype() const { return checked(node_).outputs[output_].dtype; }
int Variable::ndim() const {
  return static_cast<int>(checked(node_).outputs[output_].shape.size());
}
const Shape& Variable::static_shape() const { return checked(node_).outputs[output_].shape; }
const std::string& Variable::name() const { return *checked(node_).name; }
const std::string& Variable::context() const { return *checked(node_).context; }

const std::string* intern(std::string_view text) {
  static auto* const known = new std::unordered_set<std::string>();
  const std::lock_guard lock(names_mutex());
  return &*known->emplace(text).first;
}

std::string to_text(const Loc& loc) {
  std::string_view file = loc.file_name();
  const std::size_t slash = file.rfind('/');
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return fmt::format("{}:{}", file, loc.line());
}

std::string Type::to_text() const {
  if (shape.empty()) return fmt::format("{} scalar", name_of(dtype));
  return fmt::format("{} {}", name_of(dtype), shape.to_string());
}

std::uint64_t next_node_id() { return next_id.load(std::memory_order_relaxed); }

void relocate(const Variable& variable, std::uint64_t since, const Loc& loc) {
  std::vector<const Node*> todo;
  if (variable.defined()) todo.push_back(variable.node());
  std::unordered_set<const Node*> seen;
  while (!todo.empty()) {
    const Node* node = todo.back();
    todo.pop_back();
    if (node->id < since || !seen.insert(node).second) continue;
    const_cast<Node*>(node)->loc = loc;
    for (const Variable& input : node->inputs) todo.push_back(input.node());
  }
}

namespace {

const std::string* no_text() {
  static const std::string* const empty = intern("");
  return empty;
}

const std::shared_ptr<const Attrs>& no_attrs() {
  static const auto* const empty =
      new std::shared_ptr<const Attrs>(std::make_shared<const Attrs>());
  return *empty;
}

std::unique_ptr<Node> new_node(const OpDef& op, const Loc& loc) {
  auto node = std::make_unique<Node>();
  node->id = next_id.fetch_add(1, std::memory_order_relaxed);
  node->op = &op;
  node->attributes = no_attrs();
  node->context = no_text();
  node->name = no_text();
  node->loc = loc;
  return node;
}

std::vector<Type> infer_types(const OpDef& op, std::span<const Variable> inputs, const Attrs& attrs,
                              const Loc& loc) {
  std::vector<DimType> types;
  types.reserve(inputs.size());
  for (const Variable& input : inputs) {
    const Type& type = checked(input.node()).outputs[input.output()];
    DimType& dims = types.emplace_back(DimType{type.dtype, {}});
    for (const std::int64_t size : type.shape) {
      dims.shape.push_back(size == kAnyDim ? Dim() : Dim(size));
    }
  }
  Infer infer(op, inputs, attrs, loc, std::move(types));
  op.infer(infer);
  std::vector<Type> results;
  for (const DimType& result : infer.results()) {
    Type& type = results.emplace_back(Type{result.dtype, {}});
    if (result.shape.size() > kMaxRank) {
      infer.fail(fmt::format("the result would have {} axes; at most {} are possible",
                             result.shape.size(), kMaxRank));
    }
    for (const Dim& dim : result.shape) {
      type.shape.push_back(dim.is_number() ? dim.number() : kAnyDim);
    }
  }
  return results;
}

Variable finish(std::unique_ptr<Node> node) {
  node->outputs = infer_types(*node->op, node->inputs, node->attrs(), node->loc);
  return Variable(node.release(), 0);
}

}  // namespace

Variable apply(const OpDef& op, std::vector<Variable> inputs, Attrs attrs, const Loc& loc) {
  auto node = new_node(op, loc);
  node->inputs = std::move(inputs);
  if (!attrs.empty()) node->attributes = std::make_shared<const Attrs>(std::move(attrs));
  if (const std::string* scope = build_settings().context) node->context = scope;
  return finish(std::move(node));
}

Variable apply(std::string_view op, std::vector<Variable> inputs, Attrs attrs, const Loc& loc) {
  return apply(OpRegistry::instance().at(op), std::move(inputs), std::move(attrs), loc);
}

Variable with_inputs(const Node& old, std::vector<Variable> inputs) {
  auto node = new_node(*old.op, old.loc);
  node->inputs = std::move(inputs);
  node->attributes = old.attributes;
  node->context = old.context;
  node->beside = old.beside;
  node->name = old.name;
  node->value = old.value;
  node->shared = old.shared;
  node->graph = old.graph;
  return finish(std::move(node));
}

namespace {

Variable make_leaf(std::string_view op, Type type, std::string_view name, const Loc& loc,
                   const Array& value, std::shared_ptr<SharedState> shared) {
  auto node = new_node(OpRegistry::instance().at(op), loc);
  node->name = intern(name);
  node->outputs.push_back(std::move(type));
  node->value = value;
  node->shared = std::move(shared);
  return Variable(node.release(), 0);
}

}  // namespace

Variable make_input(Type type, std::string_view name, const Loc& loc) {
  return make_leaf("input", std::move(type), name, loc, {}, {});
}

Variable make_constant(const Array& value, const Loc& loc) {
  return make_leaf("constant", {value.dtype(), value.shape()}, "", loc, value.contiguous(), {});
}

Variable make_shared_node(std::shared_ptr<SharedState> state, Type type, std::string_view name,
                          const Loc& loc) {
  const std::string* context = intern(state->context);
  Variable variable = make_leaf("shared", std::move(type), name, loc, {}, std::move(state));
  const_cast<Node*>(variable.node())->context = context;
  return variable;
}

Variable shared_on(const Variable& shared, const std::string* context) {
  const Node& node = *shared.node();
  Variable variable = make_leaf("shared", node.outputs[0], *node.name, node.loc, {}, node.shared);
  const_cast<Node*>(variable.node())->context = context;
  return variable;
}

namespace {

std::string digits_of(const LiteralValue& value) {
  if (is_float(value.kind)) return fmt::format("{}", value.real);
  if (value.kind == DType::uint64) {
    return fmt::format("{}", static_cast<std::uint64_t>(value.integer));
  }
  return fmt::format("{}", value.integer);
}

}  // namespace

Variable make_scalar(DType dtype, const LiteralValue& value, const Loc& loc) {
  Array array;
  try {
    array = Array::full({}, value, dtype);
  } catch (const UserError&) {
    throw GraphError(fmt::format("[{}] the number {} does not fit {}; at {}",
                                 title_of(loc, "constant"), digits_of(value), name_of(dtype),
                                 to_text(loc)));
  }
  return make_constant(array, loc);
}

Variable Operand::variable() const {
  if (const Variable* variable = std::get_if<Variable>(&value_)) {
    checked(variable->node());
    return *variable;
  }
  if (const Array* array = std::get_if<Array>(&value_)) return make_constant(*array, loc_);
  const LiteralValue& value = literal();
  return make_scalar(is_float(value.kind) ? build_settings().float_x : value.kind, value, loc_);
}

Index::Index(std::initializer_list<int> list, Loc loc) : loc_(loc) {
  const std::vector<std::int64_t> values(list.begin(), list.end());
  value_ = make_constant(Array::from<std::int64_t>(values), loc);
}

namespace {

/// The dtype that a literal takes beside operands of dtype `other`.
DType literal_dtype(std::string_view op, const Operand& operand, DType other) {
  const LiteralValue& value = operand.literal();
  if (is_float(value.kind)) {
    if (!is_float(other)) return build_settings().float_x;
    const double limit = other == DType::float16    ? 65520.0
                         : other == DType::bfloat16 ? 3.3961775292304600e38
                         : other == DType::float32  ? 3.4028235677973366e38
                                                    : std::numeric_limits<double>::infinity();
    if (std::isfinite(value.real) && std::abs(value.real) >= limit) {
      throw GraphError(fmt::format(
          "[{}] the literal {} is too large for {}: cast the operand or "
          "write a smaller number; at {}",
          title_of(operand.loc(), op), digits_of(value), name_of(other), to_text(operand.loc())));
    }
    return other;
  }
  if (value.kind == DType::boolean) return other;
  if (is_bool(other)) return value.kind;
  if (is_float(other)) return other;
  const int bits = static_cast<int>(size_of(other)) * 8;
  const bool negative = value.real < 0;
  bool fits = true;
  if (is_unsigned(other)) {
    fits = !negative && (bits == 64 || value.real < std::ldexp(1.0, bits));
  } else {
    const double top = std::ldexp(1.0, bits - 1);
    fits = value.kind != DType::uint64 && value.real >= -top && (bits == 64 || value.real < top);
  }
  if (!fits) {
    throw GraphError(fmt::format(
        "[{}] the literal {} does not fit {}: cast the operand to a wider "
        "dtype first, for instance x.astype(DType::int64); at {}",
        title_of(operand.loc(), op), digits_of(value), name_of(other), to_text(operand.loc())));
  }
  return other;
}

}  // namespace

std::vector<Variable> resolve(std::string_view op, std::span<const Operand> operands) {
  const bool numpy_policy = build_settings().numpy_policy;
  std::vector<Variable> result(operands.size());
  std::optional<DType> joint;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_literal()) continue;
    result[i] = operands[i].variable();
    const DType dtype = result[i].dtype();
    joint = joint ? promote(*joint, dtype, numpy_policy) : dtype;
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].is_literal()) continue;
    result[i] = joint ? make_scalar(literal_dtype(op, operands[i], *joint), operands[i].literal(),
                                    operands[i].loc())
                      : operands[i].variable();
  }
  return result;
}

bool is_op(const Variable& variable, std::string_view op) {
  return variable.defined() && variable.node()->op->name == op;
}

const Array* constant_value(const Variable& variable) {
  return is_op(variable, "constant") ? &variable.node()->value : nullptr;
}

bool is_constant(const Variable& variable, double value) {
  const Array* array = constant_value(variable);
  if (array == nullptr || array->size() == 0 || array->size() > 4096) return false;
  for (const double element : array->astype(DType::float64).to_vector<double>()) {
    if (element != value) return false;
  }
  return true;
}

}  // namespace croton
