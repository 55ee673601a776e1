// The emulated NCCL: ranks are threads or devices of one process.
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <random>
#include <string>

#include "tests/cuda_emulator/nccl_ranks.h"
#include "tests/cuda_emulator/report.h"
#include "tests/cuda_emulator/settings.h"

#define EMULATOR_API extern "C" __attribute__((visibility("default")))

using namespace emulator;

namespace {

struct State {
  std::mutex mutex;
  std::condition_variable came;
  std::map<std::string, std::shared_ptr<Clique>> cliques;  // by id
  std::map<std::string, std::weak_ptr<Exchange>> pairs;    // a send and its receive
};

State& state() {
  static auto& all = *new State;
  return all;
}

// Calls between ncclGroupStart and ncclGroupEnd of a thread.
struct GroupCalls {
  int depth = 0;
  std::vector<Request> requests;
  std::vector<ncclComm_t> joining;
};
// They outlive what the program destroys at its end.
thread_local GroupCalls& group = *new GroupCalls;
thread_local std::string& last_error = *new std::string;

ncclResult_t refuse(ncclResult_t code, const std::string& why) {
  last_error = why;
  library_report(why.c_str());
  return code;
}

ncclResult_t result_of(CUresult result) {
  if (result == CUDA_SUCCESS) return ncclSuccess;
  return result == CUDA_ERROR_INVALID_VALUE ? ncclInvalidArgument : ncclUnhandledCudaError;
}

// All that a rank does in one group on one stream: it waits for the partners of each part.
class RankWork final : public Meeting {
 public:
  explicit RankWork(int rank) : rank_(rank) {}

  void add(std::shared_ptr<Exchange> exchange) { parts_.push_back(std::move(exchange)); }

  bool partners(std::vector<std::shared_ptr<Meeting>>& into) override {
    const std::lock_guard lock(state().mutex);  // other ranks may be adding theirs
    for (const auto& exchange : parts_) {
      if (static_cast<int>(exchange->sides.size()) < exchange->expected) return false;
      for (const auto& [rank, side] : exchange->sides) {
        into.push_back(side.meeting.lock());
        if (!into.back()) return false;
      }
    }
    return true;
  }

  void stage() override {
    for (const auto& exchange : parts_) {
      Exchange::Side& side = exchange->sides.at(rank_);
      const auto* from = static_cast<const char*>(side.request.from);
      const std::size_t bytes = side.request.bytes_sent();
      if (bytes) side.staged.assign(from, from + bytes);
    }
  }

  void run() override {
    for (const auto& exchange : parts_) deliver(*exchange, rank_);
  }

 private:
  const int rank_;
  std::vector<std::shared_ptr<Exchange>> parts_;
};

template <class Key, class Map>
std::shared_ptr<Exchange> find_or_make(Map& map, const Key& key) {
  if (auto found = map[key].lock()) return found;
  auto made = std::make_shared<Exchange>();
  map[key] = made;
  return made;
}

// The exchange that a call belongs to: calls are matched by their order.
std::shared_ptr<Exchange> exchange_of(const Request& r) {
  ncclComm_t comm = r.comm;
  if (r.what != Collective::send && r.what != Collective::receive) {
    auto exchange = find_or_make(comm->clique->collectives, comm->collectives++);
    exchange->expected = comm->clique->size;
    return exchange;
  }
  const bool sends = r.what == Collective::send;
  const std::uint64_t number = sends ? comm->sent[r.root]++ : comm->received[r.root]++;
  const int from = sends ? comm->rank : r.root, to = sends ? r.root : comm->rank;
  auto exchange =
      find_or_make(state().pairs, format("%p %d %d %llu", static_cast<void*>(comm->clique.get()),
                                         from, to, static_cast<unsigned long long>(number)));
  exchange->expected = 2;
  return exchange;
}

ncclResult_t queue_work(const std::vector<Request>& requests) {
  const Request& first = requests.front();
  auto work = std::make_shared<RankWork>(first.comm->rank);
  std::vector<LibraryRange> ranges;
  for (const Request& r : requests) {
    const std::lock_guard lock(state().mutex);
    const auto exchange = exchange_of(r);
    if (const char* why = disagreement(*exchange, r)) {
      return refuse(ncclInvalidUsage, format("%s: rank %d asks for %s than another rank",
                                             name_of(r.what), r.comm->rank, why));
    }
    exchange->sides[r.comm->rank] = {r, work, {}};
    work->add(exchange);
    ranges.push_back({r.from, r.bytes_sent(), false, "buffer that is sent"});
    ranges.push_back({r.to, r.bytes_received(), true, "buffer that is received"});
  }
  return result_of(library_meet(first.context, first.stream, name_of(first.what), ranges, work));
}

bool same_work(const Request& a, const Request& b) {
  return a.comm == b.comm && a.stream == b.stream && a.context == b.context;
}

// Sends and receives of a rank in a group go together; so do its collectives.
ncclResult_t queue_all(std::vector<Request> requests) {
  while (!requests.empty()) {
    std::vector<Request> work, rest;
    for (const Request& r : requests) {
      (same_work(r, requests.front()) ? work : rest).push_back(r);
    }
    if (const ncclResult_t wrong = queue_work(work)) return wrong;
    requests = std::move(rest);
  }
  return ncclSuccess;
}

ncclResult_t check(const Request& r) {
  if (!r.comm || !r.comm->clique) return refuse(ncclInvalidArgument, "no communicator");
  if (!known(r.type)) return refuse(ncclInvalidArgument, "a data type that is not emulated");
  if (r.root < 0 || r.root >= r.comm->clique->size)
    return refuse(ncclInvalidArgument, "no such rank");
  if (r.op > ncclAvg) return refuse(ncclInvalidArgument, "an operation that is not emulated");
  if ((r.bytes_sent() && !r.from) || (r.bytes_received() && !r.to)) {
    return refuse(ncclInvalidArgument, format("%s: a null buffer", name_of(r.what)));
  }
  if (!r.context || device_of_stream(r.stream) != r.comm->device) {
    return refuse(ncclInvalidArgument,
                  format("%s: the stream is not of the communicator's device", name_of(r.what)));
  }
  return ncclSuccess;
}

ncclResult_t call(Collective what, const void* from, void* to, std::size_t count,
                  ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, CUstream stream) {
  if (const int code = injected_failure("library")) return static_cast<ncclResult_t>(code);
  Request r{what, from, to, count, type, op, root, comm, stream, current_context_of_thread()};
  if (const ncclResult_t wrong = check(r)) return wrong;
  if (group.depth == 0) return queue_all({r});
  group.requests.push_back(r);
  return ncclSuccess;
}

// Until all ranks have come.
ncclResult_t wait_for_all(ncclComm_t comm) {
  std::unique_lock lock(state().mutex);
  const Clique& clique = *comm->clique;
  const bool all = state().came.wait_for(lock, std::chrono::seconds(settings().longest_wait),
                                         [&] { return clique.present == clique.size; });
  if (all) return ncclSuccess;
  return refuse(ncclSystemError,
                format("ncclCommInitRank: %d of %d ranks have come (several ranks of one "
                       "thread belong between ncclGroupStart and ncclGroupEnd)",
                       clique.present, clique.size));
}

ncclResult_t join(ncclComm_t* comm, int size, const ncclUniqueId& id, int rank) {
  const int device = current_device();
  if (device < 0) return ncclUnhandledCudaError;
  const std::lock_guard lock(state().mutex);
  auto& clique = state().cliques[std::string(id.internal, sizeof id.internal)];
  if (!clique) {
    clique = std::make_shared<Clique>();
    clique->size = size;
    clique->ranks.resize(static_cast<std::size_t>(size));
  }
  if (clique->size != size || clique->ranks[static_cast<std::size_t>(rank)]) {
    return refuse(ncclInvalidUsage,
                  "ncclCommInitRank: this rank exists, or another size was given");
  }
  for (const ncclComm_t other : clique->ranks) {
    if (other && other->device == device) {
      return refuse(ncclInvalidUsage,
                    format("ncclCommInitRank: ranks %d and %d are both on device %d", other->rank,
                           rank, device));
    }
  }
  *comm = new ncclComm{clique, rank, device, 0, {}, {}, ncclSuccess};
  clique->ranks[static_cast<std::size_t>(rank)] = *comm;
  ++clique->present;
  state().came.notify_all();
  return ncclSuccess;
}

}  // namespace

EMULATOR_API ncclResult_t ncclGetVersion(int* version) {
  if (!version) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

EMULATOR_API ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (!id) return ncclInvalidArgument;
  std::random_device random;
  for (char& byte : id->internal) byte = static_cast<char>(random());
  return ncclSuccess;
}

EMULATOR_API const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

EMULATOR_API ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  static const bool announced = (announce("libnccl"), true);
  if (!announced || !comm || size < 1 || rank < 0 || rank >= size) return ncclInvalidArgument;
  if (const int code = injected_failure("library")) return static_cast<ncclResult_t>(code);
  if (const ncclResult_t wrong = join(comm, size, id, rank)) return wrong;
  if (group.depth == 0) return wait_for_all(*comm);
  group.joining.push_back(*comm);
  return ncclSuccess;
}

EMULATOR_API ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm) return ncclInvalidArgument;
  const std::lock_guard lock(state().mutex);
  comm->clique->ranks[static_cast<std::size_t>(comm->rank)] = nullptr;
  comm->clique = nullptr;
  delete comm;
  return ncclSuccess;
}

EMULATOR_API ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

EMULATOR_API ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return refuse(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--group.depth > 0) return ncclSuccess;
  const std::vector<ncclComm_t> joining = std::move(group.joining);
  const std::vector<Request> requests = std::move(group.requests);
  group = {};
  for (const ncclComm_t comm : joining) {
    if (const ncclResult_t wrong = wait_for_all(comm)) return wrong;
  }
  return queue_all(requests);
}

EMULATOR_API ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count,
                                        ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                        cudaStream_t stream) {
  return call(Collective::all_reduce, from, to, count, type, op, 0, comm, stream);
}

EMULATOR_API ncclResult_t ncclReduce(const void* from, void* to, std::size_t count,
                                     ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                                     cudaStream_t stream) {
  return call(Collective::reduce, from, to, count, type, op, root, comm, stream);
}

EMULATOR_API ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count,
                                        ncclDataType_t type, int root, ncclComm_t comm,
                                        cudaStream_t stream) {
  return call(Collective::broadcast, from, to, count, type, ncclSum, root, comm, stream);
}

EMULATOR_API ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count,
                                        ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  return call(Collective::all_gather, from, to, count, type, ncclSum, 0, comm, stream);
}

EMULATOR_API ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count,
                                            ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                            cudaStream_t stream) {
  return call(Collective::reduce_scatter, from, to, count, type, op, 0, comm, stream);
}

EMULATOR_API ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type,
                                   int peer, ncclComm_t comm, cudaStream_t stream) {
  return call(Collective::send, from, nullptr, count, type, ncclSum, peer, comm, stream);
}

EMULATOR_API ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer,
                                   ncclComm_t comm, cudaStream_t stream) {
  return call(Collective::receive, nullptr, to, count, type, ncclSum, peer, comm, stream);
}
