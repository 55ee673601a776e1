#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "croton/config.h"

namespace {

using namespace croton;

std::string_view scope_name(FlagScope scope) {
  switch (scope) {
    case FlagScope::process:
      return "process";
    case FlagScope::building:
      return "building";
    case FlagScope::compile:
      return "compile";
  }
  return {};
}

void print_flags_as_json(const Config& config) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const FlagInfo& flag : all_flags()) {
    list.push_back({{"name", flag.name},
                    {"value", config.value(flag.name)},
                    {"source", config.source(flag.name)},
                    {"default", Config().value(flag.name)},
                    {"allowed", flag.allowed},
                    {"scope", scope_name(flag.scope)},
                    {"affects_code", flag.affects_code},
                    {"doc", flag.doc}});
  }
  fmt::print("{}\n", list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// Prints `text` in lines of at most `width` characters, each behind `margin` blanks.
void print_wrapped(std::string_view text, std::size_t margin, std::size_t width) {
  while (!text.empty()) {
    std::size_t end = text.size();
    if (end > width) {
      end = text.rfind(' ', width);
      if (end == text.npos || end == 0) end = std::min(text.find(' '), text.size());
    }
    fmt::print("{:{}}{}\n", "", margin, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void print_flags(const Config& config) {
  std::size_t name_width = 0, value_width = 0;
  for (const FlagInfo& flag : all_flags()) {
    name_width = std::max(name_width, flag.name.size());
    value_width = std::max(value_width, std::min<std::size_t>(config.value(flag.name).size(), 32));
  }
  for (const FlagInfo& flag : all_flags()) {
    std::string value = config.value(flag.name);
    fmt::print("{:{}}  {:{}}  {}\n", flag.name, name_width, value.empty() ? "-" : value,
               value_width, config.source(flag.name));
    print_wrapped(flag.doc, 4, 92);
    print_wrapped(fmt::format("{}  ({})", flag.allowed, scope_name(flag.scope)), 4, 92);
  }
}

/// `croton flags`: every flag with its value, where the value came from, and what it does.
void run_flags(bool as_json) {
  Config config = Config::from_environment();
  if (as_json) {
    print_flags_as_json(config);
  } else {
    print_flags(config);
  }
}

/// Each command is a subcommand whose callback is one function.
int run(int argc, char** argv) {
  CLI::App app("Shows how Croton is set up here.", "croton");
  app.require_subcommand(1);

  bool as_json = false;
  CLI::App* flags = app.add_subcommand("flags", "Print every flag, its value and its source");
  flags->add_flag("--json", as_json, "Print JSON");
  flags->callback([&] { run_flags(as_json); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    int status = run(argc, argv);
    if (std::fflush(stdout) == 0) return status;
    fmt::print(stderr, "croton: cannot write the output\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "croton: {}\n", error.what());
  }
  return 1;
}
