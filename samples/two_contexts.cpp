// Two products on two contexts. Which devices they run on is said outside the program:
//
//   CROTON_FLAGS="contexts=dev0->cuda0;dev1->cuda1" ./two_contexts    on a machine with two GPUs
//   CROTON_FLAGS="contexts=dev0->cpu;dev1->cpu" ./two_contexts        anywhere
#include <croton/croton.h>

#include <iostream>

using namespace croton;

namespace {

void run() {
  auto v01 = shared(random_uniform({1024, 1024}), {.target = "dev0"});
  auto v02 = shared(random_uniform({1024, 1024}), {.target = "dev0"});
  auto v11 = shared(random_uniform({1024, 1024}), {.target = "dev1"});
  auto v12 = shared(random_uniform({1024, 1024}), {.target = "dev1"});
  auto f = function({}, {dot(v01, v02), dot(v11, v12)});
  std::cout << f();

  const ContextMap bound = current_config().contexts();
  for (std::size_t i = 0; i < f.output_contexts().size(); ++i) {
    const std::string& context = f.output_contexts()[i];
    std::cout << "product " << i << " ran on " << context;
    for (const ContextBinding& binding : bound) {
      if (binding.name == context) std::cout << " (" << to_string(binding.device) << ')';
    }
    std::cout << '\n';
  }
}

}  // namespace

int main() {
  try {
    run();
  } catch (const Error& error) {
    std::cerr << "two_contexts: " << error.what() << '\n';
    return 1;
  }
}
