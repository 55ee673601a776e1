#include "runtime/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace croton {
namespace {

spdlog::logger& logger() {
  // Never destroyed: threads may log until the process ends. Not registered with spdlog, whose
  // default logger belongs to the program.
  static spdlog::logger* const instance = [] {
    auto* made = new spdlog::logger("croton", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_level(spdlog::level::warn);
    made->set_pattern("croton: %v");
    return made;
  }();
  return *instance;
}

}  // namespace

void log_warning(std::string_view text) { logger().warn("warning: {}", text); }
void log_info(std::string_view text) { logger().info("{}", text); }
void log_debug(std::string_view text) { logger().debug("{}", text); }

void set_log_level(int level) {
  logger().set_level(level >= 5 ? spdlog::level::off
                                : static_cast<spdlog::level::level_enum>(level));
}

}  // namespace croton
