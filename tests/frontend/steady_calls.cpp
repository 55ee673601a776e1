// Repeated calls of users' functions ask for no memory.
#include <croton/croton.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {
thread_local std::int64_t news = 0;
}

// Those of the shared library end here too.
void* operator new(std::size_t bytes) {
  ++news;
  if (void* p = std::malloc(bytes == 0 ? 1 : bytes)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

using namespace croton;

namespace {

/// How often `calls` repeated calls asked for memory, after a few that may.
template <class Call>
std::int64_t news_of(Call call) {
  for (int i = 0; i < 5; ++i) call();
  const std::int64_t before = news;
  for (int i = 0; i < 20; ++i) call();
  return news - before;
}

}  // namespace

TEST_CASE("a repeated call of one kernel asks for no memory") {
  Variable x = vector("x"), y = vector("y");
  Function f = function({x, y}, x + y);
  const Array a = random_uniform({10}), b = random_uniform({10});
  CHECK(news_of([&] { (void)f(a, b); }) == 0);
  CHECK(news_of([&] { (void)f(a, b)[0]; }) == 0);
  Variable s = scalar("s");
  Function g = function({s}, s * 2);
  CHECK(news_of([&] { (void)g(1.5f); }) == 0);
}

TEST_CASE("a repeated training step asks for no memory") {
  Variable x = matrix("x"), labels = vector("labels", DType::int64);
  // Products small enough for loops of our own: oneDNN asks for memory inside of its calls.
  Shared w = shared(random_uniform({3, 2}, {.seed = 1}));
  Variable cost = mean(cross_entropy_from_logits(dot(x, w), labels));
  Function f = function({x, labels}, cost, {.updates = {{w, w - 0.1f * grad(cost, w)}}});
  const Array a = random_uniform({4, 3}), t = Array::zeros({4}, DType::int64);
  CHECK(news_of([&] { (void)f(a, t); }) == 0);
}

TEST_CASE("alternating shapes work out sizes once each, and ask for no memory") {
  Variable x = matrix("x");
  Function f = function({x}, softmax(x, 1));
  const Array a = random_uniform({3, 20}), b = random_uniform({4, 7});
  CHECK(news_of([&] {
          (void)f(a);
          (void)f(b);
        }) == 0);
  CHECK(f.statistics().specialisations == 2);
}

#endif
