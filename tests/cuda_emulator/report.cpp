#include "tests/cuda_emulator/report.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdarg>
#include <cstdio>
#include <map>

#include "tests/cuda_emulator/settings.h"

namespace emulator {
namespace {

std::string resolve(const void* pc) {
  Dl_info info;
  link_map* map = nullptr;
  if (!dladdr1(pc, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) || !map) return "?";
  // The return address lies behind the call; the line is that of the call.
  const auto offset = reinterpret_cast<std::uintptr_t>(pc) - map->l_addr - 1;
  const std::string command =
      format("env -u LD_LIBRARY_PATH -u LD_PRELOAD addr2line -i -e '%s' %#lx 2>/dev/null",
             map->l_name, static_cast<unsigned long>(offset));
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return "?";
  std::string found = "?";
  for (char line[512]; std::fgets(line, sizeof line, pipe);) {
    std::string place = line;
    place = place.substr(0, place.find_first_of(" \n"));  // without " (discriminator 2)"
    place = place.substr(place.rfind('/') + 1);
    // The first frame that is the kernel's own; device.h inlines into it.
    const bool own = !place.empty() && place[0] != '?' && !place.starts_with("device.h:");
    if (own && found == "?") found = place;
  }
  pclose(pipe);
  return found;
}

}  // namespace

std::string format(const char* pattern, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

void report(const std::string& text) {
  const std::string line = "[cuda emulator] " + text + "\n";
  std::fputs(line.c_str(), stderr);
  if (settings().report_file.empty()) return;
  if (std::FILE* file = std::fopen(settings().report_file.c_str(), "a")) {
    std::fputs(line.c_str(), file);
    std::fclose(file);
  }
}

void announce(const char* library) {
  if (settings().quiet) return;
  std::fprintf(stderr,
               "[cuda emulator] %s runs on the host; there is no GPU, and timings mean nothing\n",
               library);
}

std::string source_line(const void* pc) {
  static auto& known = *new std::map<const void*, std::string>;
  const auto [at, added] = known.try_emplace(pc);
  if (added) at->second = resolve(pc);
  return at->second;
}

}  // namespace emulator
