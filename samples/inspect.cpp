// Looks at what Croton makes of one function: the graph before and after compilation, the fused
// kernels, and the program text for CPUs and GPUs. Needs no GPU.
#include <croton/croton.h>

#include <iostream>

using namespace croton;

int main() {
  try {
    Variable x = tensor("x", DType::float32, {kAnyDim, 256});
    Shared w = shared(random_normal({256, 64}, {.seed = 1}), {.name = "w"});
    Shared b = shared(Array::zeros({64}), {.name = "b"});
    Function f = function({x}, {{"p", softmax(tanh(dot(x, w) + b))}}, {.name = "classify"});

    std::cout << "== the expression\n" << pp(softmax(tanh(dot(x, w) + b))) << "\n\n";
    debugprint(f);

    const Inspection text = inspect(f, {.sm = 90});
    std::cout << "\n== kernels, in the compiler's own language\n" << text.kernels;
    std::cout << "\n== CUDA C++\n" << text.cuda_source;
    std::cout << "\n== LLVM IR\n" << text.llvm_ir;
  } catch (const Error& error) {
    std::cerr << "inspect: " << error.what() << '\n';
    return 1;
  }
}
