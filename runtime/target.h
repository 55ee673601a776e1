// What the compiler must know of a device, as plain data: schedules and emitters see this and
// never the device itself.
#pragma once

#include <cstdint>
#include <string>

namespace croton {

enum class Backend : std::uint8_t { cpu, cuda, null };

struct TargetInfo {
  Backend backend = Backend::cpu;

  // CPU. Lanes are counted in 32-bit elements: a vector has vector_bits / 32 of them.
  int vector_bits = 128;
  int cores = 1;
  std::int64_t l1_bytes = 32 << 10;  ///< data cache of one core
  std::int64_t l2_bytes = 1 << 20;   ///< of one core
  std::int64_t l3_bytes = 8 << 20;   ///< of the socket
  std::string cpu = "generic";       ///< name and feature string as LLVM spells them
  std::string features;

  // GPU.
  int sm = 0;  ///< compute capability times ten: 75, 80, 90, 100
  int multiprocessors = 0;
  int warp = 32;
  int max_threads = 1024;                ///< of a block
  std::int64_t shared_bytes = 48 << 10;  ///< of a block, without asking for more

  bool gpu() const { return backend == Backend::cuda || sm > 0; }

  int lanes() const { return vector_bits / 32; }
  /// An output larger than this is written past the caches when nobody reads it soon. Virtual
  /// machines tell of the last cache of a whole socket, of which some 16 MiB a core are theirs.
  std::int64_t streaming_bytes() const {
    const std::int64_t share = cores * (l2_bytes + (std::int64_t{16} << 20));
    return (share < l3_bytes ? share : l3_bytes) / 2;
  }
};

/// The CPU that this process runs on, asked of the processor and the operating system.
TargetInfo host_target();

}  // namespace croton
