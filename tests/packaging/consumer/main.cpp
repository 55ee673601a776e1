// A program outside the project: it knows the installed headers and croton::croton, nothing else.
#include <croton/croton.h>

#include <iostream>

using namespace croton;

int main() {
  Variable x = vector("x");
  Shared w = shared({1.0f, 2.0f, 3.0f}, {.name = "w"});
  Function f = function({x}, {sum(x * w) + 0.5f}, {.updates = {{w, w * 2.0f}}});
  Array first = f(Array{1.0f, 1.0f, 1.0f})[0];
  Array second = f(Array{1.0f, 1.0f, 1.0f})[0];
  std::cout << first << ' ' << second << '\n';
  try {
    f(Array{1.0f, 1.0f});
  } catch (const CallError&) {
    std::cout << "call error\n";
  }
}
