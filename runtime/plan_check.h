// What is said when sizes that must be equal are not, in a call or while a graph is built.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/plan.h"

namespace croton {

/// Puts a text or number in the place of "{name}" in a message.
std::string filled(std::string message, std::string_view name, std::string_view text);
std::string filled(std::string message, std::string_view name, std::int64_t value);

/// The message of a check that failed with these two sizes: which arguments they come from and,
/// where a size of 1 would have been stretched had it been known, how to declare it.
std::string clash_text(const Plan& plan, const PlanCheck& check, std::int64_t a, std::int64_t b);

}  // namespace croton
