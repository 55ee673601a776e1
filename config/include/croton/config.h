#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "croton/context_map.h"
#include "croton/export.h"

namespace croton {

/// Where a flag may be set in code. `process` flags are fixed at first use, `building` flags are
/// set by a ConfigScope, `compile` flags by the options of one function.
enum class FlagScope { process, building, compile };

enum class FlagType { boolean, integer, bytes, choice, text, path, names, contexts, device };

/// What is known of a flag besides its value.
struct CROTON_API FlagInfo {
  std::string_view name;
  FlagType type;
  std::string_view default_text;
  std::string_view allowed;
  FlagScope scope;
  bool affects_code;
  std::string_view doc;
};

/// Every flag, in the order in which they are declared.
CROTON_API std::span<const FlagInfo> all_flags();

/// The flag called `name`; an unknown one is a ConfigError that suggests the nearest.
CROTON_API const FlagInfo& flag_info(std::string_view name);

/// The scope of the flag called `name`; an unknown one is a ConfigError.
CROTON_API FlagScope flag_scope(std::string_view name);

// One enum for each flag that is a choice, and the type that each getter returns.
#define CROTON_STRIP(...) __VA_ARGS__
#define CROTON_FLAG(...)
#define CROTON_CHOICE(Enum, values, ...) enum class Enum { CROTON_STRIP values };
#include "croton/flags.def"
#undef CROTON_CHOICE
#undef CROTON_FLAG
#undef CROTON_STRIP

namespace flag_type {
using Bool = bool;
using Int = std::int64_t;
using Bytes = std::int64_t;
using Text = const std::string&;
using Path = const std::string&;
using Names = const std::vector<std::string>&;
using Contexts = const ContextMap&;
using Device = const std::optional<DeviceName>&;
}  // namespace flag_type

/// The text of a flag's value, from a string, a bool or a number.
class CROTON_API FlagValue {
 public:
  FlagValue(const char* text) : text_(text) {}
  FlagValue(std::string_view text) : text_(text) {}
  FlagValue(std::string text) : text_(std::move(text)) {}
  template <std::same_as<bool> T>
  FlagValue(T on) : text_(on ? "on" : "off") {}
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>) FlagValue(T number)
      : text_(std::to_string(number)) {}
  template <std::floating_point T>
  FlagValue(T number) : text_(text_of(static_cast<double>(number))) {}

  const std::string& text() const { return text_; }

 private:
  static std::string text_of(double number);

  std::string text_;
};

/// The values of all flags and where each came from. Immutable, cheap to copy, never empty.
class CROTON_API Config {
 public:
  /// The defaults.
  Config();
  // No move constructor: a Config that was moved from is still whole.
  Config(const Config&) = default;
  Config& operator=(const Config&) = default;
  ~Config() = default;

  /// Reads CROTON_FLAGS over the rc files (CROTONRC, else ~/.crotonrc) over the defaults. Anything
  /// that cannot be read is a ConfigError which names flag, value, place and allowed values.
  static Config from_environment();

  /// The same from a given text in place of CROTON_FLAGS, and rc files that must exist.
  static Config from_text(std::string_view flags, const std::vector<std::string>& rc_files = {});

  /// A copy in which the flag `name` has `value`. An unknown name or a value that is not allowed is
  /// a ConfigError. Whether the flag may be set there is checked where the Config is handed over.
  Config with(std::string_view name, const FlagValue& value,
              std::source_location place = std::source_location::current()) const;

  /// The canonical text of a flag's value; it reads back as the same value.
  std::string value(std::string_view name) const;

  /// Where a flag's value came from: `default`, `environment`, `FILE:LINE` or `code (FILE:LINE)`.
  std::string source(std::string_view name) const;

  /// The names of the flags whose values differ from those in `other`.
  std::vector<std::string> changed_from(const Config& other) const;

  /// A ConfigError if a flag outside `scopes` differs from its value in `base`. `place` says, in
  /// the message, who was given this Config, such as `function(..., {.config = })`.
  void check_scopes(const Config& base, std::initializer_list<FlagScope> scopes,
                    std::string_view place) const;

  /// `name=value` of the flags that change generated code, for the key of the kernel cache.
  std::string code_key() const;

  // A getter for each flag: `bool fuse() const`, `FloatX floatX() const` ...
#define CROTON_FLAG(type, identifier, ...) flag_type::type identifier() const;
#define CROTON_CHOICE(Enum, values, identifier, ...) Enum identifier() const;
#include "croton/flags.def"
#undef CROTON_CHOICE
#undef CROTON_FLAG

  struct Data;

 private:
  explicit Config(std::shared_ptr<const Data> data);

  std::shared_ptr<const Data> data_;
};

}  // namespace croton
