// Functions called, and made, by several threads at once. Threads only count; the test checks.
#include <croton/croton.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

using namespace croton;

namespace {

constexpr int kThreads = 4;

/// Runs `body(thread)` on several threads; gives how many threw.
template <class Body>
int run_threads(Body body) {
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      try {
        body(t);
      } catch (const std::exception&) {
        ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failed;
}

}  // namespace

TEST_CASE("one function gives each thread its own results", "[threads]") {
  Variable x = matrix("x");
  Function f = function({x}, {x * 2 + 1, sum(x, 0), dot(x, x.T())});
  std::atomic<int> wrong = 0;
  CHECK(run_threads([&](int t) {
          for (int i = 0; i < 200; ++i) {
            // Other sizes and values in each call, so that plans and memory are made side by side.
            const std::int64_t rows = 1 + (i * 7 + t) % 90;
            const float v = static_cast<float>(i + 200 * t);
            Outputs out = f(Array::full({rows, 8}, v));
            const bool right =
                array_equal(out[0], Array::full({rows, 8}, v * 2 + 1)) &&
                array_equal(out[1], Array::full({8}, v * static_cast<float>(rows))) &&
                out[2].at<float>({0, rows - 1}) == v * v * 8;
            if (!right) ++wrong;
          }
        }) == 0);
  CHECK(wrong == 0);
}

TEST_CASE("updates of one shared variable from several threads all count", "[threads]") {
  Variable step = scalar("step", DType::int64);
  Shared total = shared(0, {.name = "total"});
  Function add = function({step}, total, {.updates = {{total, total + step}}});
  Function subtract = function({step}, {}, {.updates = {{total, total - step}}});
  constexpr int kCalls = 500;
  CHECK(run_threads([&](int t) {
          for (int i = 0; i < kCalls; ++i) {
            if (t == 0) {
              subtract(1);
            } else {
              add(t);
            }
          }
        }) == 0);
  CHECK(total.get_value().item<std::int64_t>() == kCalls * (-1 + 1 + 2 + 3));
}

TEST_CASE("readers see all updates of a call or none", "[threads]") {
  const Array zeros = Array::zeros({1000});
  Shared a = shared(zeros), b = shared(zeros);
  Function advance = function({}, {}, {.updates = {{a, a + 1}, {b, b + 1}}});
  Function look = function({}, {min(a), max(a), min(b), max(b)});
  std::atomic<int> torn = 0;
  CHECK(run_threads([&](int t) {
          for (int i = 0; i < 300; ++i) {
            if (t % 2 == 0) {
              advance();
              continue;
            }
            Outputs out = look();
            const float first = out[0].item<float>();
            for (const Array& other : out) {
              if (other.item<float>() != first) ++torn;
            }
          }
        }) == 0);
  CHECK(torn == 0);
  CHECK(array_equal(a.get_value(), Array::full({1000}, 600.0f)));
}

TEST_CASE("draws of a stream are not given twice to several threads", "[threads]") {
  RandomStream rng(11);
  Function f = function({}, rng.integers({1}, 0, std::int64_t{1} << 50));
  std::array<std::vector<std::int64_t>, kThreads> drawn;
  CHECK(run_threads([&](int t) {
          for (int i = 0; i < 100; ++i) {
            drawn[static_cast<std::size_t>(t)].push_back(f()[0].at<std::int64_t>({0}));
          }
        }) == 0);
  std::vector<std::int64_t> all;
  for (const auto& list : drawn) all.insert(all.end(), list.begin(), list.end());
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
}

TEST_CASE("graphs and functions are made by several threads at once", "[threads]") {
  Shared w = shared(Array::ones({4, 4}));
  Variable common = exp(w) + 1;
  std::atomic<int> wrong = 0;
  CHECK(run_threads([&](int t) {
          for (int i = 0; i < 5; ++i) {
            ContextScope on("cpu");
            Variable x = matrix("x");
            Variable y = sum(square(x * static_cast<float>(t + 2)) + 0 * common);
            Function f = function({x}, grad(y, x));
            const float scale = static_cast<float>((t + 2) * (t + 2) * 2);
            if (!array_equal(f(Array::ones({4, 4}))[0], Array::full({4, 4}, scale))) ++wrong;
          }
        }) == 0);
  CHECK(wrong == 0);
}

TEST_CASE("set_value and get_value go side by side with calls", "[threads]") {
  Shared w = shared(Array::zeros({256}), {.name = "w"});
  Function f = function({}, w * 1, {.updates = {{w, w + 0}}});
  std::atomic<int> torn = 0;
  const auto uniform = [&](const Array& a) {
    const std::vector<float> values = a.to_vector<float>();
    return std::all_of(values.begin(), values.end(), [&](float v) { return v == values[0]; });
  };
  CHECK(run_threads([&](int t) {
          for (int i = 0; i < 300; ++i) {
            if (t == 0) {
              w.set_value(Array::full({256}, static_cast<float>(i)));
            } else if (!uniform(t == 1 ? w.get_value() : f()[0])) {
              ++torn;
            }
          }
        }) == 0);
  CHECK(torn == 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a child of a fork builds graphs while threads of its parent do", "[threads]") {
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int t = 0; t < 2; ++t) {
    busy.emplace_back([&, t] {
      for (int i = 0; !stop; ++i)
        vector("name " + std::to_string(t) + " " + std::to_string(i % 97));
    });
  }
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      const Variable x = vector("of the child");
      _exit((x * 2 + 1).ndim() == 1 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CAPTURE(i, WTERMSIG(status));
    CHECK(WIFEXITED(status));
    if (!WIFEXITED(status)) break;
  }
  stop = true;
  for (std::thread& t : busy) t.join();
}
#endif
