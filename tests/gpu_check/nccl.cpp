// NCCL with one rank: that it can be found, started and called from the stream of a GPU.
#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>

#include "runtime/cuda/more_libraries.h"
#include "tests/gpu_check/gpu_check.h"
#include "tests/gpu_check/raw_gpu.h"

namespace croton::gpu_check {
namespace {

constexpr int kFloat32 = 7, kSum = 0, kMax = 2;  // ncclDataType_t, ncclRedOp_t
constexpr std::size_t kCount = 1 << 20;

void check_result(int result, const char* what) {
  if (result == 0) return;
  throw std::runtime_error(fmt::format("{}: {}", what, cuda::nccl()->error_string(result)));
}

/// Functions that Croton itself does not call.
struct Collectives {
  int (*all_reduce)(const void*, void*, std::size_t, int dtype, int op, void* comm,
                    cuda::StreamHandle) = nullptr;
  int (*broadcast)(const void*, void*, std::size_t, int dtype, int root, void* comm,
                   cuda::StreamHandle) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int dtype, void* comm,
                    cuda::StreamHandle) = nullptr;
};

Collectives open_collectives() {
  void* const library = dlopen(cuda::nccl().report().path.c_str(), RTLD_NOW);
  if (library == nullptr) throw std::runtime_error(dlerror());
  Collectives found;
  const auto find = [&](const char* name, auto& function) {
    void* const address = dlsym(library, name);
    if (address == nullptr) throw std::runtime_error(fmt::format("NCCL has no {}", name));
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  find("ncclAllReduce", found.all_reduce);
  find("ncclBroadcast", found.broadcast);
  find("ncclAllGather", found.all_gather);
  return found;
}

/// The elements that come out: those that went in, as there is one rank.
std::string fault_in(const RawGpu& gpu, const RawMemory& out, const std::vector<float>& wanted) {
  std::vector<float> got(wanted.size());
  check_driver(cuda::driver()->copy_to_host(got.data(), out.place(), got.size() * sizeof(float),
                                            gpu.stream()),
               "copying to the host");
  gpu.wait();
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] != wanted[i]) return fmt::format("element {} is {}, not {}", i, got[i], wanted[i]);
  }
  return {};
}

int collect(const RawGpu& gpu, void* comm) {
  const Collectives nccl = open_collectives();
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = element(static_cast<std::int64_t>(i));
  const RawMemory in(gpu, Array::from<float>(values));
  int wrong = 0;
  const auto try_one = [&](const char* name, auto&& call) {
    const RawMemory out(gpu, kCount * sizeof(float));
    check_result(call(out.pointer()), name);
    const std::string fault = fault_in(gpu, out, values);
    fmt::print("{}: {}\n", name, fault.empty() ? "right" : fault);
    wrong += fault.empty() ? 0 : 1;
  };
  try_one("all-reduce, sum", [&](void* out) {
    return nccl.all_reduce(in.pointer(), out, kCount, kFloat32, kSum, comm, gpu.stream());
  });
  try_one("all-reduce, largest", [&](void* out) {
    return nccl.all_reduce(in.pointer(), out, kCount, kFloat32, kMax, comm, gpu.stream());
  });
  try_one("broadcast", [&](void* out) {
    return nccl.broadcast(in.pointer(), out, kCount, kFloat32, 0, comm, gpu.stream());
  });
  try_one("all-gather", [&](void* out) {
    return nccl.all_gather(in.pointer(), out, kCount, kFloat32, comm, gpu.stream());
  });
  return wrong;
}

}  // namespace

int check_nccl() {
  if (!cuda::nccl().usable()) {
    fmt::print("{}\n", cuda::nccl().report().text());
    return 77;
  }
  const RawGpu gpu;
  fmt::print("{} on {}\n", cuda::nccl().report().text(), gpu.name());
  cuda::NcclUniqueId id{};
  check_result(cuda::nccl()->unique_id(&id), "asking for an id");
  void* comm = nullptr;
  check_result(cuda::nccl()->comm_init_rank(&comm, 1, id, 0), "starting the rank");
  const int wrong = collect(gpu, comm);
  check_result(cuda::nccl()->comm_destroy(comm), "ending the rank");
  return wrong == 0 ? 0 : 1;
}

}  // namespace croton::gpu_check
