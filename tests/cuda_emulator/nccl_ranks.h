// Ranks of the emulated NCCL, all in one process, and what they exchange.
#pragma once

#include <cuda.h>
#include <nccl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tests/cuda_emulator/library_call.h"

namespace emulator {

struct Exchange;

/// The ranks that were made with one id.
struct Clique {
  int size = 0;
  std::vector<ncclComm_t> ranks;  // null until they have come
  int present = 0;
  std::map<std::uint64_t, std::weak_ptr<Exchange>> collectives;  // by number
};

}  // namespace emulator

struct ncclComm {
  std::shared_ptr<emulator::Clique> clique;
  int rank = 0, device = -1;
  std::uint64_t collectives = 0;                // called so far
  std::map<int, std::uint64_t> sent, received;  // by peer
  ncclResult_t error = ncclSuccess;
};

namespace emulator {

enum class Collective { all_reduce, reduce, broadcast, all_gather, reduce_scatter, send, receive };

const char* name_of(Collective what);

struct Request {
  Collective what = Collective::all_reduce;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;  // as the call has it
  ncclDataType_t type = ncclFloat;
  ncclRedOp_t op = ncclSum;
  int root = 0;  // or the peer
  ncclComm_t comm = nullptr;
  CUstream stream = nullptr;
  CUcontext context = nullptr;

  std::size_t bytes() const;
  std::size_t bytes_sent() const;
  std::size_t bytes_received() const;
};

/// One collective, or one send with its receive: what each rank brings.
struct Exchange {
  struct Side {
    Request request;
    std::weak_ptr<Meeting> meeting;  // gone when its stream was given up
    std::vector<char> staged;
  };
  std::map<int, Side> sides;  // by rank
  int expected = 0;
};

/// Whether all sides ask for the same; else why not.
const char* disagreement(const Exchange& exchange, const Request& request);

/// Fills the receiving memory of one side from what all have staged.
void deliver(Exchange& exchange, int rank);

std::size_t size_of(ncclDataType_t type);
bool known(ncclDataType_t type);

}  // namespace emulator
