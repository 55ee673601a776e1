#include "compiler/rewrite/rule.h"

namespace croton {

RuleTable specialize_rules() { return {"specialize", {}}; }

}  // namespace croton
