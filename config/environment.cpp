#include "config/environment.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "config/text.h"
#include "croton/error.h"

namespace croton {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value) return std::nullopt;
  return std::string(value);
}

std::string home_folder() {
  if (auto home = variable("HOME"); home && !home->empty()) return *home;
  passwd entry{};
  passwd* found = nullptr;
  char buffer[4096];
  getpwuid_r(getuid(), &entry, buffer, sizeof buffer, &found);
  return found && found->pw_dir ? found->pw_dir : "";
}

}  // namespace

Environment read_environment() {
  Environment result;
  result.flags = variable("CROTON_FLAGS").value_or("");
  if (auto list = variable("CROTONRC")) {
    result.rc_files.emplace();
    for (std::string_view file : split(*list, ':')) {
      if (!trim(file).empty()) result.rc_files->emplace_back(trim(file));
    }
  }
  result.home = home_folder();
  // The XDG specification has relative paths ignored.
  auto cache = variable("XDG_CACHE_HOME");
  if (cache && cache->starts_with('/')) {
    result.cache_home = *cache;
  } else if (!result.home.empty()) {
    result.cache_home = result.home + "/.cache";
  } else {
    result.cache_home = "/tmp/cache-" + std::to_string(getuid());
  }
  result.cuda_path = variable("CUDA_PATH").value_or(variable("CUDA_HOME").value_or(""));
  result.cuda_visible_devices = variable("CUDA_VISIBLE_DEVICES").value_or("");
  return result;
}

std::string expand_home(std::string_view path, const std::string& home) {
  if (!path.starts_with('~')) return std::string(path);
  if (path.size() > 1 && path[1] != '/') {
    throw ConfigError("'~' stands for your own home folder alone: expected '~/...', got '" +
                      std::string(path) + "'");
  }
  if (home.empty()) {
    throw ConfigError("cannot expand '~' in '" + std::string(path) +
                      "': HOME is not set; set it or write the whole path");
  }
  return home + std::string(path.substr(1));
}

}  // namespace croton
