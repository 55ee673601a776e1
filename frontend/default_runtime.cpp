// The only ambient state: the process's Config and Runtime, and the scopes of each thread.
#include "frontend/default_runtime.h"

#include <vector>

#include "compiler/graph/node.h"
#include "config/device_spec.h"
#include "croton/context.h"
#include "croton/error.h"
#include "runtime/float_flag.h"
#include "runtime/log.h"
#include "runtime/per_thread.h"
#include "runtime/runtime.h"

namespace croton {
namespace {

/// What a ContextScope says; no context where it drops those around it.
struct Scope {
  const std::string* context = nullptr;
  DeviceSpec device;
};

std::vector<Scope>& context_scopes() {
  return per_thread<std::vector<Scope>, struct ContextScopes>();
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

/// The scope of a device as TensorFlow writes it, inside of another one.
Scope scope_of_spec(std::string_view text, const Scope& outer) {
  const DeviceSpec inner = parse_device_spec(text);
  const DeviceSpec merged = merge_specs(outer.device, inner);
  // The context around says which one of several on a device is meant.
  if (!merged.kind || merged == outer.device) return outer;
  return {intern(context_of_spec(merged, process_config().contexts())), merged};
}

Scope scope_of_name(std::string_view text) {
  Scope scope{intern(default_runtime()->canonical_name(text)), {}};
  for (const ContextBinding& binding : process_config().contexts()) {
    if (binding.name != *scope.context) continue;
    scope.device = spec_of(binding.device);
    return scope;
  }
  if (const auto device = find_device_name(*scope.context)) scope.device = spec_of(*device);
  return scope;
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
          context_scopes().empty() ? nullptr : context_scopes().back().context};
}

Config current_config() { return config_now(); }

void sync() { default_runtime()->wait(); }

std::string describe_devices() { return default_runtime()->describe_devices(); }

ContextScope::ContextScope(std::string_view name) {
  std::vector<Scope>& scopes = context_scopes();
  const Scope outer = scopes.empty() ? Scope{} : scopes.back();
  scopes.push_back(name.empty()           ? Scope{}
                   : is_device_spec(name) ? scope_of_spec(name, outer)
                                          : scope_of_name(name));
}
ContextScope::ContextScope(None) { context_scopes().push_back({}); }
ContextScope::~ContextScope() { context_scopes().pop_back(); }

ConfigScope::ConfigScope(const Config& config) {
  config.check_scopes(process_config(), {FlagScope::building, FlagScope::compile}, "a ConfigScope");
  config_scopes().push_back(config);
}
ConfigScope::~ConfigScope() { config_scopes().pop_back(); }

}  // namespace croton
