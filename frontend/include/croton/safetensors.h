#pragma once

#include <map>
#include <string>

#include "croton/array.h"
#include "croton/export.h"

namespace croton {

/// Reads all arrays of a `.safetensors` file by name (the format of
/// https://github.com/huggingface/safetensors, little-endian). Nothing is believed before it is
/// checked: the length of the header, products of sizes, and that the arrays lie in the file one
/// after the other without gaps or overlaps. A FileError with path and reason where the file cannot
/// be read, is damaged, or holds what no dtype stands for (8-bit floats).
CROTON_API std::map<std::string, Array> load_safetensors(const std::string& path);

/// Writes such a file, whole or not at all, with `metadata` as its "__metadata__". FileError where
/// it cannot be written, where a name is not UTF-8, and for an array called "__metadata__".
CROTON_API void save_safetensors(const std::string& path,
                                 const std::map<std::string, Array>& arrays,
                                 const std::map<std::string, std::string>& metadata = {});

}  // namespace croton
