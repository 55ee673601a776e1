#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "croton/error.h"
#include "croton/numpy_io.h"
#include "tests/data_folder.h"
#include "tests/temporary_folder.h"

using namespace croton;
using Catch::Contains;

namespace {

const std::string kFolder = test::data_folder() + "/npy/";

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A file of format 1.0 with that header.
std::string npy(const std::string& header, const std::string& data = "") {
  std::string s("\x93NUMPY\x01", 7);
  s += '\0';
  s += static_cast<char>(header.size() & 0xff);
  s += static_cast<char>(header.size() >> 8);
  return s + header + data;
}

std::string error_of(const std::string& bytes) {
  const test::TemporaryFolder folder;
  folder.write("a.npy", bytes);
  try {
    load_npy(folder / "a.npy");
  } catch (const FileError& e) {
    CHECK_THAT(e.what(), Contains("a.npy"));
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("npy files of every dtype read and write as NumPy's", "[npy]") {
  const test::TemporaryFolder folder;
  for (const char* name : {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                           "uint64", "float16", "float32", "float64"}) {
    CAPTURE(name);
    const std::string path = kFolder + name + ".npy";
    const Array a = load_npy(path);
    const DType t = dtype_from_name(name);
    CHECK(a.dtype() == t);
    Array expected = Array({{0, 1, 2}, {3, 4, 5}});
    if (is_signed(t)) expected = Array({{-1, 0, 1}, {2, 3, 4}});
    if (is_bool(t)) expected = Array({{0, 1, 0}, {1, 0, 1}});
    CHECK(array_equal(a, expected.astype(t)));
    save_npy(folder / "out.npy", a);
    CHECK(read_file(folder / "out.npy") == read_file(path));
  }
}

TEST_CASE("npy files in other orders and versions", "[npy]") {
  const Array base = Array::arange(6).reshape({2, 3});
  const auto reads = [&](const std::string& name, DType t) {
    CAPTURE(name);
    const Array a = load_npy(kFolder + name);
    CHECK(array_equal(a, base.astype(t)));
    CHECK(a.is_contiguous());
  };
  reads("fortran.npy", DType::float32);
  reads("big_endian.npy", DType::float64);
  reads("big_endian_fortran.npy", DType::int16);
  reads("version2.npy", DType::int32);
  reads("version3.npy", DType::int32);
  CHECK(Array::load_npy(kFolder + "scalar.npy").item<double>() == 2.5);
  CHECK(load_npy(kFolder + "scalar.npy").ndim() == 0);
  CHECK(load_npy(kFolder + "empty.npy").shape() == Shape({0, 3}));
}

TEST_CASE("views, scalars and empty arrays are written row-major", "[npy]") {
  const test::TemporaryFolder folder;
  const Array arrays[] = {Array::arange(6).reshape({2, 3}).transpose(), Array(1.5f),
                          Array::zeros({0, 4}), Array::arange(5).slice(0, {}, {}, -2)};
  for (const Array& a : arrays) {
    save_npy(folder / "v.npy", a);
    CHECK(array_equal(load_npy(folder / "v.npy"), a));
  }
  save_npy(folder / "s.npy", Array(2.5).astype(DType::float64));
  CHECK(read_file(folder / "s.npy") == read_file(kFolder + "scalar.npy"));
}

TEST_CASE("npy files that hold no numbers say what they hold", "[npy]") {
  const auto fails = [](const char* name, const char* what) {
    CHECK_THROWS_AS(load_npy(kFolder + name), FileError);
    CHECK_THROWS_WITH(load_npy(kFolder + name), Contains(name) && Contains(what));
  };
  fails("complex.npy", "'<c16'");
  fails("text.npy", "'<U3'");
  fails("record.npy", "records");
  fails("object.npy", "objects");
  fails("raw2.npy", "bfloat16");
  fails("missing.npy", "no such file");
  CHECK_THROWS_WITH(load_npy(kFolder), Contains("not a regular file"));
}

TEST_CASE("damaged npy files are errors", "[npy]") {
  const std::string good = read_file(kFolder + "float64.npy");
  for (std::size_t n = 0; n < good.size(); ++n) {
    CAPTURE(n);
    CHECK(error_of(good.substr(0, n)) != "no error");
  }
  CHECK(error_of(good) == "no error");
  CHECK_THAT(error_of("PK\x03\x04 something else"), Contains("not a .npy file"));
  std::string version = good;
  version[6] = 4;
  CHECK_THAT(error_of(version), Contains("version 4.0"));
  const auto dict = [](const std::string& shape) {
    return npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }", "abcd");
  };
  CHECK(error_of(dict("(1,)")) == "no error");
  CHECK(error_of(dict("(1L,)")) == "no error");
  CHECK(error_of(dict("()")) == "no error");
  CHECK_THAT(error_of(dict("(2,)")), Contains("cut off") && Contains("(2,)"));
  CHECK_THAT(error_of(dict("(1000000000000,)")), Contains("cut off"));
  CHECK_THAT(error_of(dict("(4611686018427387904, 4611686018427387904)")), Contains("cut off"));
  CHECK_THAT(error_of(dict("(99999999999999999999,)")), Contains("too large"));
  CHECK(error_of(dict("(0, 4611686018427387904, 4611686018427387904)")) == "no error");
  CHECK_THAT(error_of(dict("(-1,)")), Contains("expected a size"));
  CHECK_THAT(error_of(dict("(1, 1, 1, 1, 1, 1, 1, 1, 1)")), Contains("more than 8 axes"));
  CHECK_THAT(error_of(dict("(1")), Contains("expected a size"));
  CHECK_THAT(error_of(dict("[1]")), Contains("expected '('"));
  CHECK_THAT(error_of(npy("{'descr': '<f4'}")), Contains("missing"));
  CHECK_THAT(error_of(npy("{'descr': '<f4")), Contains("does not end"));
  CHECK_THAT(error_of(npy("{'what': 1}")), Contains("unknown key 'what'"));
  CHECK_THAT(error_of(npy("")), Contains("expected '{'"));
  CHECK_THAT(error_of(npy("{'fortran_order': Maybe}")), Contains("True or False"));
  std::string huge = good;
  huge[6] = 2;
  huge[10] = huge[11] = '\x7f';
  CHECK_THAT(error_of(huge), Contains("header"));
}

TEST_CASE("every changed byte of a header reads or fails cleanly", "[npy]") {
  const test::TemporaryFolder folder;
  const std::string good = read_file(kFolder + "int32.npy");
  int failed = 0;
  for (std::size_t i = 0; i < 128; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      folder.write("x.npy", bytes);
      try {
        load_npy(folder / "x.npy");
      } catch (const FileError&) {
        ++failed;
      }
    }
  }
  CHECK(failed > 100);
}

TEST_CASE("bools in files are 0 or 1 in memory", "[npy]") {
  const test::TemporaryFolder folder;
  folder.write("b.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }",
                            std::string("\0\x01\x07", 3)));
  const Array a = load_npy(folder / "b.npy");
  CHECK(a.astype(DType::uint8).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{0, 1, 1});
}

TEST_CASE("what cannot be saved says why", "[npy]") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(save_npy(folder / "no/such/folder.npy", Array(1)), Contains("No such file"));
  CHECK_THROWS_AS(save_npy(folder / "b.npy", Array::zeros({2}, DType::bfloat16)), FileError);
  CHECK_THROWS_WITH(save_npy(folder / "b.npy", Array::zeros({2}, DType::bfloat16)),
                    Contains("bfloat16") && Contains("astype"));
  CHECK_FALSE(std::filesystem::exists(folder / "b.npy"));
  if (std::filesystem::exists("/dev/full")) {
    CHECK_THROWS_WITH(save_npy("/dev/full", Array(1)), Contains("No space left"));
  }
}

TEST_CASE("npz files of NumPy", "[npy]") {
  const auto plain = load_npz(kFolder + "plain.npz");
  REQUIRE(plain.size() == 2);
  CHECK(array_equal(plain.at("x"), Array::arange(6, DType::float32).reshape({2, 3})));
  CHECK(array_equal(plain.at("y"), Array({true, false})));
  const auto packed = load_npz(kFolder + "packed.npz");
  CHECK(array_equal(packed.at("x"), Array::zeros({50, 50}, DType::float64)));
  CHECK(array_equal(packed.at("z"), Array::arange(6).reshape({2, 3})));
  CHECK(Array::load_npz(kFolder + "plain.npz", "y").dtype() == DType::boolean);
  CHECK_THROWS_WITH(Array::load_npz(kFolder + "plain.npz", "w"),
                    Contains("'w'") && Contains("'x', 'y'"));
}

TEST_CASE("npz files go both ways", "[npy]") {
  const test::TemporaryFolder folder;
  const std::map<std::string, Array> arrays = {
      {"weights", Array::arange(12).reshape({3, 4}).transpose()},
      {"scalar", Array(2.5)},
      {"empty", Array::zeros({0, 2})},
      {"names/with/slashes", Array({true})},
  };
  for (bool compressed : {false, true}) {
    save_npz(folder / "a.npz", arrays, compressed);
    const auto back = load_npz(folder / "a.npz");
    REQUIRE(back.size() == arrays.size());
    for (const auto& [name, array] : arrays) CHECK(array_equal(back.at(name), array));
  }
  save_npz(folder / "big.npz", {{"zeros", Array::zeros({100000})}}, true);
  CHECK(std::filesystem::file_size(folder / "big.npz") < 4000);
  CHECK(load_npz(folder / "big.npz").at("zeros").size() == 100000);
  save_npz(folder / "none.npz", {});
  CHECK(load_npz(folder / "none.npz").empty());
}

TEST_CASE("damaged npz files are errors", "[npy]") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(load_npz(folder / "none.npz"), Contains("none.npz"));
  CHECK_THROWS_AS(load_npz(kFolder + "int8.npy"), FileError);
  CHECK_THROWS_AS(save_npz(folder / "no/such/folder.npz", {{"a", Array(1)}}), FileError);
  CHECK_THROWS_WITH(save_npz(folder / "b.npz", {{"a", Array::zeros({1}, DType::bfloat16)}}),
                    Contains("member 'a'"));
  CHECK_FALSE(std::filesystem::exists(folder / "b.npz"));
  for (const char* name : {"plain.npz", "packed.npz"}) {
    const std::string good = read_file(kFolder + name);
    int failed = 0;
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(bytes[i] ^ 0x55);
      folder.write("x.npz", bytes);
      try {
        load_npz(folder / "x.npz");
      } catch (const FileError&) {
        ++failed;
      }
      folder.write("x.npz", good.substr(0, i));
      CHECK_THROWS_AS(load_npz(folder / "x.npz"), FileError);
    }
    CHECK(failed > 100);
  }
}

TEST_CASE("npz files whose members claim each other's bytes are errors", "[npy]") {
  const test::TemporaryFolder folder;
  save_npz(folder / "a.npz", {{"a", Array::arange(500)}});
  const std::string good = read_file(folder / "a.npz");
  // The directory, then 22 bytes that hold the number of its entries (twice), its length and place.
  const std::size_t end = good.size() - 22;
  std::uint32_t length = 0, place = 0;
  std::memcpy(&length, good.data() + end + 12, 4);
  std::memcpy(&place, good.data() + end + 16, 4);
  REQUIRE(place + length == end);
  const auto with_entries = [&](std::uint16_t count) {
    std::string bytes = good.substr(0, place), tail = good.substr(end);
    for (int i = 0; i < count; ++i) bytes += good.substr(place, length);
    const std::uint32_t longer = count * length;
    std::memcpy(tail.data() + 8, &count, 2);
    std::memcpy(tail.data() + 10, &count, 2);
    std::memcpy(tail.data() + 12, &longer, 4);
    return folder.write("many.npz", bytes + tail);
  };
  CHECK(load_npz(with_entries(1)).size() == 1);
  CHECK_THROWS_WITH(load_npz(with_entries(9)), Contains("many.npz") && Contains("impossible size"));
}
