#include "compiler/kernel/builder.h"

#include <algorithm>
#include <utility>

#include "compiler/kernel/evaluate.h"
#include "croton/error.h"

namespace croton::kernel {
namespace {

void mix(std::uint64_t& hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 29;
}

// Of everything that makes two shareable nodes equal.
std::uint64_t hash_of(const Node& n) {
  std::uint64_t hash = static_cast<std::uint64_t>(n.op) | static_cast<std::uint64_t>(n.dtype) << 8 |
                       static_cast<std::uint64_t>(n.sub) << 16 |
                       static_cast<std::uint64_t>(static_cast<std::uint32_t>(n.index)) << 32;
  mix(hash, n.bits);
  mix(hash, static_cast<std::uint32_t>(n.part));
  for (Id id : n.in) mix(hash, static_cast<std::uint32_t>(id));
  return hash;
}

bool equal(const Node& a, const Node& b) {
  return a.op == b.op && a.dtype == b.dtype && a.sub == b.sub && a.index == b.index &&
         a.part == b.part && a.bits == b.bits && std::equal(a.in, a.in + 4, b.in);
}

bool has_arithmetic(DType t) { return is_integer(t) || t == DType::float32 || t == DType::float64; }

bool computes_in_float(DType t) { return t == DType::float32 || t == DType::float64; }

bool is_comparison(Binary op) {
  return op == Binary::eq || op == Binary::ne || op == Binary::lt || op == Binary::le;
}

Node leaf(Op op, DType dtype) {
  Node node;
  node.op = op;
  node.dtype = dtype;
  return node;
}

Node constant_node(DType dtype, std::uint64_t bits) {
  Node node = leaf(Op::constant, dtype);
  node.bits = bits;
  return node;
}

}  // namespace

Builder::Builder(int threads) {
  kernel_.threads = threads;
  kernel_.regions.emplace_back();
  parent_.push_back(-1);
  scopes_.emplace_back();
}

// ---- Arguments and leaves ----

int Builder::buffer(DType dtype, bool written, std::int32_t aliases) {
  internal_check(kernel_.nodes.empty(), "buffers are declared before any node of the kernel");
  kernel_.buffers.push_back({dtype, true, written, aliases});
  return static_cast<int>(kernel_.buffers.size()) - 1;
}

Expr Builder::size(int index) {
  internal_check(index >= 0, "a size argument has a negative index");
  kernel_.sizes = std::max(kernel_.sizes, index + 1);
  Node node = leaf(Op::size, DType::int64);
  node.index = index;
  return add(node, Place::hoisted);
}

Expr Builder::block() { return add(leaf(Op::block, DType::int64), Place::hoisted); }

Expr Builder::constant(DType dtype, double value) { return bits(dtype, bits_of(dtype, value)); }

Expr Builder::integer(DType dtype, std::int64_t value) {
  return bits(dtype, bits_of_integer(dtype, value));
}

Expr Builder::bits(DType dtype, std::uint64_t pattern) {
  return add(constant_node(dtype, pattern), Place::hoisted);
}

bool Builder::is_constant(Expr x, double value) const {
  const Node& n = node(x.id);
  return n.op == Op::constant && n.bits == bits_of(n.dtype, value) &&
         as_double(n.dtype, n.bits) == value;
}

// ---- Arithmetic ----

Expr Builder::unary(Unary op, Expr x) {
  const DType t = x.dtype();
  bool fits = has_arithmetic(t);
  if (op == Unary::logical_not || op == Unary::any_lane) {
    fits = t == DType::boolean;
  } else if (op >= Unary::sqrt) {
    fits = computes_in_float(t);
  }
  internal_check(fits, "a unary kernel node of a dtype that has no such operation");
  Node node = leaf(Op::unary, t);
  node.sub = static_cast<std::uint8_t>(op);
  node.in[0] = x.id;
  return value(node);
}

Expr Builder::binary(Binary op, Expr a, Expr b) {
  const DType t = a.dtype();
  internal_check(t == b.dtype(), "a binary kernel node has operands of two dtypes");
  bool fits = has_arithmetic(t);
  if (op >= Binary::bit_and && op <= Binary::bit_xor) fits = is_integer(t) || is_bool(t);
  if (op == Binary::shl || op == Binary::shr) fits = is_integer(t);
  if (op == Binary::eq || op == Binary::ne) fits = has_arithmetic(t) || is_bool(t);
  if (op == Binary::mul_hi) fits = t == DType::uint32;
  internal_check(fits, "a binary kernel node of a dtype that has no such operation");
  Node node = leaf(Op::binary, is_comparison(op) ? DType::boolean : t);
  node.sub = static_cast<std::uint8_t>(op);
  node.in[0] = a.id;
  node.in[1] = b.id;
  return value(node);
}

Expr Builder::fma(Expr a, Expr b, Expr c) {
  const DType t = a.dtype();
  internal_check(computes_in_float(t) && b.dtype() == t && c.dtype() == t,
                 "fma needs three operands of float32 or of float64");
  Node node = leaf(Op::fma, t);
  node.in[0] = a.id;
  node.in[1] = b.id;
  node.in[2] = c.id;
  return value(node);
}

Expr Builder::select(Expr condition, Expr a, Expr b) {
  internal_check(condition.dtype() == DType::boolean && a.dtype() == b.dtype(),
                 "select needs a bool and two values of one dtype");
  Node node = leaf(Op::select, a.dtype());
  node.in[0] = condition.id;
  node.in[1] = a.id;
  node.in[2] = b.id;
  return value(node);
}

Expr Builder::cast(Expr x, DType dtype) {
  Node node = leaf(Op::cast, dtype);
  node.in[0] = x.id;
  return value(node);
}

Expr Builder::bitcast(Expr x, DType dtype) {
  const DType from = x.dtype();
  internal_check(size_of(from) == size_of(dtype) && is_bool(from) == is_bool(dtype),
                 "bitcast needs two dtypes of one size");
  Node node = leaf(Op::bitcast, dtype);
  node.in[0] = x.id;
  return value(node);
}

Expr Builder::call(std::string_view name, Expr a, Expr b) {
  internal_check(computes_in_float(a.dtype()) && (b.id == kNone || b.dtype() == a.dtype()),
                 "call needs operands of float32 or of float64");
  auto& names = kernel_.names;
  auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) found = names.insert(names.end(), std::string(name));
  Node node = leaf(Op::call, a.dtype());
  node.index = static_cast<std::int32_t>(found - names.begin());
  node.in[0] = a.id;
  node.in[1] = b.id;
  return add(node, Place::hoisted);
}

// ---- Memory ----

const Buffer& Builder::buffer_of(int buffer) const {
  internal_check(buffer >= 0 && buffer < static_cast<int>(kernel_.buffers.size()),
                 "a kernel node names a buffer that is not there");
  return kernel_.buffers[buffer];
}

void Builder::bound(int buffer, Expr elements) { bounds_[buffer] = elements; }

Expr Builder::lane_counter() {
  for (const Scope& scope : scopes_) {
    if (scope.lanes) return {this, scope.owner};
  }
  return i64(0);
}

Expr Builder::guard(int buffer, Expr index, Expr mask) {
  const auto found = bounds_.find(buffer);
  if (found == bounds_.end()) return mask;
  const Expr elements = found->second;
  const Expr inside = (i64(0) <= index) & (index < elements);
  const bool masked = mask.id != kNone;
  check(masked ? inside | !mask : inside,
        "check_bounds: a kernel touches element {value} of a buffer of {bound}", index, elements);
  return masked ? mask & inside : inside;
}

Expr Builder::load(int buffer, Expr base, Expr stride, Expr mask) {
  if (bounds_.contains(buffer)) mask = guard(buffer, base + stride * lane_counter(), mask);
  const Buffer& b = buffer_of(buffer);
  Node node = leaf(Op::load, b.dtype);
  node.index = buffer;
  node.in[0] = base.id;
  // Outside of lanes the counter is 0, so that the stride says nothing.
  node.in[1] = in_lanes() ? stride.id : i64(0).id;
  node.in[2] = mask.id;
  return add(node, b.written ? Place::here : Place::shared);
}

Expr Builder::gather(int buffer, Expr index, Expr mask) {
  mask = guard(buffer, index, mask);
  const Buffer& b = buffer_of(buffer);
  Node node = leaf(Op::gather, b.dtype);
  node.index = buffer;
  node.in[0] = index.id;
  node.in[1] = mask.id;
  return add(node, b.written ? Place::here : Place::shared);
}

void Builder::store(int buffer, Expr base, Expr stride, Expr value, Expr mask, bool streaming) {
  if (bounds_.contains(buffer)) mask = guard(buffer, base + stride * lane_counter(), mask);
  Node node = leaf(Op::store, buffer_of(buffer).dtype);
  internal_check(value.dtype() == node.dtype, "a stored value has another dtype than the buffer");
  node.index = buffer;
  node.streaming = streaming;
  node.in[0] = base.id;
  node.in[1] = in_lanes() ? stride.id : i64(0).id;
  node.in[2] = value.id;
  node.in[3] = mask.id;
  add(node, Place::here);
}

void Builder::scatter(int buffer, Expr index, Expr value, Expr mask) {
  add_scatter(buffer, index, value, mask, false);
}

bool Builder::can_scatter_add(DType dtype) {
  return (is_integer(dtype) && size_of(dtype) >= 4) || computes_in_float(dtype);
}

void Builder::scatter_add(int buffer, Expr index, Expr value, Expr mask) {
  internal_check(can_scatter_add(value.dtype()), "a scatter of a dtype that cannot add");
  add_scatter(buffer, index, value, mask, true);
}

void Builder::add_scatter(int buffer, Expr index, Expr value, Expr mask, bool adds) {
  mask = guard(buffer, index, mask);
  Node node = leaf(Op::scatter, buffer_of(buffer).dtype);
  internal_check(value.dtype() == node.dtype, "a stored value has another dtype than the buffer");
  node.index = buffer;
  node.sub = adds ? 1 : 0;
  node.in[0] = index.id;
  node.in[1] = value.id;
  node.in[2] = mask.id;
  add(node, Place::here);
}

int Builder::local(DType dtype, Expr size) {
  Node node = leaf(Op::local, dtype);
  node.index = static_cast<std::int32_t>(kernel_.buffers.size());
  node.in[0] = size.id;
  kernel_.buffers.push_back({dtype, false, true, -1});
  internal_check(scopes_.size() == 1, "a local array is declared outside of loops and lanes");
  add(node, Place::here);
  if (!bounds_.empty()) bound(node.index, size);
  return node.index;
}

void Builder::check(Expr ok, std::string message, Expr value, Expr bound, CheckPlace place) {
  Node node = leaf(Op::check, DType::boolean);
  node.index = static_cast<std::int32_t>(kernel_.checks.size());
  node.in[0] = ok.id;
  node.in[1] = value.id;
  node.in[2] = bound.id;
  kernel_.checks.push_back(std::move(message));
  kernel_.places.push_back(std::move(place));
  add(node, Place::here);
}

Expr Builder::bounded(Expr x) {
  kernel_.nodes[x.id].bounded = true;
  return x;
}

// ---- Regions ----

Expr Builder::begin(Op op, Expr extent, std::vector<Accumulator> accumulators, int unroll) {
  internal_check(op != Op::lanes || !in_lanes(), "lanes inside of lanes");
  Node node = leaf(op, DType::int64);
  node.in[0] = extent.id;
  node.unroll = static_cast<std::uint8_t>(unroll);
  node.accumulators = std::move(accumulators);
  node.region = static_cast<std::int32_t>(kernel_.regions.size());
  const int outer = scopes_.back().region;
  const int region = node.region;
  kernel_.regions.emplace_back();
  parent_.push_back(outer);
  const Expr counter = add(std::move(node), Place::here);
  home_[counter.id] = region;
  Scope scope;
  scope.region = region;
  scope.lanes = op == Op::lanes;
  scope.owner = counter.id;
  scopes_.push_back(std::move(scope));
  return counter;
}

Expr Builder::begin_loop(Expr extent, std::vector<Accumulator> accumulators) {
  return begin(Op::loop, extent, std::move(accumulators), 1);
}

Expr Builder::begin_lanes(Expr extent, std::vector<Accumulator> accumulators, int unroll) {
  return begin(Op::lanes, extent, std::move(accumulators), unroll);
}

void Builder::accumulate(Expr loop, int accumulator, Expr value, Expr index) {
  Node node = leaf(Op::accumulate, value.dtype());
  node.index = accumulator;
  node.in[0] = loop.id;
  node.in[1] = value.id;
  node.in[2] = index.id;
  add(node, Place::here);
}

void Builder::end(Expr loop) {
  internal_check(scopes_.size() > 1 && scopes_.back().owner == loop.id,
                 "a region is ended that is not the innermost open one");
  scopes_.pop_back();
}

Expr Builder::result(Expr loop, int accumulator, int part) {
  const Node& owner = node(loop.id);
  internal_check(owner.region >= 0 && accumulator >= 0 &&
                     accumulator < static_cast<int>(owner.accumulators.size()),
                 "a result names an accumulator that is not there");
  Node node = leaf(Op::result, part ? DType::int64 : owner.accumulators[accumulator].dtype);
  node.index = accumulator;
  node.part = part;
  node.in[0] = loop.id;
  return add(node, Place::hoisted);
}

Kernel Builder::finish() {
  internal_check(scopes_.size() == 1, "a kernel ends inside of a loop or lanes");
  compact(kernel_);
  form_fma(kernel_);
  verify(kernel_);
  set_name(kernel_);
  return std::move(kernel_);
}

// ---- Placing nodes ----

bool Builder::in_lanes() const {
  return std::any_of(scopes_.begin(), scopes_.end(), [](const Scope& s) { return s.lanes; });
}

std::size_t Builder::scope_of(Id operand) const {
  for (std::size_t i = scopes_.size(); i-- > 0;) {
    if (scopes_[i].region == home_[operand]) return i;
  }
  internal_check(false, "an operand is used outside of the loop or lanes that computes it");
  return 0;
}

// The outermost scope that sees all operands and means the same as here.
std::size_t Builder::scope_of(const Node& n) const {
  if (n.op == Op::result) {
    const int outer = parent_[node(n.in[0]).region];
    for (std::size_t i = scopes_.size(); i-- > 0;) {
      internal_check(scopes_[i].owner != n.in[0], "a result is read before its loop has ended");
      if (scopes_[i].region == outer) return i;
    }
    internal_check(false, "a result is used outside of the region that holds its loop");
  }
  std::size_t scope = 0;
  for (Id id : n.in) {
    if (id != kNone) scope = std::max(scope, scope_of(id));
  }
  const bool strided = n.op == Op::load && !is_constant(Expr{nullptr, n.in[1]}, 0);
  for (std::size_t i = scope; strided && i < scopes_.size(); ++i) {
    if (scopes_[i].lanes) scope = i;
  }
  return scope;
}

Id Builder::find(const Node& node, std::uint64_t hash, std::size_t scope) const {
  const auto found = scopes_[scope].known.find(hash);
  if (found == scopes_[scope].known.end()) return kNone;
  return equal(kernel_.nodes[found->second], node) ? found->second : kNone;
}

Id Builder::append(Node node, std::size_t scope) {
  const Id id = static_cast<Id>(kernel_.nodes.size());
  node.varying = varying_of(node);
  kernel_.nodes.push_back(std::move(node));
  home_.push_back(scopes_[scope].region);
  Region& region = kernel_.regions[scopes_[scope].region];
  // An open scope's owner is the last node of the scope around it.
  region.insert(scope + 1 < scopes_.size() ? region.end() - 1 : region.end(), id);
  return id;
}

Expr Builder::add(Node node, Place place) {
  for (const Accumulator& a : node.accumulators) {
    if (a.init != kNone) scope_of(a.init);
  }
  const std::size_t outermost = scope_of(node);
  const std::size_t innermost = scopes_.size() - 1;
  if (place == Place::here) return {this, append(std::move(node), innermost)};
  const std::uint64_t hash = hash_of(node);
  const std::size_t target = place == Place::hoisted ? outermost : innermost;
  for (std::size_t scope = target + 1; scope-- > outermost;) {
    if (const Id id = find(node, hash, scope); id != kNone) return {this, id};
  }
  const Id id = append(std::move(node), target);
  scopes_[target].known[hash] = id;
  return {this, id};
}

Expr Builder::value(Node node) {
  if (const Id id = simplify(node); id != kNone) return {this, id};
  return add(std::move(node), Place::hoisted);
}

bool Builder::varying_of(const Node& n) const {
  switch (n.op) {
    case Op::constant:
    case Op::size:
    case Op::block:
    case Op::loop:
      return false;
    case Op::lanes:
      return true;
    case Op::unary:
      if (static_cast<Unary>(n.sub) == Unary::any_lane) return false;
      break;
    case Op::result: {
      // Of a loop inside of lanes each lane has its own.
      if (node(n.in[0]).op == Op::lanes) return false;
      return std::any_of(scopes_.begin(), scopes_.begin() + scope_of(n) + 1,
                         [](const Scope& s) { return s.lanes; });
    }
    case Op::load:
      if (in_lanes() && !is_constant(Expr{nullptr, n.in[1]}, 0)) return true;
      break;
    default:
      break;
  }
  return std::any_of(n.in, n.in + 4, [&](Id id) { return id != kNone && node(id).varying; });
}

}  // namespace croton::kernel
