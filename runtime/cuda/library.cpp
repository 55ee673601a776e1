#include "runtime/cuda/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <utility>

#include "config/environment.h"

namespace croton::cuda {

LibrarySearch search_from_environment() {
  LibrarySearch search;
  search.cuda_path = read_environment().cuda_path;
  return search;
}

std::string LibraryReport::text() const {
  if (usable) return fmt::format("{} {} ({})", name, version.empty() ? "found" : version, path);
  std::string text = fmt::format("{} is not usable: {}", name, reason);
  for (const std::string& line : tried) text += "\n  " + line;
  return text;
}

Library::Library(std::string name, std::span<const std::string_view> sonames,
                 const LibrarySearch& search) {
  report_.name = std::move(name);
  std::vector<std::string> places;
  if (search.loader) places.emplace_back();
  if (!search.cuda_path.empty()) {
    places.push_back(search.cuda_path + "/lib64/");
    places.push_back(search.cuda_path + "/lib/");
  }
  for (const std::string& folder : search.folders) {
    if (std::find(places.begin(), places.end(), folder + "/") == places.end()) {
      places.push_back(folder + "/");
    }
  }
  for (const std::string& place : places) {
    for (const std::string_view soname : sonames) {
      if (open(place + std::string(soname))) return;
    }
  }
  report_.reason =
      "no such library was found; install the CUDA toolkit, or set LD_LIBRARY_PATH or "
      "CUDA_PATH to where it is";
}

bool Library::open(const std::string& file) {
  handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) {
    std::string why = dlerror();
    if (!why.starts_with(file)) why = file + ": " + why;
    report_.tried.push_back(std::move(why));
    return false;
  }
  const link_map* map = nullptr;
  report_.path = dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : file;
  report_.usable = true;
  return true;
}

void* Library::symbol(const char* name) const { return handle_ ? dlsym(handle_, name) : nullptr; }

std::string Library::bind(std::span<const Symbol> symbols, void* table) const {
  std::string missing;
  for (const Symbol& row : symbols) {
    void* address = symbol(row.name);
    row.bind(table, address);
    if (address == nullptr && !row.optional) {
      missing += (missing.empty() ? "" : ", ") + std::string(row.name);
    }
  }
  return missing;
}

void Library::reject(std::string reason) {
  report_.usable = false;
  report_.reason = std::move(reason);
}

std::string Library::folder() const {
  return report_.path.substr(0, report_.path.find_last_of('/') + 1);
}

}  // namespace croton::cuda
