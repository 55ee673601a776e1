// Collectives of NCCL between two devices.
#include <nccl.h>

#include <cstdint>
#include <thread>

#include "tests/cuda_emulator/test/scenario.h"

namespace scenario {
namespace {

void need_nccl(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  std::printf("%s = %d\n", what, static_cast<int>(result));
  std::fflush(stdout);
  std::_Exit(1);
}
#define NEED_NCCL(call) need_nccl(call, #call)

struct Rank {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  ncclComm_t comm = nullptr;
  CUdeviceptr in = 0, out = 0;

  void open(int device, float first) {
    context = use_device(device);
    NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    std::vector<float> values(8);
    for (int i = 0; i < 8; ++i) values[static_cast<std::size_t>(i)] = first + static_cast<float>(i);
    in = to_device(values);
    out = to_device(std::vector<float>(16));
  }
  const void* from() const { return reinterpret_cast<void*>(in); }
  void* to() const { return reinterpret_cast<void*>(out); }
  void use() const { NEED(cuCtxSetCurrent(context)); }
  float result(std::size_t at) const {
    use();
    NEED(cuStreamSynchronize(stream));
    return to_host<float>(out, 16)[at];
  }
};

struct Two {
  Rank ranks[2];
  Two() {
    ncclUniqueId id;
    NEED_NCCL(ncclGetUniqueId(&id));
    NEED_NCCL(ncclGroupStart());
    for (int i = 0; i < 2; ++i) {
      ranks[i].open(i, i == 0 ? 1.0f : 100.0f);
      NEED_NCCL(ncclCommInitRank(&ranks[i].comm, 2, id, i));
    }
    NEED_NCCL(ncclGroupEnd());
  }
  template <class F>
  void together(F&& call) {
    NEED_NCCL(ncclGroupStart());
    for (int i = 0; i < 2; ++i) {
      ranks[i].use();
      NEED_NCCL(call(ranks[i], i));
    }
    NEED_NCCL(ncclGroupEnd());
  }
  void show_results(const char* name, std::size_t at) const {
    for (const Rank& rank : ranks) show(name, static_cast<long long>(rank.result(at)));
  }
};

void collectives() {
  Two two;
  two.together([](Rank& r, int) {
    return ncclAllReduce(r.from(), r.to(), 8, ncclFloat, ncclSum, r.comm, r.stream);
  });
  two.show_results("sum", 3);  // 4 + 103
  two.together([](Rank& r, int) {
    return ncclAllReduce(r.from(), r.to(), 8, ncclFloat, ncclMax, r.comm, r.stream);
  });
  two.show_results("max", 3);
  two.together(
      [](Rank& r, int) { return ncclAllGather(r.from(), r.to(), 8, ncclFloat, r.comm, r.stream); });
  two.show_results("gathered", 9);  // 101
  two.together([](Rank& r, int) {
    return ncclReduceScatter(r.from(), r.to(), 4, ncclFloat, ncclSum, r.comm, r.stream);
  });
  two.show_results("scattered", 1);  // 2 + 101, 6 + 105
  two.together([](Rank& r, int) {
    return ncclBroadcast(r.from(), r.to(), 8, ncclFloat, 1, r.comm, r.stream);
  });
  two.show_results("broadcast", 0);
  two.together([](Rank& r, int) {
    return ncclReduce(r.from(), r.to(), 8, ncclFloat, ncclAvg, 0, r.comm, r.stream);
  });
  show("average", static_cast<long long>(two.ranks[0].result(1)));  // (2 + 101) / 2
}

template <class T>
long long first_result(Two& two, ncclDataType_t type, ncclRedOp_t op, T a, T b) {
  for (int i = 0; i < 2; ++i) {
    two.ranks[i].use();
    const T value = i == 0 ? a : b;
    NEED(cuMemcpyHtoD(two.ranks[i].in, &value, sizeof value));
  }
  two.together(
      [&](Rank& r, int) { return ncclAllReduce(r.from(), r.to(), 1, type, op, r.comm, r.stream); });
  for (const Rank& rank : two.ranks) {
    rank.use();
    NEED(cuStreamSynchronize(rank.stream));
  }
  return to_host<T>(two.ranks[1].out, 1)[0];
}

void collective_types() {
  Two two;
  // 2^60 + 2^40 + 2^20 + 1, which no double holds.
  show("product",
       first_result<std::int64_t>(two, ncclInt64, ncclProd, (1ll << 40) + 1, (1ll << 20) + 1));
  show("least", first_result<std::int64_t>(two, ncclInt64, ncclMin, 3, -5));
  // 1 + 2^-8 and 1 + 2^-7 + 2^-8 lie between two values of bfloat16: the even one is the result.
  show("down", first_result<std::uint16_t>(two, ncclBfloat16, ncclSum, 0x3f80, 0x3b80));
  show("up", first_result<std::uint16_t>(two, ncclBfloat16, ncclSum, 0x3f81, 0x3b80));
  show("least", first_result<std::uint16_t>(two, ncclBfloat16, ncclMin, 0x3f80, 0xbf80));
}

void send_and_receive() {
  Two two;
  NEED_NCCL(ncclGroupStart());
  for (int i = 0; i < 2; ++i) {
    Rank& r = two.ranks[i];
    r.use();
    NEED_NCCL(ncclSend(r.from(), 8, ncclFloat, 1 - i, r.comm, r.stream));
    NEED_NCCL(ncclRecv(r.to(), 8, ncclFloat, 1 - i, r.comm, r.stream));
  }
  NEED_NCCL(ncclGroupEnd());
  two.show_results("received", 2);
}

// A thread a rank, without groups; kernels behind and before.
void rank_threads() {
  NEED(cuInit(0));
  ncclUniqueId id;
  NEED_NCCL(ncclGetUniqueId(&id));
  float results[2] = {};
  const auto work = [&](int i) {
    Rank r;
    r.open(i, i == 0 ? 1.0f : 100.0f);
    NEED_NCCL(ncclCommInitRank(&r.comm, 2, id, i));
    const CUfunction twice =
        kernel(R"(extern "C" __global__ void k(float* x) { x[threadIdx.x] *= 2; })");
    for (int turn = 0; turn < 3; ++turn) {
      NEED(launch(twice, 1, 8, 0, r.stream, r.in));
      NEED_NCCL(ncclAllReduce(r.from(), r.to(), 8, ncclFloat, ncclSum, r.comm, r.stream));
      NEED(launch(twice, 1, 8, 0, r.stream, r.out));
    }
    results[i] = r.result(0);
    NEED_NCCL(ncclCommDestroy(r.comm));
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  show("first", static_cast<long long>(results[0]));  // 2 (8 + 800)
  show("second", static_cast<long long>(results[1]));
}

void collective_mistakes() {
  Two two;
  Rank &a = two.ranks[0], &b = two.ranks[1];
  a.use();
  show("root", ncclBroadcast(a.from(), a.to(), 8, ncclFloat, 2, a.comm, a.stream));
  show("stream", ncclAllReduce(a.from(), a.to(), 8, ncclFloat, ncclSum, b.comm, a.stream));
  show("bounds", ncclAllGather(a.from(), a.to(), 9, ncclFloat, a.comm, a.stream));
  Two other;
  NEED_NCCL(ncclGroupStart());
  other.ranks[0].use();
  NEED_NCCL(ncclAllReduce(other.ranks[0].from(), other.ranks[0].to(), 8, ncclFloat, ncclSum,
                          other.ranks[0].comm, other.ranks[0].stream));
  other.ranks[1].use();
  NEED_NCCL(ncclAllReduce(other.ranks[1].from(), other.ranks[1].to(), 7, ncclFloat, ncclSum,
                          other.ranks[1].comm, other.ranks[1].stream));
  show("size", ncclGroupEnd());
  std::fflush(stdout);
  std::printf("end\n");
  std::fflush(stdout);
  std::_Exit(0);
}

// The other rank never comes; what stands behind the collective ends with it.
void absent_rank() {
  Two two;
  Rank& r = two.ranks[0];
  r.use();
  NEED_NCCL(ncclAllReduce(r.from(), r.to(), 8, ncclFloat, ncclSum, r.comm, r.stream));
  CUevent event = nullptr;
  NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  NEED(cuEventRecord(event, r.stream));
  NEED(cuMemsetD8Async(r.out, 0, 64, r.stream));
  show_error("event", cuEventSynchronize(event));
  show_error("stream", cuStreamSynchronize(r.stream));
  show_error("destroy", cuStreamDestroy(r.stream));
  // Too late, and alone.
  two.ranks[1].use();
  NEED_NCCL(ncclAllReduce(two.ranks[1].from(), two.ranks[1].to(), 8, ncclFloat, ncclSum,
                          two.ranks[1].comm, two.ranks[1].stream));
  show_error("late", cuCtxSynchronize());
  show_error("destroy", cuStreamDestroy(two.ranks[1].stream));
}

// With lazy streams: the context of a rank is lost when the work of both is queued.
void lost_rank() {
  Two two;
  two.ranks[0].use();
  NEED(launch(kernel(R"(extern "C" __global__ void k(float* x) { x[0] = 1; })"), 1, 1, 0,
              two.ranks[0].stream, CUdeviceptr{0}));
  two.together([](Rank& r, int) {
    return ncclAllReduce(r.from(), r.to(), 8, ncclFloat, ncclSum, r.comm, r.stream);
  });
  two.ranks[0].use();
  show_error("lost", cuCtxSynchronize());
  two.ranks[1].use();
  show_error("other", cuCtxSynchronize());
}

void one_rank() {
  Rank r;
  r.open(0, 5.0f);
  ncclUniqueId id;
  NEED_NCCL(ncclGetUniqueId(&id));
  NEED_NCCL(ncclCommInitRank(&r.comm, 1, id, 0));
  NEED_NCCL(ncclAllReduce(r.from(), r.to(), 8, ncclFloat, ncclSum, r.comm, r.stream));
  show("value", static_cast<long long>(r.result(0)));
}

}  // namespace

Table collective_scenarios() {
  return {{"collectives", collectives},
          {"collective_types", collective_types},
          {"send_and_receive", send_and_receive},
          {"rank_threads", rank_threads},
          {"collective_mistakes", collective_mistakes},
          {"absent_rank", absent_rank},
          {"lost_rank", lost_rank},
          {"one_rank", one_rank}};
}

}  // namespace scenario
