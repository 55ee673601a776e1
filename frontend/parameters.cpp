#include "croton/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "compiler/graph/node.h"
#include "config/nearest_name.h"
#include "croton/error.h"
#include "croton/numpy_io.h"
#include "frontend/safetensors_file.h"
#include "frontend/whole_file.h"
#include "runtime/context.h"
#include "runtime/shared_locks.h"
#include "runtime/shared_state.h"

namespace croton {
namespace {

using States = std::map<std::string, SharedState*>;

States states_by_name(const char* where, const std::vector<Shared>& parameters) {
  States states;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].defined()) {
      throw UserError(fmt::format("[{}] parameter {} is an empty Shared", where, i));
    }
    SharedState* state = parameters[i].node()->shared.get();
    if (state->name.empty()) {
      throw UserError(
          fmt::format("[{}] parameter {} has no name: give it one with shared(value, {{.name = "
                      "...}})",
                      where, i));
    }
    if (!states.emplace(state->name, state).second) {
      throw UserError(fmt::format("[{}] two parameters are called '{}'", where, state->name));
    }
  }
  return states;
}

FileFormat format_of(const char* where, const std::string& path, FileFormat given) {
  if (given != FileFormat::by_extension) return given;
  const std::string_view name = path;
  if (name.ends_with(".npz")) return FileFormat::npz;
  if (name.ends_with(".safetensors")) return FileFormat::safetensors;
  throw UserError(
      fmt::format("[{}] {}: the format is not clear: expected a path that ends with .npz or "
                  ".safetensors, or the option format",
                  where, path));
}

/// Locks all of them, as calls do: in the order of their ids.
std::vector<Locked> in_order(const States& states, bool exclusive) {
  std::vector<Locked> order;
  for (const auto& [name, state] : states) order.push_back({state, exclusive});
  std::sort(order.begin(), order.end(),
            [](const Locked& a, const Locked& b) { return a.state->id < b.state->id; });
  return order;
}

/// The values of one moment. Their memory is never written in place, so that handles are enough.
std::vector<std::pair<std::string, Array>> snapshot(const States& states) {
  const std::vector<Locked> order = in_order(states, false);
  const SharedLocks hold(order);
  std::vector<std::pair<std::string, Array>> values;
  for (const auto& [name, state] : states) {
    if (const std::string lost = state->why_lost(); !lost.empty()) {
      throw DeviceError(fmt::format("[save_parameters] the value of {} was lost: {}", name, lost));
    }
    values.emplace_back(name, *state->nearest(true));
  }
  return values;
}

void write_npz(const std::string& path, const std::vector<std::pair<std::string, Array>>& values,
               bool compressed) {
  for (const auto& [name, value] : values) {
    if (value.dtype() == DType::bfloat16) {
      throw FileError(
          fmt::format("[save_parameters] {}: '{}' is bfloat16, which NumPy has not: save to a "
                      ".safetensors file",
                      path, name));
    }
    if (name.find('\0') != name.npos) {
      throw FileError(fmt::format("[save_parameters] {}: a name has a zero byte in it", path));
    }
  }
  WholeFile file(path, "save_parameters");
  save_npz(file.temporary(), {values.begin(), values.end()}, compressed);
  file.commit();
}

/// What a file has under a name.
struct Found {
  DType dtype;
  Shape shape;
  std::function<Array()> read;
};
using Content = std::map<std::string, Found>;

Content content_of(const std::string& path, FileFormat format,
                   std::optional<SafetensorsFile>& file) {
  Content content;
  if (format == FileFormat::npz) {
    for (auto& [name, array] : load_npz(path)) {
      content.emplace(name, Found{array.dtype(), array.shape(), [array = array] { return array; }});
    }
    return content;
  }
  file.emplace(path, "load_parameters");
  for (const auto& [name, stored] : file->arrays()) {
    content.emplace(name, Found{stored.dtype, stored.shape,
                                [&file, &stored = stored] { return file->read(stored); }});
  }
  return content;
}

std::string difference(const std::string& name, const SharedState& state, const Found& found) {
  const bool fits =
      state.resizable ? found.shape.size() == state.shape.size() : found.shape == state.shape;
  if (found.dtype == state.dtype && fits) return {};
  return fmt::format("'{}' is {} {} in the file and {} {} here", name, name_of(found.dtype),
                     found.shape.to_string(), name_of(state.dtype), state.shape.to_string());
}

template <class Map>
std::vector<std::string> names_of(const Map& map) {
  std::vector<std::string> names;
  for (const auto& entry : map) names.push_back(entry.first);
  return names;
}

/// FileError with all that differs, up to some.
void compare(const std::string& path, const States& states, const Content& content,
             const LoadParametersOptions& options) {
  std::vector<std::string> faults;
  for (const auto& [name, state] : states) {
    const auto found = content.find(name);
    if (found != content.end()) {
      if (std::string text = difference(name, *state, found->second); !text.empty()) {
        faults.push_back(std::move(text));
      }
    } else if (!options.allow_missing) {
      faults.push_back(fmt::format("the file has no '{}' (allow_missing leaves such as they are{})",
                                   name, did_you_mean(name, names_of(content))));
    }
  }
  for (const auto& [name, found] : content) {
    if (options.allow_surplus || states.contains(name)) continue;
    faults.push_back(fmt::format("no parameter is called '{}' (allow_surplus leaves such out{})",
                                 name, did_you_mean(name, names_of(states))));
  }
  if (faults.empty()) return;
  constexpr std::size_t kShown = 8;
  const std::size_t more = faults.size() > kShown ? faults.size() - kShown : 0;
  faults.resize(faults.size() - more);
  throw FileError(fmt::format("[load_parameters] {} does not fit, nothing was loaded: {}{}", path,
                              fmt::join(faults, "; "),
                              more > 0 ? fmt::format("; and {} more", more) : ""));
}

}  // namespace

void save_parameters(const std::string& path, const std::vector<Shared>& parameters,
                     const SaveParametersOptions& options) {
  constexpr const char* kWhere = "save_parameters";
  const States states = states_by_name(kWhere, parameters);
  const FileFormat format = format_of(kWhere, path, options.format);
  if (format == FileFormat::npz) return write_npz(path, snapshot(states), options.compressed);
  if (options.compressed) {
    throw UserError(fmt::format("[{}] {}: only .npz files are compressed", kWhere, path));
  }
  write_safetensors(path, kWhere, snapshot(states), {});
}

void load_parameters(const std::string& path, const std::vector<Shared>& parameters,
                     const LoadParametersOptions& options) {
  constexpr const char* kWhere = "load_parameters";
  const States states = states_by_name(kWhere, parameters);
  std::optional<SafetensorsFile> file;
  const Content content = content_of(path, format_of(kWhere, path, options.format), file);
  compare(path, states, content, options);
  States loaded;
  std::vector<std::pair<SharedState*, Array>> values;
  for (const auto& [name, state] : states) {
    const auto found = content.find(name);
    if (found == content.end()) continue;
    loaded.emplace(name, state);
    values.emplace_back(state, state->home->bring(found->second.read()));
  }
  const std::vector<Locked> order = in_order(loaded, true);
  const SharedLocks hold(order);
  for (auto& [state, value] : values) state->replace(value);
}

}  // namespace croton
