#pragma once

#include <map>
#include <string>

#include "croton/array.h"
#include "croton/export.h"

namespace croton {

/// Reads a `.npy` file of format 1.0, 2.0 or 3.0, in either byte order and either memory order; the
/// result is row-major. A FileError with path and reason when the file cannot be read, is damaged
/// or shorter than its header says, or holds what no dtype stands for (complex numbers, strings,
/// records, objects).
CROTON_API Array load_npy(const std::string& path);

/// Writes a `.npy` file (format 1.0, row-major) that NumPy reads; replaces what is there. NumPy has
/// no bfloat16: that is a FileError, use astype(DType::float32). Nothing is appended to the path.
CROTON_API void save_npy(const std::string& path, const Array& array);

/// Reads all arrays of an `.npz` file by name, compressed or not; members that are not `.npy` files
/// are left out. Errors as of `load_npy`, with the member's name.
CROTON_API std::map<std::string, Array> load_npz(const std::string& path);

/// Writes an `.npz` file that NumPy reads; replaces what is there, all or nothing.
CROTON_API void save_npz(const std::string& path, const std::map<std::string, Array>& arrays,
                         bool compressed = false);

}  // namespace croton
