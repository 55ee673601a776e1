#pragma once

#include <string>

#include "croton/error.h"

/// The message of the ConfigError that `action` throws; empty if it throws none.
template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const croton::ConfigError& error) {
    return error.what();
  }
  return {};
}
