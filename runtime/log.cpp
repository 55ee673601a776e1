#include "runtime/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <mutex>

#include "runtime/fork.h"

namespace croton {
namespace {

spdlog::logger& logger() {
  // Never destroyed: threads may log until the process ends. Not registered with spdlog, whose
  // default logger belongs to the program.
  static spdlog::logger* const instance = [] {
    auto* made = new spdlog::logger("croton", std::make_shared<spdlog::sinks::stderr_sink_st>());
    made->set_level(spdlog::level::warn);
    made->set_pattern("croton: %v");
    return made;
  }();
  return *instance;
}

void log_line(spdlog::level::level_enum level, std::string_view head, std::string_view text) {
  if (!logger().should_log(level)) return;
  const std::lock_guard hold(log_mutex());
  logger().log(level, "{}{}", head, text);
}

}  // namespace

void log_warning(std::string_view text) { log_line(spdlog::level::warn, "warning: ", text); }
void log_info(std::string_view text) { log_line(spdlog::level::info, "", text); }
void log_debug(std::string_view text) { log_line(spdlog::level::debug, "", text); }

void set_log_level(int level) {
  logger().set_level(level >= 5 ? spdlog::level::off
                                : static_cast<spdlog::level::level_enum>(level));
}

}  // namespace croton
