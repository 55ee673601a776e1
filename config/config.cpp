#include "croton/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/config_data.h"
#include "config/environment.h"
#include "config/flag_string.h"
#include "config/flag_table.h"
#include "config/rc_file.h"
#include "croton/error.h"

namespace croton {
namespace {

void assign(Config::Data& data, const Assignment& assignment) {
  const FlagInfo* flag = find_flag(assignment.name);
  if (!flag) throw_unknown_flag(assignment.name, place_text(assignment.origin));
  data.entries[flag_index(*flag)] = {
      parse_value(*flag, assignment.value, place_text(assignment.origin), data.home),
      assignment.origin};
}

std::shared_ptr<Config::Data> defaults(const Environment& environment) {
  auto data = std::make_shared<Config::Data>();
  data->home = environment.home;
  for (const FlagInfo& flag : all_flags()) {
    // The one default that depends on the machine.
    bool is_cache = flag_index(flag) == static_cast<int>(FlagId::cache_dir);
    std::string text =
        is_cache ? environment.cache_home + "/croton" : std::string(flag.default_text);
    data->entries.push_back({parse_value(flag, text, "default", data->home), {}});
  }
  return data;
}

std::shared_ptr<const Config::Data> load(const Environment& environment) {
  auto data = defaults(environment);
  bool named = environment.rc_files.has_value();
  std::vector<std::string> files = environment.rc_files.value_or(std::vector<std::string>{});
  if (!named && !environment.home.empty()) files.push_back(environment.home + "/.crotonrc");
  for (const std::string& file : files) {
    for (const Assignment& a : read_rc_file(expand_home(file, environment.home), named)) {
      assign(*data, a);
    }
  }
  for (const Assignment& a : parse_flag_string(environment.flags)) assign(*data, a);
  return data;
}

std::string_view scope_rule(FlagScope scope) {
  switch (scope) {
    case FlagScope::process:
      return "it is fixed at first use; set it in CROTON_FLAGS or an rc file";
    case FlagScope::building:
      return "it is set while expressions are built, by a ConfigScope";
    case FlagScope::compile:
      return "it is set per function, in the config of its options";
  }
  return {};
}

const Config::Data::Entry& entry(const Config::Data& data, std::string_view name) {
  return data.entries[flag_index(flag_info(name))];
}

}  // namespace

std::string FlagValue::text_of(double number) { return fmt::format("{}", number); }

Config::Config() : data_(defaults(read_environment())) {}

Config::Config(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

Config Config::from_environment() { return Config(load(read_environment())); }

Config Config::from_text(std::string_view flags, const std::vector<std::string>& rc_files) {
  Environment environment = read_environment();
  environment.flags = flags;
  environment.rc_files = rc_files;
  return Config(load(environment));
}

Config Config::with(std::string_view name, const FlagValue& value,
                    std::source_location place) const {
  auto data = std::make_shared<Data>(*data_);
  std::string_view file = place.file_name();
  file.remove_prefix(file.rfind('/') + 1);
  assign(*data, {std::string(name),
                 value.text(),
                 {Origin::Kind::code, std::string(file), static_cast<int>(place.line())}});
  return Config(std::move(data));
}

std::string Config::value(std::string_view name) const {
  return print_value(flag_info(name), entry(*data_, name).value);
}

std::string Config::source(std::string_view name) const {
  return source_text(entry(*data_, name).origin);
}

std::vector<std::string> Config::changed_from(const Config& other) const {
  std::vector<std::string> names;
  for (const FlagInfo& flag : all_flags()) {
    if (entry(*data_, flag.name).value != entry(*other.data_, flag.name).value) {
      names.emplace_back(flag.name);
    }
  }
  return names;
}

void Config::check_scopes(const Config& base, std::initializer_list<FlagScope> scopes,
                          std::string_view place) const {
  for (const std::string& name : changed_from(base)) {
    FlagScope scope = flag_scope(name);
    if (std::ranges::find(scopes, scope) != scopes.end()) continue;
    throw ConfigError(fmt::format("[{}] cannot be set to '{}' in {}: {}", name, value(name), place,
                                  scope_rule(scope)));
  }
}

std::string Config::code_key() const {
  std::string key;
  for (const FlagInfo& flag : all_flags()) {
    if (flag.affects_code) key += fmt::format("{}={}\n", flag.name, value(flag.name));
  }
  return key;
}

// The getters.
namespace {

namespace stored {
using Bool = bool;
using Int = std::int64_t;
using Bytes = std::int64_t;
using Text = std::string;
using Path = std::string;
using Names = std::vector<std::string>;
using Contexts = ContextMap;
using Device = std::optional<DeviceName>;
}  // namespace stored

template <class T>
const T& get(const Config::Data& data, FlagId id) {
  return std::get<T>(data.entries[static_cast<int>(id)].value);
}

}  // namespace

#define CROTON_FLAG(type, identifier, ...)                \
  flag_type::type Config::identifier() const {            \
    return get<stored::type>(*data_, FlagId::identifier); \
  }
#define CROTON_CHOICE(Enum, values, identifier, ...)                         \
  Enum Config::identifier() const {                                          \
    return static_cast<Enum>(get<std::int64_t>(*data_, FlagId::identifier)); \
  }
#include "croton/flags.def"
#undef CROTON_CHOICE
#undef CROTON_FLAG

}  // namespace croton
