#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "croton/export.h"
#include "croton/shared.h"

// Named shared variables in files. What is written depends on names and values alone: a file may be
// loaded into parameters on any contexts.
namespace croton {

enum class FileFormat : std::uint8_t {
  by_extension,  ///< by the end of the path, `.npz` or `.safetensors`
  npz,           ///< NumPy's
  safetensors,   ///< see croton/safetensors.h
};

struct SaveParametersOptions {
  FileFormat format = FileFormat::by_extension;
  /// For `.npz`.
  bool compressed = false;
};

struct LoadParametersOptions {
  FileFormat format = FileFormat::by_extension;
  /// Parameters that the file does not have keep their values; else they are an error.
  bool allow_missing = false;
  /// What the file has beside the parameters is left out; else it is an error.
  bool allow_surplus = false;
};

/// Writes the values of shared variables of any dtypes, each under its name: parameters, states of
/// an optimizer, counters of random streams. The values are of one moment, also while calls update
/// them. The file is written whole or not at all: under another name in the same folder, which
/// takes the path's place when all is on disk. UserError for variables that are empty, without a
/// name, or of equal names, and for a path whose end tells no format; FileError where the file
/// cannot be written or has no such dtype: NumPy has no bfloat16, safetensors has. DeviceError for
/// a value that was lost.
CROTON_API void save_parameters(const std::string& path, const std::vector<Shared>& parameters,
                                const SaveParametersOptions& options = {});

/// Gives shared variables the values that a file has under their names. All names, dtypes and
/// shapes (ranks where a variable is resizable) are compared, and all values read and copied to
/// their contexts, before the first variable changes; then all change at once, between calls.
/// UserError as for save_parameters; FileError when the file cannot be read, is damaged, or does
/// not fit, with all that differs.
CROTON_API void load_parameters(const std::string& path, const std::vector<Shared>& parameters,
                                const LoadParametersOptions& options = {});

}  // namespace croton
