#include <catch2/catch.hpp>
#include <fstream>
#include <limits>
#include <sstream>

#include "croton/array.h"
#include "runtime/array_access.h"
#include "tests/data_folder.h"

using namespace croton;

namespace {

struct PrintCase {
  Array array;
  std::string expected;
};

/// Reads the cases that make_array_fixtures.py wrote.
std::vector<PrintCase> read_cases(const std::string& path) {
  std::ifstream in(path);
  REQUIRE(in);
  std::vector<PrintCase> cases;
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream head(line);
    std::string name;
    head >> name;
    Shape shape;
    for (std::int64_t n; head >> n;) shape.push_back(n);
    PrintCase c{ArrayAccess::make_host(dtype_from_name(name), shape), ""};
    std::getline(in, line);
    std::byte* data = ArrayAccess::impl(c.array)->data;
    for (std::size_t i = 0; i + 1 < line.size(); i += 2) {
      data[i / 2] = static_cast<std::byte>(std::stoi(line.substr(i, 2), nullptr, 16));
    }
    std::getline(in, line);
    const int count = std::stoi(line);
    for (int i = 0; i < count; ++i) {
      std::getline(in, line);
      c.expected += (i ? "\n" : "") + line;
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

std::string printed(const Array& a) {
  std::ostringstream out;
  out << a;
  return out.str();
}

}  // namespace

TEST_CASE("arrays print as NumPy prints them", "[array]") {
  const auto cases = read_cases(test::data_folder() + "/array_print.txt");
  REQUIRE(cases.size() > 100);
  int wrong = 0;
  for (const PrintCase& c : cases) {
    if (printed(c.array) == c.expected) continue;
    if (++wrong < 10) {
      UNSCOPED_INFO(name_of(c.array.dtype()) << ' ' << c.array.shape().to_string() << "\ngot:\n"
                                             << printed(c.array) << "\nexpected:\n"
                                             << c.expected);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("strided views print like their copies", "[array]") {
  const Array a = Array::arange(24).reshape({2, 3, 4});
  CHECK(printed(a.transpose()) == printed(a.transpose().copy()));
  const Array r = Array::arange(3000).slice(0, {}, {}, -2);
  CHECK(printed(r) == "[2999 2997 2995 ...    5    3    1]");
  CHECK(printed(Array(7).broadcast_to({2, 2})) == "[[7 7]\n [7 7]]");
}

TEST_CASE("bfloat16 prints the shortest digits that it reads back", "[array]") {
  const Array a = Array{0.1, 1.0, -3.14159, 20.0}.astype(DType::bfloat16);
  CHECK(printed(a) == "[ 0.1   1.   -3.14 20.  ]");
  CHECK(printed(Array(0.1).astype(DType::bfloat16)) == "0.1");
}

TEST_CASE("an Array without a value prints that", "[array]") {
  CHECK(printed(Array()) == "(no value)");
}
