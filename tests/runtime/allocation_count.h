#pragma once

#include <cstdint>

namespace croton::test {

/// How often this thread has asked operator new for memory; stays 0 under sanitizers, which have an
/// operator of their own.
std::int64_t allocation_count();

}  // namespace croton::test
