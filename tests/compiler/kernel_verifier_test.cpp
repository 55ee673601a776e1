// Each rule of the verifier, broken on its own in a kernel that holds.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "compiler/kernel/builder.h"
#include "croton/error.h"

using namespace croton;
using namespace croton::kernel;

namespace {

// Sums rows, checks an index, gathers, scales: some node of every kind.
Kernel sample() {
  Builder b;
  const int x = b.buffer(DType::float32, false);
  const int index = b.buffer(DType::int64, false);
  const int y = b.buffer(DType::float32, true, x);
  const Expr n = b.size(0);
  const Expr zero = b.i64(0);
  const Expr one = b.i64(1);
  const Expr row = b.block() * n;
  const int local = b.local(DType::float32, n);
  const std::vector<Accumulator> folds = {{Fold::sum, DType::float32},
                                          {Fold::argmax, DType::float32}};
  const Expr lanes = b.begin_lanes(n, folds, 2);
  const Expr v = b.load(x, row, one);
  b.accumulate(lanes, 0, v);
  b.accumulate(lanes, 1, v, lanes);
  b.store(local, zero, one, v);
  b.end(lanes);
  const Expr total = b.result(lanes, 0);
  const Expr best = b.cast(b.result(lanes, 1, 1), DType::float32);
  const Expr start = total + best;
  const Expr second = b.begin_lanes(n);
  const Expr at = b.load(index, row, one);
  const Expr inside = (zero <= at) & (at < n);
  b.check(inside, "index {value} of {bound}", at, n);
  const Expr picked = b.gather(x, at, inside);
  const Expr loop = b.begin_loop(n, {{Fold::prod, DType::float32, start.id}});
  b.accumulate(loop, 0, b.load(local, loop, zero));
  b.end(loop);
  const Expr product = b.result(loop, 0);
  const Expr bits = b.bitcast(picked, DType::int32) ^ 1;
  const Expr back = b.bitcast(bits, DType::float32);
  const Expr gamma = b.call("lgamma", b.unary(Unary::abs, back));
  const Expr chosen =
      b.select(inside, b.fma(gamma, product, picked), v.builder->constant(DType::float32, 2));
  b.store(y, row, one, chosen, inside);
  b.scatter(y, row + second, chosen);
  b.end(second);
  return b.finish();
}

// The first node of a kind, from the n-th on.
Node& first(Kernel& k, Op op, int skip = 0) {
  for (Node& n : k.nodes) {
    if (n.op == op && skip-- == 0) return n;
  }
  throw std::logic_error("the sample has no such node");
}

Id id_of(const Kernel& k, const Node& n) { return static_cast<Id>(&n - k.nodes.data()); }

Node& uniform_int(Kernel& k) { return first(k, Op::size); }

void rejected(const std::string& message, const std::function<void(Kernel&)>& spoil) {
  Kernel k = sample();
  spoil(k);
  INFO(message);
  try {
    verify(k);
  } catch (const InternalError& e) {
    CHECK_THAT(e.what(), Catch::Contains(message));
    return;
  }
  FAIL_CHECK("was accepted");
}

}  // namespace

TEST_CASE("a kernel that holds verifies", "[kernel]") { CHECK_NOTHROW(verify(sample())); }

TEST_CASE("the verifier names the node", "[kernel]") {
  rejected("kernel node %0 (size)", [](Kernel& k) { k.sizes = 0; });
}

TEST_CASE("the verifier rejects broken regions", "[kernel]") {
  rejected("in two regions", [](Kernel& k) { k.regions[0].push_back(k.regions[1][0]); });
  rejected("in no region", [](Kernel& k) { k.regions[1].pop_back(); });
  rejected("a region holds no node", [](Kernel& k) { k.regions[0].push_back(9999); });
  rejected("no body", [](Kernel& k) { k.regions.clear(); });
  rejected("the body is not there", [](Kernel& k) { first(k, Op::lanes).region = 99; });
  rejected("two owners",
           [](Kernel& k) { first(k, Op::lanes).region = first(k, Op::lanes, 1).region; });
  rejected("a body without", [](Kernel& k) { first(k, Op::lanes).region = -1; });
  rejected("a body without owner", [](Kernel& k) { k.regions.emplace_back(); });
  rejected("comes later", [](Kernel& k) {
    Region& body = k.regions[0];
    const auto product = std::find(body.begin(), body.end(), id_of(k, first(k, Op::binary)));
    std::rotate(body.begin(), product, product + 1);
  });
  rejected("out of scope",
           [](Kernel& k) { first(k, Op::store, 1).in[2] = id_of(k, first(k, Op::load)); });
  rejected("after its end",
           [](Kernel& k) { first(k, Op::scatter).in[0] = id_of(k, first(k, Op::lanes)); });
  rejected("lanes inside of lanes", [](Kernel& k) {
    Node& loop = first(k, Op::loop);
    loop.op = Op::lanes;
    loop.varying = true;
  });
}

TEST_CASE("the verifier rejects broken operands", "[kernel]") {
  rejected("an operand is missing", [](Kernel& k) { first(k, Op::fma).in[1] = kNone; });
  rejected("an operand is not there", [](Kernel& k) { first(k, Op::fma).in[1] = 9999; });
  rejected("too many operands", [](Kernel& k) { first(k, Op::cast).in[1] = 0; });
  rejected("has no value",
           [](Kernel& k) { first(k, Op::scatter).in[1] = id_of(k, first(k, Op::check)); });
  rejected("is not float32", [](Kernel& k) { first(k, Op::fma).in[0] = id_of(k, uniform_int(k)); });
  rejected("is not bool", [](Kernel& k) { first(k, Op::select).in[0] = 0; });
  rejected("is not int64",
           [](Kernel& k) { first(k, Op::check).in[1] = first(k, Op::check).in[0]; });
  rejected("varies over the lanes",
           [](Kernel& k) { first(k, Op::store, 1).in[0] = id_of(k, first(k, Op::lanes, 1)); });
  rejected("says uniform", [](Kernel& k) { first(k, Op::gather).varying = false; });
  rejected("says varying", [](Kernel& k) { first(k, Op::constant).varying = true; });
  rejected("says uniform", [](Kernel& k) { first(k, Op::result, 2).varying = false; });
}

TEST_CASE("any_lane makes a uniform value of a varying bool", "[kernel]") {
  Builder b;
  const int in = b.buffer(DType::float32, false), out = b.buffer(DType::boolean, true);
  const Expr n = b.size(0);
  const Expr whole = n > 7;
  CHECK(b.unary(Unary::any_lane, whole).id == whole.id);
  const Expr lanes = b.begin_lanes(n);
  const Expr some = b.load(in, b.i64(0), b.i64(1)) > 8;
  const Expr any = b.unary(Unary::any_lane, some);
  CHECK(some.varying());
  CHECK(!any.varying());
  CHECK_THROWS_AS(b.unary(Unary::any_lane, lanes), InternalError);
  b.store(out, b.i64(0), b.i64(1), some & any);
  b.end(lanes);
  Kernel kernel = b.finish();
  CHECK(to_text(kernel).find("any_lane") != std::string::npos);
  for (Node& node : kernel.nodes) {
    if (node.op == Op::unary) node.varying = true;
  }
  CHECK_THROWS_WITH(verify(kernel), Catch::Matchers::Contains("says varying"));
}

TEST_CASE("the verifier rejects operations that a dtype does not have", "[kernel]") {
  rejected("no not of float32",
           [](Kernel& k) { first(k, Op::unary).sub = std::uint8_t(Unary::logical_not); });
  rejected("no mul_hi of int64",
           [](Kernel& k) { first(k, Op::binary).sub = std::uint8_t(Binary::mul_hi); });
  rejected("no such unary", [](Kernel& k) { first(k, Op::unary).sub = 77; });
  rejected("no such binary", [](Kernel& k) { first(k, Op::binary).sub = 77; });
  rejected("the wrong dtype",
           [](Kernel& k) { first(k, Op::binary).sub = std::uint8_t(Binary::eq); });
  rejected("fma is of", [](Kernel& k) { first(k, Op::fma).dtype = DType::float16; });
  rejected("call is of", [](Kernel& k) { first(k, Op::call).dtype = DType::int32; });
  rejected("a function without name", [](Kernel& k) { k.names.clear(); });
  rejected("bitcast is between", [](Kernel& k) { first(k, Op::bitcast).dtype = DType::int64; });
  rejected("bits do not fit", [](Kernel& k) {
    first(k, Op::constant, 2).dtype = DType::int8;
    first(k, Op::constant, 2).bits = 256;
  });
}

TEST_CASE("the verifier rejects broken memory accesses", "[kernel]") {
  rejected("a buffer that is not there", [](Kernel& k) { first(k, Op::gather).index = 17; });
  rejected("another dtype than its buffer", [](Kernel& k) { first(k, Op::gather).index = 1; });
  rejected("only read", [](Kernel& k) {
    k.buffers[2].written = false;
    k.buffers[2].aliases = -1;
  });
  rejected("before its local node", [](Kernel& k) {
    Region& body = k.regions[0];
    const Id local = id_of(k, first(k, Op::local));
    body.erase(std::find(body.begin(), body.end(), local));
    body.push_back(local);
  });
  rejected("inside of a loop or lanes", [](Kernel& k) {
    Region& body = k.regions[0];
    const Id local = id_of(k, first(k, Op::local));
    body.erase(std::find(body.begin(), body.end(), local));
    k.regions[1].insert(k.regions[1].begin(), local);
  });
  rejected("without a local node", [](Kernel& k) {
    k.buffers.push_back({DType::float32, false, true, -1});
  });
  rejected("in the order of", [](Kernel& k) { first(k, Op::local).index = 2; });
  rejected("an argument after", [](Kernel& k) { k.buffers.push_back({}); });
  rejected("aliases is not an argument", [](Kernel& k) { k.buffers[2].aliases = 9; });
  rejected("only an output", [](Kernel& k) { k.buffers[0].aliases = 1; });
  rejected("aliases another output", [](Kernel& k) { k.buffers[0].written = true; });
  rejected("streaming", [](Kernel& k) { first(k, Op::scatter).streaming = true; });
  rejected("a check without message", [](Kernel& k) { k.checks.clear(); });
  rejected("a size argument", [](Kernel& k) { k.sizes = 0; });
  rejected("no threads", [](Kernel& k) { k.threads = 0; });
}

TEST_CASE("the verifier rejects broken folds", "[kernel]") {
  rejected("does not suit its fold",
           [](Kernel& k) { first(k, Op::lanes).accumulators[0].fold = Fold::any; });
  rejected("does not suit its fold",
           [](Kernel& k) { first(k, Op::lanes).accumulators[0].dtype = DType::bfloat16; });
  rejected("of lanes has a start value",
           [](Kernel& k) { first(k, Op::lanes).accumulators[0].init = 0; });
  rejected("take no start value",
           [](Kernel& k) { first(k, Op::loop).accumulators[0].fold = Fold::argmin; });
  rejected("a start value has another dtype",
           [](Kernel& k) { first(k, Op::loop).accumulators[0].init = 0; });
  rejected("a start value is not there",
           [](Kernel& k) { first(k, Op::loop).accumulators[0].init = 9999; });
  rejected("an accumulator that is not there",
           [](Kernel& k) { first(k, Op::accumulate).index = 5; });
  rejected("neither loop nor lanes", [](Kernel& k) { first(k, Op::accumulate).in[0] = 0; });
  rejected("outside of the body",
           [](Kernel& k) { first(k, Op::accumulate).in[0] = id_of(k, first(k, Op::loop)); });
  rejected("an operand is missing", [](Kernel& k) { first(k, Op::accumulate, 1).in[2] = kNone; });
  rejected("has not ended",
           [](Kernel& k) { first(k, Op::result).in[0] = id_of(k, first(k, Op::loop)); });
  rejected("a part that is not there", [](Kernel& k) { first(k, Op::result).part = 1; });
  rejected("unroll is", [](Kernel& k) { first(k, Op::lanes).unroll = 3; });
  rejected("unroll is", [](Kernel& k) { first(k, Op::loop).unroll = 2; });
  rejected("accumulators on what",
           [](Kernel& k) { first(k, Op::gather).accumulators.emplace_back(); });
}

TEST_CASE("a loop's accumulator is not folded into from lanes inside of it", "[kernel]") {
  Builder b;
  const int x = b.buffer(DType::float32, false);
  const int y = b.buffer(DType::float32, true);
  const Expr n = b.size(0);
  const Expr zero = b.i64(0);
  const Expr one = b.i64(1);
  const Expr loop = b.begin_loop(n, {{Fold::sum, DType::float32}});
  const Expr lanes = b.begin_lanes(n);
  b.accumulate(loop, 0, b.load(x, zero, one));
  b.end(lanes);
  b.end(loop);
  b.store(y, zero, zero, b.result(loop, 0));
  CHECK_THROWS_WITH(b.finish(), Catch::Contains("from lanes inside of it"));
}
