// The example of Synkhronos' documentation: workers that each have a shared variable of their own,
// which collectives bring together. Which devices work is said outside the program:
//
//   CROTON_FLAGS="contexts=dev0->cuda0;dev1->cuda1" ./synk_style    on a machine with two GPUs
//   CROTON_FLAGS="contexts=dev0->cpu;dev1->cpu" ./synk_style        anywhere
#include <croton/croton.h>

#include <cstdlib>
#include <iostream>
#include <vector>

using namespace croton;

namespace {

constexpr int kRows = 4;

/// What `s` is on each worker after the update, and what that sums to.
struct Expected {
  std::vector<float> local;
  float all = 0;
};

/// Rows are [1, 1], ..., [4, 4], shared out evenly, and a worker adds up its own.
Expected expected(int workers) {
  Expected result;
  int row = 0;
  for (int w = 0; w < workers; ++w) {
    const int mine = kRows / workers + (w < kRows % workers ? 1 : 0);
    float sum = mine == 0 ? 1 : 0;  // without rows it keeps its ones
    for (int i = 0; i < mine; ++i) sum += static_cast<float>(++row);
    result.local.push_back(sum);
    result.all += sum;
  }
  return result;
}

void require(const Array& got, float wanted) {
  if (array_equal(got, Array::full({2}, wanted, DType::float32))) return;
  std::cerr << "synk_style: got " << got << ", expected " << wanted << " twice\n";
  std::exit(1);
}

void print(const char* what, const Group& group, const Shared& s) {
  std::cout << what << ':';
  for (int rank = 0; rank < group.size(); ++rank) std::cout << ' ' << group.get_value(rank, s);
  std::cout << '\n';
}

void run() {
  const Group group;
  const Variable x = matrix("x", DType::float32);
  const Shared s = shared(Array::ones({2}, DType::float32), {.name = "s"});
  const GroupFunction f = group.function({x}, {}, {.updates = {{s, sum(x * s, 0)}}});
  const Expected numbers = expected(group.size());

  f(Array::from<float>({1, 1, 2, 2, 3, 3, 4, 4}, {kRows, 2}));
  print("local", group, s);
  for (int rank = 0; rank < group.size(); ++rank) {
    require(group.get_value(rank, s), numbers.local[static_cast<std::size_t>(rank)]);
  }

  group.reduce(s, CollectiveOp::sum);
  print("reduced", group, s);
  require(s.get_value(), numbers.all);
  for (int rank = 1; rank < group.size(); ++rank) {
    require(group.get_value(rank, s), numbers.local[static_cast<std::size_t>(rank)]);
  }

  group.set_value(0, s, Array::full({2}, numbers.local[0], DType::float32));
  group.all_reduce(s, CollectiveOp::sum);
  print("all reduced", group, s);
  for (int rank = 0; rank < group.size(); ++rank) require(group.get_value(rank, s), numbers.all);
  std::cout << "right on " << group.size() << " contexts\n";
}

}  // namespace

int main() {
  try {
    run();
  } catch (const Error& error) {
    std::cerr << "synk_style: " << error.what() << '\n';
    return 1;
  }
}
