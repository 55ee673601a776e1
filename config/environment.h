#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace croton {

/// Everything that Croton reads from the environment of the process, as text.
struct Environment {
  std::string flags;                                 // CROTON_FLAGS
  std::optional<std::vector<std::string>> rc_files;  // CROTONRC, where it is set
  std::string home;                                  // HOME, else the user's entry in passwd
  std::string cache_home;                            // XDG_CACHE_HOME, else ~/.cache
  std::string cuda_path;                             // CUDA_PATH, else CUDA_HOME
  std::string cuda_visible_devices;                  // CUDA_VISIBLE_DEVICES, for messages
};

/// Reads it; the only place of Croton that does.
Environment read_environment();

/// Puts `home` in the place of a leading `~`. A ConfigError for `~user`, or without a home.
std::string expand_home(std::string_view path, const std::string& home);

}  // namespace croton
