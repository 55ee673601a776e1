#include "compiler/rewrite/rule.h"

namespace croton {

RuleTable stabilize_gradient_rules() { return {"stabilize", {}}; }

}  // namespace croton
