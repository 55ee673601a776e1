// Builds the text of kernels for the host.
#pragma once

#include <string>
#include <vector>

namespace emulator {

/// The text as a host compiler reads it, with a table of its kernels at the end.
std::string host_text(const std::string& source);

struct HostBuild {
  std::string library;  // empty when it failed
  std::string log;
};

/// `options`: -D, -U and -I as NVRTC takes them. `headers`: names and texts.
HostBuild build_for_host(const std::string& text, const std::string& name,
                         const std::vector<std::string>& options,
                         const std::vector<std::pair<std::string, std::string>>& headers);

/// A mark of all that goes into a build besides the text.
std::string build_key();

std::string read_file(const std::string& path);
/// Written aside and renamed, so that nobody reads half a file.
void write_file(const std::string& path, const std::string& bytes);

/// "out" as 32 hexadecimal digits.
std::string hash_of(const std::string& bytes);

}  // namespace emulator
