#include "tests/cuda_emulator/nccl_ranks.h"

#include <algorithm>
#include <cstring>

namespace emulator {
namespace {

template <class T>
T combined(ncclRedOp_t op, T a, T b) {
  switch (op) {
    case ncclProd:
      return static_cast<T>(a * b);
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
    default:
      return static_cast<T>(a + b);
  }
}

double load_float(const char* p, ncclDataType_t type) {
  if (type == ncclFloat64) {
    double x;
    std::memcpy(&x, p, 8);
    return x;
  }
  if (type == ncclFloat32) {
    float x;
    std::memcpy(&x, p, 4);
    return x;
  }
  std::uint16_t bits;
  std::memcpy(&bits, p, 2);
  if (type == ncclFloat16) return static_cast<float>(__builtin_bit_cast(_Float16, bits));
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}

void store_float(char* p, ncclDataType_t type, double value) {
  if (type == ncclFloat64) {
    std::memcpy(p, &value, 8);
    return;
  }
  const auto narrow = static_cast<float>(value);
  if (type == ncclFloat32) {
    std::memcpy(p, &narrow, 4);
    return;
  }
  std::uint16_t bits = __builtin_bit_cast(std::uint16_t, static_cast<_Float16>(narrow));
  if (type == ncclBfloat16) {
    const auto wide = __builtin_bit_cast(std::uint32_t, narrow);
    bits = narrow != narrow ? static_cast<std::uint16_t>(wide >> 16 | 0x40)
                            : static_cast<std::uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
  }
  std::memcpy(p, &bits, 2);
}

template <class T>
void reduce_integers(const Exchange& exchange, char* to, std::size_t first, std::size_t count,
                     ncclRedOp_t op) {
  for (std::size_t i = 0; i < count; ++i) {
    T result{};
    bool begun = false;
    for (const auto& [rank, side] : exchange.sides) {
      T x;
      std::memcpy(&x, side.staged.data() + (first + i) * sizeof(T), sizeof(T));
      result = begun ? combined(op, result, x) : x;
      begun = true;
    }
    if (op == ncclAvg) result = static_cast<T>(result / static_cast<T>(exchange.sides.size()));
    std::memcpy(to + i * sizeof(T), &result, sizeof(T));
  }
}

// In double, in the order of ranks: one rounding.
void reduce_floats(const Exchange& exchange, char* to, std::size_t first, std::size_t count,
                   ncclDataType_t type, ncclRedOp_t op) {
  const std::size_t size = size_of(type);
  for (std::size_t i = 0; i < count; ++i) {
    double result = 0;
    bool begun = false;
    for (const auto& [rank, side] : exchange.sides) {
      const double x = load_float(side.staged.data() + (first + i) * size, type);
      result = begun ? combined(op, result, x) : x;
      begun = true;
    }
    if (op == ncclAvg) result /= static_cast<double>(exchange.sides.size());
    store_float(to + i * size, type, result);
  }
}

void reduce(const Exchange& exchange, char* to, std::size_t first, std::size_t count,
            const Request& r) {
  switch (r.type) {
    case ncclInt8:
      return reduce_integers<std::int8_t>(exchange, to, first, count, r.op);
    case ncclUint8:
      return reduce_integers<std::uint8_t>(exchange, to, first, count, r.op);
    case ncclInt32:
      return reduce_integers<std::int32_t>(exchange, to, first, count, r.op);
    case ncclUint32:
      return reduce_integers<std::uint32_t>(exchange, to, first, count, r.op);
    case ncclInt64:
      return reduce_integers<std::int64_t>(exchange, to, first, count, r.op);
    case ncclUint64:
      return reduce_integers<std::uint64_t>(exchange, to, first, count, r.op);
    default:
      return reduce_floats(exchange, to, first, count, r.type, r.op);
  }
}

}  // namespace

const char* name_of(Collective what) {
  switch (what) {
    case Collective::all_reduce:
      return "ncclAllReduce";
    case Collective::reduce:
      return "ncclReduce";
    case Collective::broadcast:
      return "ncclBroadcast";
    case Collective::all_gather:
      return "ncclAllGather";
    case Collective::reduce_scatter:
      return "ncclReduceScatter";
    case Collective::send:
      return "ncclSend";
    case Collective::receive:
      return "ncclRecv";
  }
  return "?";
}

bool known(ncclDataType_t type) { return size_of(type) != 0; }

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

std::size_t Request::bytes() const { return count * size_of(type); }

std::size_t Request::bytes_sent() const {
  if (what == Collective::receive) return 0;
  if (what == Collective::broadcast && comm->rank != root) return 0;
  const std::size_t pieces =
      what == Collective::reduce_scatter ? static_cast<std::size_t>(comm->clique->size) : 1;
  return bytes() * pieces;
}

std::size_t Request::bytes_received() const {
  if (what == Collective::send) return 0;
  if (what == Collective::reduce && comm->rank != root) return 0;
  const std::size_t pieces =
      what == Collective::all_gather ? static_cast<std::size_t>(comm->clique->size) : 1;
  return bytes() * pieces;
}

const char* disagreement(const Exchange& exchange, const Request& request) {
  if (exchange.sides.empty()) return nullptr;
  const Request& other = exchange.sides.begin()->second.request;
  const bool pair = request.what == Collective::send || request.what == Collective::receive;
  if (!pair && request.what != other.what) return "another collective";
  if (request.bytes() != other.bytes()) return "another size";
  if (!pair && request.type != other.type) return "another type";
  if (!pair && request.root != other.root) return "another root";
  const bool reduces = request.what == Collective::all_reduce ||
                       request.what == Collective::reduce ||
                       request.what == Collective::reduce_scatter;
  return reduces && request.op != other.op ? "another operation" : nullptr;
}

void deliver(Exchange& exchange, int rank) {
  const Request& r = exchange.sides.at(rank).request;
  auto* to = static_cast<char*>(r.to);
  switch (r.what) {
    case Collective::send:
      return;
    case Collective::receive:
      std::memcpy(to, exchange.sides.at(r.root).staged.data(), r.bytes());
      return;
    case Collective::broadcast:
      std::memcpy(to, exchange.sides.at(r.root).staged.data(), r.bytes());
      return;
    case Collective::all_gather:
      for (const auto& [from, side] : exchange.sides) {
        std::memcpy(to + static_cast<std::size_t>(from) * r.bytes(), side.staged.data(), r.bytes());
      }
      return;
    case Collective::reduce_scatter:
      return reduce(exchange, to, static_cast<std::size_t>(rank) * r.count, r.count, r);
    case Collective::reduce:
      if (rank == r.root) reduce(exchange, to, 0, r.count, r);
      return;
    case Collective::all_reduce:
      return reduce(exchange, to, 0, r.count, r);
  }
}

}  // namespace emulator
