#pragma once

#include <croton/error.h>

#include <catch2/catch.hpp>
#include <string>

namespace croton::test {

/// The message of the error of type E that `action` throws; fails the test when it throws none, or
/// another one.
template <class E, class Action>
std::string error_text(Action action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    FAIL_CHECK("another type of error: " << error.what());
    return {};
  }
  FAIL_CHECK("no error");
  return {};
}

/// Matches a text with all these parts.
class HasAll : public Catch::MatcherBase<std::string> {
 public:
  HasAll(std::initializer_list<std::string> parts) : parts_(parts) {}
  bool match(const std::string& text) const override {
    for (const std::string& part : parts_) {
      if (text.find(part) == text.npos) return false;
    }
    return true;
  }
  std::string describe() const override {
    std::string text = "has";
    for (const std::string& part : parts_) text += " \"" + part + '"';
    return text;
  }

 private:
  std::vector<std::string> parts_;
};

}  // namespace croton::test
