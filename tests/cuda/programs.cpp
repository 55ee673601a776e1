// Whole programs on GPUs: several contexts, updates, repeated calls. Runs with
// contexts=dev0->cuda0;dev1->cuda1;again->cuda0;host->cpu. Those marked [host] compile for the CPU
// too.
#include <dlfcn.h>

#include <string>
#include <thread>

#include "tests/cuda/both.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

const Array kA = {{1.0, 2.0}, {3.0, 4.0}};
const Array kB = {{5.0, 6.0}, {7.0, 8.0}};

}  // namespace

TEST_CASE("two contexts work side by side and their results come to the host", "[programs]") {
  Shared a = shared(kA, {.name = "a", .target = "dev0"});
  Shared b = shared(kB, {.name = "b", .target = "dev1"});
  Function f = function({}, {a * a, b * b});
  for (int i = 0; i < 4; ++i) {
    const Outputs out = f();
    CHECK(out[0].context() == "cpu");
    CHECK(array_equal(out[0], Array({{1.0, 4.0}, {9.0, 16.0}})));
    CHECK(array_equal(out[1], Array({{25.0, 36.0}, {49.0, 64.0}})));
  }
  CHECK(f.output_contexts() == std::vector<std::string>{"dev0", "dev1"});
}

TEST_CASE("values go from one GPU to another, to the CPU and back", "[programs][host]") {
  const Array large = floats({300, 1000}, DType::float32, 9, false);
  Shared a = shared(large, {.target = "dev0"});
  Variable there = (a * 2).transfer("dev1") + 1;
  Variable host = (there * 3).transfer("host") - 4;
  Variable back = host.transfer("dev0") * a;
  Variable same = (a + 5).transfer("again") * 2;
  Function f = function({}, {there, host, back, same});
  for (int i = 0; i < 3; ++i) {
    const Outputs out = f();
    const auto x = large.to_vector<float>();
    const auto y0 = out[0].to_vector<float>(), y1 = out[1].to_vector<float>();
    const auto y2 = out[2].to_vector<float>(), y3 = out[3].to_vector<float>();
    int wrong = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const float t = x[k] * 2 + 1, h = t * 3 - 4;
      wrong += std::abs(y0[k] - t) > 1e-5f || std::abs(y1[k] - h) > 1e-5f ||
               std::abs(y2[k] - h * x[k]) > 1e-4f || std::abs(y3[k] - (x[k] + 5) * 2) > 1e-5f;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("large values are copied piece by piece", "[programs]") {
  const std::int64_t n = 5'000'001;
  Shared a = shared(Array::arange(n).astype(DType::float32), {.target = "dev0"});
  Function f = function({}, {a + 1, (a * 2).transfer("dev1")});
  const Outputs out = f();
  const auto x = out[0].to_vector<float>(), y = out[1].to_vector<float>();
  REQUIRE(x.size() == static_cast<std::size_t>(n));
  for (const std::size_t i :
       {std::size_t{0}, std::size_t{1'048'576}, std::size_t{4'194'303}, std::size_t{5'000'000}}) {
    CHECK(x[i] == static_cast<float>(i) + 1);
    CHECK(y[i] == static_cast<float>(i) * 2);
  }
  CHECK(a.get_value().to_vector<float>()[4'999'999] == 4'999'999.0f);
}

TEST_CASE("arguments and numbers go to the GPU, outputs may stay there", "[programs][host]") {
  Variable x = matrix("x");
  Variable y;
  {
    ContextScope on("dev0");
    y = exp(x) + 1;
  }
  Function f = function({x}, y);
  Function kept = function({x}, y, {.keep_on_device = true});
  const Array wanted = f(kA)[0];
  Array there = kept(kA)[0];
  CHECK(there.context() == "dev0");
  CHECK(array_equal(there.to_host(), wanted));
  // In place on its own context, over the host on another one.
  CHECK(array_equal(f(there)[0], f(wanted)[0]));
  for (const char* other : {"dev1", "again", "host"}) {
    Variable u = matrix("u");
    Variable v;
    {
      ContextScope on(other);
      v = u * 2 + 1;
    }
    Function g = function({u}, v);
    for (int i = 0; i < 3; ++i) CHECK(array_equal(g(there)[0], g(wanted)[0]));
  }
  croton::sync();
}

TEST_CASE("updates on a GPU happen together, many times over", "[programs]") {
  Shared w = shared(Array::zeros({1000}), {.name = "w", .target = "dev0"});
  Shared v = shared(Array::ones({1000}), {.name = "v", .target = "dev0"});
  Function step = function({}, std::vector<Output>{}, {.updates = {{w, w + v}, {v, v * 1}}});
  for (int i = 0; i < 50; ++i) step();
  CHECK(w.get_value().to_vector<float>()[999] == 50.0f);
  w.set_value(Array::full({1000}, 7.0f));
  step();
  CHECK(w.get_value().to_vector<float>()[0] == 8.0f);
}

TEST_CASE("a training step learns as on the CPU", "[programs]") {
  const Array xs = random_normal({64, 10}, {.seed = 1});
  const Array truth = random_normal({10}, {.seed = 2});
  const auto train = [&](const char* where) {
    ContextScope on(where);
    Variable x = matrix("x"), y = vector("y");
    Shared w = shared(Array::zeros({10}), {.name = "w"});
    Variable cost = mean(square(sum(x * w, 1) - y));
    Function f = function({x, y}, cost, {.updates = {{w, w - 0.1f * grad(cost, {w})[0]}}});
    Variable t = vector("t");
    Function labels = function({x, t}, sum(x * t, 1));
    const Array ys = labels(xs, truth)[0].to_host();
    float last = 0;
    for (int i = 0; i < 40; ++i) last = f(xs, ys)[0].item<float>();
    return std::vector<Array>{Array::full({}, last), w.get_value()};
  };
  const std::vector<Array> gpu = train("dev0"), cpu = on_host([&] { return train("host"); });
  CHECK(gpu[0].item<float>() == Approx(cpu[0].item<float>()).epsilon(1e-3));
  check_close(gpu[1], cpu[1], 1e-4);
}

TEST_CASE("values of one element are not overwritten while they are read", "[programs]") {
  ContextScope on("dev0");
  Variable x = tensor("x", DType::float64, {1});
  const Config apart = current_config().with("fuse", "off");
  Function f = function({x}, {tanh(x + 1) * sin(x * 2)}, {.config = apart});
  CHECK(f(Array::full({1}, 0.5, DType::float64))[0].item<double>() ==
        Approx(std::tanh(1.5) * std::sin(1.0)));
}

TEST_CASE("calls that swap many values are replayed", "[programs][repeated]") {
  std::vector<Update> updates;
  Variable total = constant(0.0f);
  for (int i = 0; i < 8; ++i) {
    // One class of blocks has them all.
    Shared w = shared(Array::ones({10 + i % 3}), {.name = "w", .target = "dev0"});
    Shared v = shared(Array::zeros({10 + i % 3}), {.name = "v", .target = "dev0"});
    const Variable next = 0.5f * v + 1;
    updates.push_back({v, next});
    updates.push_back({w, w + next});
    total = total + sum(w);
  }
  Function step = function({}, total, {.updates = updates});
  const int calls = 30;
  float last = 0;
  for (int i = 0; i < calls; ++i) last = step()[0].item<float>();
  // v is 2 - 2^(1 - n) after n calls, w its sum and 1: 29 of them added up.
  CHECK(last == Approx(87 * (1 + 2 * 29 - 2)));
  // Two places for each value: either is met, recorded, and replayed from then on.
  CHECK((step.statistics().replays >= calls - 4) == current_config().cuda_graphs());
}

TEST_CASE("an index out of bounds is a CallError and changes nothing", "[programs]") {
  Shared w = shared(Array::zeros({10}), {.name = "w", .target = "dev0"});
  Variable i = vector("i", DType::int64);
  Function f = function({i}, sum(w(i)), {.updates = {{w, inc_subtensor(w(i), 1.0f)}}});
  CHECK(f(Array({1, 2}))[0].item<float>() == 0.0f);
  CHECK_THROWS_AS(f(Array({1, 77})), CallError);
  CHECK_THROWS_WITH(f(Array({3, -11})), Contains("-11"));
  CHECK(f(Array({1, 2}))[0].item<float>() == 2.0f);
  CHECK(w.get_value().to_vector<float>()[3] == 0.0f);
}

TEST_CASE("several threads call one function", "[programs]") {
  Variable x = vector("x");
  Variable y;
  {
    ContextScope on("dev0");
    y = x * 2 + 1;
  }
  Function f = function({x}, {y, sum(y)});
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const float v = static_cast<float>(10 * t + i);
        const Outputs out = f(Array::full({100}, v));
        wrong[t] += out[0].to_vector<float>()[99] != 2 * v + 1;
        wrong[t] += out[1].item<float>() != 100 * (2 * v + 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
}

TEST_CASE("deterministic=on gives the same bits each time", "[programs]") {
  Shared a = shared(floats({500, 40}, DType::float32, 3, false), {.target = "dev0"});
  Shared i = shared(integers({500}, DType::int64, 0, 9), {.target = "dev0"});
  const Config config = current_config().with("deterministic", "on");
  Function f =
      function({}, {sum(a), sum(a, 0), inc_subtensor(zeros({9, 40})(i), a)}, {.config = config});
  const Outputs first = f();
  for (int k = 0; k < 3; ++k) {
    const Outputs again = f();
    for (std::size_t o = 0; o < 3; ++o) CHECK(array_equal(again[o], first[o]));
  }
}

TEST_CASE("repeated calls replay a graph, with the values of each call", "[programs]") {
  Variable x = vector("x");
  Variable a, b;
  {
    ContextScope on("dev0");
    a = softmax(x) * 3;
    b = sum(a * x) + max(x);
  }
  Function f = function({x}, {a, b});
  Variable u = vector("u");
  Function g = function({u}, {softmax(u) * 3, sum(softmax(u) * 3 * u) + max(u)});
  for (int i = 0; i < 12; ++i) {
    const Array v = random_normal({500 + i / 6}, {.seed = static_cast<std::uint64_t>(i)});
    const Outputs got = f(v), wanted = g(v);
    for (std::size_t o = 0; o < 2; ++o) check_close(got[o], wanted[o], 1e-5);
  }
  const bool graphs = current_config().cuda_graphs();
  CHECK((f.statistics().replays > 0) == graphs);
}

TEST_CASE("profilers see calls by the names of their functions", "[ranges]") {
  Shared a = shared(kA, {.target = "dev0"}), b = shared(kB, {.target = "dev1"});
  const Function square = function({}, a * a, {.name = "square"});
  const Function both = function({}, {a + a, b + b}, {.name = "both"});
  square();
  void* library = dlopen("libnvtx3interop.so.1", RTLD_LAZY | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  const auto ranges = reinterpret_cast<const char* (*)()>(dlsym(library, "crotonEmulatorRanges"));
  REQUIRE(ranges != nullptr);
  const std::string before = ranges();
  square();
  CHECK(ranges() == before + "square{}");
  square();
  both();
  const std::string text = std::string(ranges()).substr(before.size() + 16);
  // Each of two contexts has a worker.
  CHECK((text == "both{}both{}" || text == "both{both{}}"));
}

TEST_CASE("a GPU found by its address is the one of that index", "[address]") {
  Shared a = shared(kA);
  CHECK(a.context() == "cuda@0000:02:00.0");
  CHECK(array_equal(function({}, a + 1)()[0], Array({{2.0, 3.0}, {4.0, 5.0}})));
  Shared b = shared(kB, {.target = "dev1"});
  CHECK(array_equal(function({}, b - a.transfer("dev1"))()[0], Array({{4.0, 4.0}, {4.0, 4.0}})));
  ContextScope missing("cuda@0000:77:00.0");
  try {
    shared(kA);
    FAIL("there is no such GPU");
  } catch (const DeviceError& e) {
    CHECK_THAT(e.what(),
               Contains("no GPU at PCI address 0000:77:00.0") && Contains("cuda1 at 0000:02:00.0"));
  }
}

TEST_CASE("updates cross contexts", "[programs][host]") {
  Shared a = shared(kA, {.name = "a", .target = "dev0"});
  Shared b = shared(kB, {.name = "b", .target = "dev1"});
  Shared c = shared(kA, {.name = "c", .target = "again"});
  Shared d = shared(kA, {.name = "d", .target = "host"});
  Variable x = matrix("x");
  Function rotate = function({}, std::vector<Output>{},
                             {.updates = {{a, b * 2}, {b, a + 0}, {c, a}, {d, c * 1}}});
  Function take = function({x}, std::vector<Output>{}, {.updates = {{a, x}, {b, x * 3}}});
  rotate();
  CHECK(array_equal(a.get_value(), Array({{10.0, 12.0}, {14.0, 16.0}})));
  CHECK(array_equal(b.get_value(), kA));
  rotate();
  CHECK(array_equal(a.get_value(), Array({{2.0, 4.0}, {6.0, 8.0}})));
  CHECK(array_equal(b.get_value(), Array({{10.0, 12.0}, {14.0, 16.0}})));
  CHECK(array_equal(c.get_value(), Array({{10.0, 12.0}, {14.0, 16.0}})));
  CHECK(array_equal(d.get_value(), kA));
  take(kB);
  CHECK(array_equal(a.get_value(), kB));
  CHECK(array_equal(b.get_value(), Array({{15.0, 18.0}, {21.0, 24.0}})));
}
