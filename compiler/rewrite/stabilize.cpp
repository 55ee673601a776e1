// Forms in which nothing overflows and nothing cancels.
#include "compiler/rewrite/match.h"
#include "compiler/rewrite/rule.h"

namespace croton {

RuleTable stabilize_rules() { return {"stabilize", {}}; }

}  // namespace croton
