// A graph with arguments, run in every way that Croton has to run it.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/graph/graph.h"
#include "croton/croton.h"

namespace croton::fuzz {

struct Sample {
  std::vector<Variable> inputs;
  std::vector<Array> arguments;
  std::vector<Variable> outputs;
};

/// Flags under which a function is compiled.
struct Setting {
  const char* name;
  std::vector<std::pair<const char*, const char*>> flags;
  bool in_shards = false;  ///< of the rows of arguments
};
std::span<const Setting> modes();

/// What the references of the ops give for the outputs.
std::vector<Array> reference(const Sample& sample);

/// What is wrong when the sample is compiled and called in that mode.
struct Failure {
  std::string text;  ///< the message of an error, or of an output that is not the reference's
  /// Whether values are wrong, which rounding may be the cause of; else it is an error.
  bool of_values = false;

  explicit operator bool() const { return !text.empty(); }
};
Failure failure(const Sample& sample, const Setting& mode);

/// Whether the reference's results stay what they are, within the tolerance of the comparison, when
/// every value on the way is off by rounding. Where they do not (a comparison of equal values, a
/// pole), another result is no fault.
bool is_stable(const Sample& sample);

/// The sample cut down to the few nodes that still fail in that mode.
Sample shrink(const Sample& sample, const Setting& mode);

/// C++ that builds and runs it.
std::string cpp_text(const Sample& sample, const Setting& mode);

}  // namespace croton::fuzz
