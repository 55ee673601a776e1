#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>

namespace croton::test {

/// What a shell command prints; throws where it cannot be started or ends with another status than
/// 0.
inline std::string output_of(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start " + command);
  std::string text;
  char buffer[256];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
  if (pclose(pipe) != 0) throw std::runtime_error("failed: " + command);
  return text;
}

}  // namespace croton::test
