#pragma once

#include <stdexcept>
#include <string>

#include "croton/export.h"

namespace croton {

/// Base of everything that Croton throws.
class CROTON_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
};

/// The program that uses Croton did something that cannot be right; the message says what, and how
/// to mend it.
class CROTON_API UserError : public Error {
 public:
  using Error::Error;
  ~UserError() override;
};

/// A graph that cannot be built: dtypes, ranks or static shapes clash.
class CROTON_API GraphError : public UserError {
 public:
  using UserError::UserError;
  ~GraphError() override;
};

/// A call that cannot run: wrong arguments, shapes that clash, an index out of bounds. Nothing was
/// changed.
class CROTON_API CallError : public UserError {
 public:
  using UserError::UserError;
  ~CallError() override;
};

/// A flag, rc file or context map that cannot be read.
class CROTON_API ConfigError : public UserError {
 public:
  using UserError::UserError;
  ~ConfigError() override;
};

/// A file that cannot be read or written.
class CROTON_API FileError : public UserError {
 public:
  using UserError::UserError;
  ~FileError() override;
};

/// A device that failed.
class CROTON_API DeviceError : public Error {
 public:
  using Error::Error;
  ~DeviceError() override;
};

/// A device that has not enough memory left.
class CROTON_API OutOfMemory : public DeviceError {
 public:
  using DeviceError::DeviceError;
  ~OutOfMemory() override;
};

/// A fault of Croton itself; never the user's.
class CROTON_API InternalError : public Error {
 public:
  using Error::Error;
  ~InternalError() override;
};

/// Throws InternalError with `what` and the place unless `condition` holds.
CROTON_API void internal_check(bool condition, const char* what);

}  // namespace croton
