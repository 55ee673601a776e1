#pragma once

#include <cstdint>
#include <span>

#include "runtime/specialize.h"

namespace croton {

/// Has copies that move bytes go by the links of their sources' contexts, beside the steps, instead
/// of among them; copies from a GPU to the host, which go beside its work anyway, stay where they
/// are unless links are slow.
///
/// Copies of one context to one other travel as one message while that holds no more than
/// bucket_bytes (the first message of the two: 1 MiB) and no step that needs one of them has come.
/// A message leaves when the last of its copies would have: since nothing waits for it before, no
/// step waits for one behind itself.
void link_copies(const BoundPlan& bound, const SlotMemory& memory,
                 std::span<const std::int64_t> slot_bytes, Specialised& out);

}  // namespace croton
