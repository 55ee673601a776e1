#include "croton/error.h"

namespace croton {

// Out-of-line destructors give each type one home for its type information, so that a plug-in or a
// program built with hidden visibility catches the same types.
Error::~Error() = default;
UserError::~UserError() = default;
GraphError::~GraphError() = default;
CallError::~CallError() = default;
ConfigError::~ConfigError() = default;
FileError::~FileError() = default;
DeviceError::~DeviceError() = default;
OutOfMemory::~OutOfMemory() = default;
InternalError::~InternalError() = default;

void internal_check(bool condition, const char* what) {
  if (!condition) throw InternalError(std::string("internal error: ") + what);
}

}  // namespace croton
