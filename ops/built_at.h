#pragma once

#include "compiler/graph/node.h"

namespace croton {

/// What `make` builds, all of it in the place `loc`.
template <class Make>
Variable built_at(const Loc& loc, Make&& make) {
  const std::uint64_t since = next_node_id();
  const Variable y = make();
  relocate(y, since, loc);
  return y;
}

}  // namespace croton
