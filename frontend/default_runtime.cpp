// The only ambient state: the process's Config and Runtime, and the scopes of each thread.
#include "frontend/default_runtime.h"

#include <vector>

#include "compiler/graph/node.h"
#include "croton/context.h"
#include "croton/error.h"
#include "runtime/float_flag.h"
#include "runtime/log.h"
#include "runtime/per_thread.h"
#include "runtime/runtime.h"

namespace croton {
namespace {

std::vector<const std::string*>& context_scopes() {
  return per_thread<std::vector<const std::string*>, struct ContextScopes>();
}
std::vector<Config>& config_scopes() {
  return per_thread<std::vector<Config>, struct ConfigScopes>();
}

DType float_x_now() { return build_settings().float_x; }

// When the library is loaded: arrays may be made before anything else.
[[maybe_unused]] const bool owns_float_x = [] {
  set_default_float_source(&float_x_now);
  return true;
}();

const Config& config_now() {
  return config_scopes().empty() ? process_config() : config_scopes().back();
}

}  // namespace

const Config& process_config() {
  // When reading throws, the next use reads again.
  static const Config* const config = [] {
    auto* read = new Config(Config::from_environment());
    set_log_level(static_cast<int>(read->log_level()));
    return read;
  }();
  return *config;
}

std::shared_ptr<Runtime> default_runtime() {
  static const auto* const runtime =
      new std::shared_ptr<Runtime>(std::make_shared<Runtime>(process_config()));
  return *runtime;
}

BuildSettings build_settings() {
  const Config& config = config_now();
  return {dtype_of_flag(config.floatX()), config.cast_policy() == CastPolicy::numpy,
          context_scopes().empty() ? nullptr : context_scopes().back()};
}

Config current_config() { return config_now(); }

void sync() { default_runtime()->wait(); }

std::string describe_devices() { return default_runtime()->describe_devices(); }

ContextScope::ContextScope(std::string_view name) {
  context_scopes().push_back(intern(default_runtime()->canonical_name(name)));
}
ContextScope::~ContextScope() { context_scopes().pop_back(); }

ConfigScope::ConfigScope(const Config& config) {
  config.check_scopes(process_config(), {FlagScope::building, FlagScope::compile}, "a ConfigScope");
  config_scopes().push_back(config);
}
ConfigScope::~ConfigScope() { config_scopes().pop_back(); }

}  // namespace croton
