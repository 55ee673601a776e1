// Libraries of CUDA, opened at run time, so that one binary runs with and without them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace croton::cuda {

/// Where libraries are looked for, after the loader's own places (LD_LIBRARY_PATH, ld.so.conf).
struct LibrarySearch {
  std::string cuda_path;  ///< a toolkit's folder (CUDA_PATH), or empty
  std::vector<std::string> folders = {"/usr/local/cuda/lib64", "/usr/local/cuda/lib",
                                      "/opt/cuda/lib64"};
  bool loader = true;  ///< whether the loader's own places come first
};

/// The search with the toolkit that the environment names.
LibrarySearch search_from_environment();

/// What became of the search for one library.
struct LibraryReport {
  std::string name;  ///< for people: "NVRTC"
  bool usable = false;
  std::string path;                ///< of the file, where one was opened
  std::string version;             ///< "13.0", where the library told it
  std::string reason;              ///< why it is not usable
  std::vector<std::string> tried;  ///< what was tried, "name: why not", until one was found

  /// One line where it is usable, else a line and one for each thing tried.
  std::string text() const;
};

/// One row of a library's symbol table: the name, and the member of the table that it fills in.
struct Symbol {
  const char* name;
  void (*bind)(void* table, void* address);
  bool optional = false;  ///< null where an older version lacks it
};

template <class Table, class Function>
void set_symbol(void* table, void* address, Function* Table::*member) {
  static_cast<Table*>(table)->*member = reinterpret_cast<Function*>(address);
}

/// The `bind` of a member, such as bind_symbol<&DriverSymbols::init>.
template <auto member>
void bind_symbol(void* table, void* address) {
  set_symbol(table, address, member);
}

/// An open library. It stays loaded until the process ends: these libraries keep threads and do not
/// survive being closed.
class Library {
 public:
  /// Tries each of `sonames`, newest first, in each place. `report()` says what was found.
  Library(std::string name, std::span<const std::string_view> sonames, const LibrarySearch& search);

  explicit operator bool() const { return handle_ != nullptr; }
  LibraryReport& report() { return report_; }
  const LibraryReport& report() const { return report_; }

  /// The address of a function, null where the library has none of that name.
  void* symbol(const char* name) const;

  /// Fills in a table. Gives the names that are missing and not optional, or nothing.
  std::string bind(std::span<const Symbol> symbols, void* table) const;

  /// Says why an open library cannot be used after all.
  void reject(std::string reason);

  /// The folder of the file that was opened.
  std::string folder() const;

 private:
  bool open(const std::string& file);

  void* handle_ = nullptr;
  LibraryReport report_;
};

}  // namespace croton::cuda
