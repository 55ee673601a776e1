#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "croton/cache.h"
#include "croton/config.h"
#include "croton/context.h"
#include "croton/op_list.h"

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

/// `croton cache`: the compiled kernels on disk.
void list_kernels() {
  const std::vector<CachedKernel> entries = list_cache();
  std::int64_t bytes = 0;
  for (const CachedKernel& entry : entries) {
    bytes += entry.bytes;
    fmt::print("{}  {:>9} bytes  {:%Y-%m-%d %H:%M}  {}\n", entry.file, entry.bytes,
               fmt::localtime(static_cast<std::time_t>(entry.last_used)),
               entry.made_for.empty() ? "(damaged)" : entry.made_for);
  }
  fmt::print("{} entries, {} bytes in {}\n", entries.size(), bytes, cache_folder());
}

/// `croton cache prune [SIZE]`: SIZE as for the flag cache_max_bytes, which is the default.
void prune_kernels(const std::string& size) {
  Config config = current_config();
  if (!size.empty()) config = config.with("cache_max_bytes", size);
  const std::int64_t bytes = config.cache_max_bytes();
  if (size.empty() && bytes == 0) {
    fmt::print("cache_max_bytes=0 sets no limit: nothing to delete\n");
    return;
  }
  fmt::print("deleted {} entries of {}\n", prune_cache(bytes), cache_folder());
}

/// "bool, all floats": names, or a word for all of a kind.
std::string dtypes_text(const std::vector<DType>& dtypes) {
  if (dtypes.size() == kDTypeCount) return "any";
  const auto count = [&](auto is) {
    return static_cast<std::size_t>(std::count_if(dtypes.begin(), dtypes.end(), is));
  };
  const bool all_integers = count(is_integer) == 8, all_floats = count(is_float) == 4;
  std::vector<std::string_view> words;
  for (const DType t : dtypes) {
    if (!(all_integers && is_integer(t)) && !(all_floats && is_float(t)))
      words.push_back(name_of(t));
  }
  if (all_integers) words.push_back("integers");
  if (all_floats) words.push_back("floats");
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string operands_text(const OpInfo& op) {
  std::string text = op.least_operands == op.most_operands
                         ? fmt::format("{}", op.most_operands)
                         : fmt::format("{} to {}", op.least_operands, op.most_operands);
  if (!op.attributes.empty()) text += fmt::format("; {}", fmt::join(op.attributes, ", "));
  return text;
}

/// `croton ops --markdown`: docs/ops.md.
void print_ops_page() {
  fmt::print(
      "# Ops\n\n"
      "What graphs are made of, printed by `croton ops --markdown`. Functions of the public "
      "headers\n"
      "that are not here build their values from these. Scalar ops work elementwise on operands\n"
      "that broadcast and fuse with what stands around them; ops of the form loops fuse where "
      "their\n"
      "index maps allow, or have a kernel of their own; both run on CPUs (LLVM) and on NVIDIA "
      "GPUs\n"
      "(NVRTC), with the same bits for scalar ops. Ops of the form library call oneDNN or "
      "OpenBLAS,\n"
      "and cuBLASLt. Errors are the greatest, in units in the last place of float32 and float64;\n"
      "where none is given, results are exact or rounded once. float16 and bfloat16 are computed "
      "in\n"
      "float32. Where a result near 0 is a difference of larger numbers the unit is that of "
      "those;\n"
      "`compiler/kernel/math_bounds.cpp` says which.\n\n"
      "| op | what it is | form | operands; attributes | dtypes | gradient | error |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  const auto cell = [](std::string text) {
    for (std::size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) {
      text.insert(at, 1, '\\');
    }
    return text;
  };
  for (const OpInfo& op : all_ops()) {
    const bool rounded = op.float64_ulp == 0;
    fmt::print("| `{}` | {} | {} | {} | {} | {} | {} |\n", op.name, cell(op.doc), op.form,
               operands_text(op), dtypes_text(op.dtypes), op.differentiable ? "yes" : "",
               rounded ? "" : fmt::format("{}; {}", op.float32_ulp, op.float64_ulp));
  }
}

/// `croton ops`: every op with its form, the dtypes that it takes, and what it does.
void print_ops(bool as_json) {
  const std::vector<OpInfo> ops = all_ops();
  if (as_json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const OpInfo& op : ops) {
      std::vector<std::string> dtypes;
      for (const DType t : op.dtypes) dtypes.emplace_back(name_of(t));
      list.push_back({{"name", op.name},
                      {"form", op.form},
                      {"dtypes", dtypes},
                      {"differentiable", op.differentiable},
                      {"least_operands", op.least_operands},
                      {"most_operands", op.most_operands},
                      {"attributes", op.attributes},
                      {"float32_ulp", op.float32_ulp},
                      {"float64_ulp", op.float64_ulp},
                      {"doc", op.doc}});
    }
    fmt::print("{}\n", list.dump(2));
    return;
  }
  for (const OpInfo& op : ops) {
    const std::string dtypes = dtypes_text(op.dtypes);
    fmt::print("{}  ({}{}{}{})\n", op.name, op.form, dtypes.empty() ? "" : "; ", dtypes,
               op.differentiable ? "; differentiable" : "");
    print_wrapped(op.doc, 4, 92);
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

  CLI::App* devices =
      app.add_subcommand("devices", "Print devices, libraries and the bound contexts");
  devices->callback([] { fmt::print("{}", describe_devices()); });

  CLI::App* cache =
      app.add_subcommand("cache", "List, prune or clear the compiled kernels on disk");
  cache->require_subcommand(0, 1);
  cache->add_subcommand("list", "List them, latest used first");
  std::string size;
  CLI::App* prune = cache->add_subcommand("prune", "Delete the oldest until SIZE is left");
  prune->add_option("SIZE", size, "Bytes, or a number with K, M, G; cache_max_bytes if not given");
  CLI::App* clear = cache->add_subcommand("clear", "Delete all");
  cache->callback([&] {
    if (*prune) return prune_kernels(size);
    if (*clear) return fmt::print("deleted {} entries of {}\n", clear_cache(), cache_folder());
    list_kernels();
  });

  CLI::App* ops = app.add_subcommand("ops", "Print every op");
  ops->add_flag("--json", as_json, "Print JSON");
  bool as_markdown = false;
  ops->add_flag("--markdown", as_markdown, "Print the page docs/ops.md");
  ops->callback([&] { as_markdown ? print_ops_page() : print_ops(as_json); });

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
