// Where the fixtures of tests are.
#pragma once

#include <cstdlib>
#include <string>

namespace croton::test {

/// The folder tests/data of the sources, or what CROTON_TEST_DATA says where programs of tests are
/// taken to another machine.
inline std::string data_folder() {
  const char* const given = std::getenv("CROTON_TEST_DATA");
  return given != nullptr && *given != '\0' ? given : CROTON_TEST_DATA;
}

}  // namespace croton::test
