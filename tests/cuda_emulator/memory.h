// Device memory: one range of addresses for each device, allocations with a gap between them.
// Addresses are never used twice.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/cuda_emulator/checks.h"
#include "tests/cuda_emulator/order.h"

namespace emulator {

struct AllocationInfo {
  int device = 0;
  bool live = false;
  bool stream_ordered = false;
  void* pool = nullptr;
  const char* api = "";     // that made it
  std::uint32_t made = 0;   // the node that made it, 0 for the host
  std::uint32_t freed = 0;  // the node that freed it
  const char* freed_by = "";
  std::vector<std::uint32_t> users;  // nodes that accessed it
};

/// Page-locked memory of the host.
struct Pinned {
  std::uintptr_t begin = 0, end = 0;
  unsigned flags = 0;
  bool registered = false;
};

class Memory {
 public:
  explicit Memory(Order& order);

  /// Poisoned memory; 0 when the address space is used up.
  std::uintptr_t allocate(AllocationInfo info, std::uint64_t bytes, std::uint32_t devices);
  /// Takes the memory away. The allocation stays known, for reports.
  void release(std::uint32_t id, std::uint32_t node, const char* api);

  bool is_device(std::uintptr_t address) const { return address - base_ < bytes_; }
  /// The live or freed allocation that holds `address`, or else the one below it that is nearest;
  /// 0 for none.
  std::uint32_t nearest(std::uintptr_t address) const;
  /// The live allocation that begins at `address`, or 0.
  std::uint32_t beginning_at(std::uintptr_t address) const;
  const Allocation& range(std::uint32_t id) const { return allocations_[id]; }
  AllocationInfo& info(std::uint32_t id) { return infos_[id]; }
  /// "3 bytes past the end of 400 bytes of device 0 (cuMemAlloc)".
  std::string describe(std::uintptr_t address) const;

  /// Which devices may use the live allocations of `owner` that are (not) stream-ordered.
  void set_devices(int owner, bool stream_ordered, const void* pool, std::uint32_t devices);

  std::map<std::uintptr_t, Pinned> pinned;  // by begin
  const Pinned* find_pinned(std::uintptr_t address, std::uint64_t bytes) const;

  /// Memory of modules (__device__ and __constant__ variables): begin -> end.
  std::map<std::uintptr_t, std::uintptr_t> modules;
  bool in_module(std::uintptr_t address, std::uint64_t bytes) const;

  void fill(Checks& checks) const;

  /// Device memory is accessible while one of these lives, else it faults. Nest freely.
  class Open {
   public:
    explicit Open(Memory& memory) : memory_(memory) { memory_.open(); }
    ~Open() { memory_.close(); }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    Memory& memory_;
  };

 private:
  void open();
  void close();
  void protect(int protection);

  Order& order_;
  std::uintptr_t base_ = 0, bytes_ = 0;
  std::uint32_t* owner_ = nullptr;
  Allocation* allocations_ = nullptr;
  Cell* cells_ = nullptr;
  std::vector<AllocationInfo> infos_{1};
  std::vector<std::uintptr_t> next_;  // of each device
  std::map<std::uintptr_t, std::uint32_t> by_begin_;
  int opened_ = 0;
};

}  // namespace emulator
