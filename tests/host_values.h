// What the CPU gives, for machines that cannot compile for CPUs.
#pragma once

#include <catch2/catch.hpp>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "croton/array.h"
#include "croton/numpy_io.h"

namespace croton::test {

/// The file of the next values of the running test case.
inline std::string next_host_file(const std::string& folder) {
  static std::map<std::string, int> counts;
  std::string name = Catch::getResultCapture().getCurrentTestName();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  const int number = counts[name]++;
  return folder + "/" + name + "-" + std::to_string(number) + ".npz";
}

/// Whether the CPU's values are all that is wanted of a test: there may be no other device.
inline bool keeps_host_values() { return std::getenv("CROTON_TEST_KEEP_HOST_VALUES") != nullptr; }

/// What `compute` gives, which runs on the CPU. CROTON_TEST_KEEP_HOST_VALUES=FOLDER also writes it
/// there; with CROTON_TEST_HOST_VALUES=FOLDER it is read from there and nothing is computed.
inline std::vector<Array> on_host(const std::function<std::vector<Array>()>& compute) {
  if (const char* folder = std::getenv("CROTON_TEST_HOST_VALUES")) {
    const std::map<std::string, Array> kept = load_npz(next_host_file(folder));
    std::vector<Array> values(kept.size());
    // Names are the number and the dtype: NumPy's files have no bfloat16.
    for (const auto& [name, value] : kept) {
      const std::size_t space = name.find(' ');
      values.at(std::stoul(name.substr(0, space))) =
          value.astype(dtype_from_name(name.substr(space + 1)));
    }
    return values;
  }
  const std::vector<Array> values = compute();
  if (const char* folder = std::getenv("CROTON_TEST_KEEP_HOST_VALUES")) {
    std::map<std::string, Array> kept;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const DType dtype = values[i].dtype();
      const std::string name = std::to_string(i) + " " + std::string(name_of(dtype));
      kept[name] = dtype == DType::bfloat16 ? values[i].astype(DType::float32) : values[i];
    }
    save_npz(next_host_file(folder), kept, true);
  }
  return values;
}

}  // namespace croton::test
