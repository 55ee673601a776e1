// Named shared variables in files, and files that are not what they should be. The fixtures are
// from tests/data/make_parameter_fixtures.py.
#include <croton/croton.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/data_folder.h"
#include "tests/frontend/error_text.h"
#include "tests/temporary_folder.h"

using namespace croton;
using namespace croton::test;

namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t files_in(const TemporaryFolder& folder) {
  const std::filesystem::directory_iterator files(folder.path());
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

/// What the fixtures hold.
std::map<std::string, Array> expected(bool with_bfloat16) {
  std::map<std::string, Array> arrays = {
      {"layer/w", Array({{-0.5, -0.25, 0.0}, {0.25, 0.5, 0.75}})},
      {"scalar", Array(-2.5).astype(DType::float64)},
      {"empty", Array::zeros({3, 0})},
      {"flags", Array({true, false, true})},
      {"q\"\u00e9", Array({1, -2}).astype(DType::int16)}};
  for (const DType dtype :
       {DType::int8, DType::int32, DType::int64, DType::uint8, DType::uint16, DType::uint32,
        DType::uint64, DType::float16, DType::float64, DType::bfloat16}) {
    if (dtype == DType::bfloat16 && !with_bfloat16) continue;
    arrays.emplace(name_of(dtype), Array({0, 1, 100}).astype(dtype));
  }
  return arrays;
}

void check_equal(const std::map<std::string, Array>& found,
                 const std::map<std::string, Array>& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (const auto& [name, array] : wanted) {
    INFO(name);
    CHECK(array_equal(found.at(name), array));
  }
}

/// The bytes of a safetensors file.
std::string with_header(const std::string& json, std::size_t data_bytes) {
  const std::uint64_t length = json.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + json + std::string(data_bytes, '\1');
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" + offsets +
         "]}";
}

}  // namespace

TEST_CASE("parameters go into files and come back, of every dtype") {
  const TemporaryFolder folder;
  for (const std::string file : {"a.npz", "a.safetensors"}) {
    const std::map<std::string, Array> arrays = expected(file == "a.safetensors");
    std::vector<Shared> saved, loaded;
    for (const auto& [name, array] : arrays) {
      saved.push_back(shared(array, {.name = name}));
      loaded.insert(loaded.begin(),
                    shared(Array::zeros(array.shape(), array.dtype()), {.name = name}));
    }
    save_parameters(folder / file, saved);
    load_parameters(folder / file, loaded);
    for (const Shared& p : loaded) CHECK(array_equal(p.get_value(), arrays.at(p.name())));
    check_equal(file == "a.npz" ? load_npz(folder / file) : load_safetensors(folder / file),
                arrays);
  }
  CHECK(files_in(folder) == 2);
}

TEST_CASE("files of Python's packages are read") {
  check_equal(load_safetensors(data_folder() + "/parameters.safetensors"), expected(true));
  check_equal(load_npz(data_folder() + "/parameters.npz"), expected(false));
}

TEST_CASE("safetensors files have aligned arrays behind a header as the format wants it") {
  const TemporaryFolder folder;
  save_safetensors(folder / "a.safetensors",
                   {{"a", Array({true})}, {"b", Array({1, 2})}, {"c", Array::zeros({0})}},
                   {{"format", "pt"}});
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
      R"("c":{"dtype":"F32","shape":[0],"data_offsets":[16,16]},)"
      R"("a":{"dtype":"BOOL","shape":[1],"data_offsets":[16,17]}})";
  const std::string bytes = bytes_of(folder / "a.safetensors");
  REQUIRE(bytes.size() % 8 == 17 % 8);
  CHECK(bytes.substr(8, json.size()) == json);
  CHECK(bytes.substr(8 + json.size()).find_first_not_of(' ') ==
        bytes.size() - 17 - 8 - json.size());
  save_safetensors(folder / "none.safetensors", {});
  CHECK(load_safetensors(folder / "none.safetensors").empty());
}

TEST_CASE("the format may be said, and npz files may be compressed") {
  const TemporaryFolder folder;
  const Shared w = shared(Array::zeros({10000}), {.name = "w"});
  save_parameters(folder / "w.bin", {w}, {.format = FileFormat::npz, .compressed = true});
  CHECK(std::filesystem::file_size(folder / "w.bin") < 1000);
  load_parameters(folder / "w.bin", {w}, {.format = FileFormat::npz});
  CHECK_THAT(error_text<UserError>([&] { save_parameters(folder / "w.bin", {w}); }),
             HasAll({"[save_parameters]", "w.bin", "expected a path that ends with .npz"}));
  CHECK_THAT(error_text<UserError>([&] { load_parameters(folder / "w.bin", {w}); }),
             HasAll({"[load_parameters]", "w.bin", "the option format"}));
  CHECK_THAT(error_text<UserError>(
                 [&] { save_parameters(folder / "w.safetensors", {w}, {.compressed = true}); }),
             HasAll({"only .npz files are compressed"}));
}

TEST_CASE("parameters must have names of their own") {
  const TemporaryFolder folder;
  const Shared w = shared(Array{1.0}, {.name = "w"}), other = shared(Array{1.0}, {.name = "w"});
  const Shared nameless = shared(Array{1.0});
  const auto text = [&](const std::vector<Shared>& list) {
    return error_text<UserError>([&] { save_parameters(folder / "w.npz", list); });
  };
  CHECK_THAT(text({w, nameless}), HasAll({"[save_parameters] parameter 1 has no name"}));
  CHECK_THAT(text({w, other}), HasAll({"two parameters are called 'w'"}));
  CHECK_THAT(text({w, w}), HasAll({"two parameters are called 'w'"}));
  CHECK_THAT(text({Shared()}), HasAll({"parameter 0 is an empty Shared"}));
  CHECK_THAT(error_text<UserError>([&] {
               load_parameters(folder / "w.npz", {w, other});
             }),
             HasAll({"[load_parameters] two parameters are called 'w'"}));
  CHECK(files_in(folder) == 0);
}

TEST_CASE("what does not fit changes nothing, and all of it is told") {
  const TemporaryFolder folder;
  for (const std::string file : {"f.npz", "f.safetensors"}) {
    save_parameters(folder / file,
                    {shared(Array{1.0, 2.0}, {.name = "w"}), shared(Array{3.0}, {.name = "bias"})});
    const Shared w = shared(Array{7.0, 8.0}, {.name = "w"}),
                 b = shared(Array{9.0}, {.name = "bais"});
    const auto text = [&](const std::vector<Shared>& list, const LoadParametersOptions& options) {
      return error_text<FileError>([&] { load_parameters(folder / file, list, options); });
    };
    CHECK_THAT(text({w, b}, {}),
               HasAll({file, "nothing was loaded", "the file has no 'bais'", "did you mean 'bias'",
                       "no parameter is called 'bias'", "did you mean 'bais'"}));
    CHECK_THAT(text({w}, {}), HasAll({"no parameter is called 'bias'", "allow_surplus"}));
    CHECK_THAT(text({w, b}, {.allow_surplus = true}), HasAll({"the file has no 'bais'"}));
    const Shared wide = shared(Array{9.0}.astype(DType::float64), {.name = "bias"});
    CHECK_THAT(text({w, wide}, {}),
               HasAll({"'bias' is float32 (1,) in the file and float64 (1,) here"}));
    const Shared longer = shared(Array{9.0, 9.0}, {.name = "bias"});
    CHECK_THAT(text({w, longer}, {.allow_missing = true, .allow_surplus = true}),
               HasAll({"'bias' is float32 (1,) in the file and float32 (2,) here"}));
    CHECK(array_equal(w.get_value(), Array{7.0, 8.0}));

    load_parameters(folder / file, {w, b}, {.allow_missing = true, .allow_surplus = true});
    CHECK(array_equal(w.get_value(), Array{1.0, 2.0}));
    CHECK(array_equal(b.get_value(), Array{9.0}));
    const Shared resizable = shared(Array{9.0, 9.0}, {.name = "bias", .resizable = true});
    load_parameters(folder / file, {w, resizable});
    CHECK(array_equal(resizable.get_value(), Array{3.0}));
    const Shared matrix = shared(Array{{9.0}}, {.name = "bias", .resizable = true});
    CHECK_THAT(text({w, matrix}, {}), HasAll({"float32 (?, ?) here"}));
  }
}

TEST_CASE("a damaged array changes no parameter, not even those before it") {
  const TemporaryFolder folder;
  save_npz(folder / "f.npz", {{"a", Array{1.0}}, {"b", Array{2.0}}});
  std::string bytes = bytes_of(folder / "f.npz");
  const std::size_t place = bytes.rfind(std::string("\0\0\0\x40", 4), bytes.rfind("PK\1\2"));
  REQUIRE(place != bytes.npos);
  bytes[place + 3] = '\x41';  // another number than the checksum is of
  folder.write("f.npz", bytes);
  const Shared a = shared(Array{7.0}, {.name = "a"}), b = shared(Array{8.0}, {.name = "b"});
  CHECK_THROWS_AS(load_parameters(folder / "f.npz", {a, b}), FileError);
  CHECK(array_equal(a.get_value(), Array{7.0}));
}

TEST_CASE("files are written whole or not at all") {
  const TemporaryFolder folder;
  const Shared w = shared(Array{1.0}, {.name = "w"});
  const Shared narrow = shared(Array{1.0}.astype(DType::bfloat16), {.name = "narrow"});
  const Shared large = shared(Array::zeros({100000}), {.name = "w"});
  for (const std::string file : {"w.npz", "w.safetensors"}) {
    save_parameters(folder / file, {w});
    const std::string before = bytes_of(folder / file);
    {
      // A disk that is full after 64 kB.
      signal(SIGXFSZ, SIG_IGN);
      rlimit limit{};
      REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
      const rlimit small{65536, limit.rlim_max};
      REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
      CHECK_THAT(error_text<FileError>([&] { save_parameters(folder / file, {large}); }),
                 HasAll({file}));
      REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    }
    CHECK(bytes_of(folder / file) == before);
  }
  CHECK_THAT(error_text<FileError>([&] {
               save_parameters(folder / "w.npz", {w, narrow});
             }),
             HasAll({"w.npz", "'narrow' is bfloat16", ".safetensors"}));
  const Shared zero = shared(Array{1.0}, {.name = std::string("a\0b", 3)});
  CHECK_THAT(error_text<FileError>([&] { save_parameters(folder / "w.npz", {zero}); }),
             HasAll({"zero byte"}));
  CHECK(files_in(folder) == 2);
  CHECK_THAT(error_text<FileError>([&] { save_parameters(folder / "no/w.npz", {w}); }),
             HasAll({"[save_parameters]", "no/w.npz", "No such file"}));
  std::filesystem::create_directory(folder / "folder.safetensors");
  CHECK_THAT(error_text<FileError>([&] { save_parameters(folder / "folder.safetensors", {w}); }),
             HasAll({"folder.safetensors", "is a folder"}));
  CHECK(files_in(folder) == 3);
}

TEST_CASE("names that safetensors files cannot have") {
  const TemporaryFolder folder;
  CHECK_THAT(error_text<FileError>([&] {
               save_safetensors(folder / "a.safetensors", {{"\xff", Array(1)}});
             }),
             HasAll({"[save_safetensors]", "not UTF-8"}));
  CHECK_THAT(error_text<FileError>([&] {
               save_safetensors(folder / "a.safetensors", {{"__metadata__", Array(1)}});
             }),
             HasAll({"'__metadata__' is not a name"}));
  CHECK(files_in(folder) == 0);
}

TEST_CASE("safetensors files that are not what they should be are FileErrors", "[bad_input]") {
  const TemporaryFolder folder;
  const auto text = [&](const std::string& bytes) {
    const std::string path = folder.write("bad.safetensors", bytes);
    return error_text<FileError>([&] { load_safetensors(path); });
  };
  const auto header = [&](const std::string& json, std::size_t bytes = 0) {
    return text(with_header(json, bytes));
  };
  const auto of_a = [&](const std::string& dtype, const std::string& shape,
                        const std::string& offsets, std::size_t bytes) {
    return header("{\"a\":" + entry(dtype, shape, offsets) + "}", bytes);
  };
  CHECK_THAT(text(""), HasAll({"[load_safetensors]", "bad.safetensors", "too short"}));
  CHECK_THAT(text("1234567"), HasAll({"too short"}));
  CHECK_THAT(text(std::string(8, '\xff') + "{}"), HasAll({"a header of 18446744073709551615"}));
  CHECK_THAT(text(with_header("{}", 0).substr(0, 9)), HasAll({"cut off"}));
  CHECK_THAT(header(""), HasAll({"no JSON"}));
  CHECK_THAT(header("{} {}"), HasAll({"no JSON"}));
  CHECK_THAT(header("{\"a\":"), HasAll({"no JSON"}));
  CHECK_THAT(header("{\"\xff\":{}}"), HasAll({"no JSON"}));
  CHECK_THAT(header("[]"), HasAll({"the header is a list: expected an object"}));
  CHECK_THAT(header("7"), HasAll({"the header is 7"}));
  CHECK_THAT(header("{\"a\":null}"), HasAll({"'a' is null: expected an object"}));
  CHECK_THAT(header("{\"a\":{}}"), HasAll({"'a' has no field 'dtype'"}));
  CHECK_THAT(header("{\"a\":{\"b\":1}}"), HasAll({"'a' has an unknown field 'b'"}));
  CHECK_THAT(header("{\"a\":{\"dtype\":7}}"), HasAll({"'dtype' of 'a' has 7: expected a string"}));
  CHECK_THAT(header("{\"a\":{\"shape\":7}}"), HasAll({"'shape' of 'a' has 7: expected a list"}));
  CHECK_THAT(header("{\"a\":{\"shape\":{}}}"), HasAll({"has an object: expected a list"}));
  CHECK_THAT(header("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}"),
             HasAll({"two fields 'dtype'"}));
  CHECK_THAT(header("{\"__metadata__\":{\"a\":1}}"), HasAll({"metadata has 1: expected a string"}));
  CHECK_THAT(header("{\"__metadata__\":{\"a\":{}}}"), HasAll({"metadata has an object"}));
  CHECK_THAT(header("{\"__metadata__\":{},\"__metadata__\":{}}"), HasAll({"twice"}));
  CHECK_THAT(of_a("F8_E4M3", "", "0,1", 1), HasAll({"'a' has dtype 'F8_E4M3'", "no counterpart"}));
  CHECK_THAT(of_a("F32", "-1", "0,4", 4), HasAll({"'shape' of 'a' has -1: expected an integer"}));
  CHECK_THAT(of_a("F32", "1.5", "0,4", 4), HasAll({"has 1.5: expected an integer"}));
  CHECK_THAT(of_a("F32", "[1]", "0,4", 4), HasAll({"has a list: expected an integer"}));
  CHECK_THAT(of_a("F32", "\"1\"", "0,4", 4), HasAll({"has '1': expected an integer"}));
  CHECK_THAT(of_a("F32", "18446744073709551615", "0,4", 4), HasAll({"'a' has a size of 1844"}));
  CHECK_THAT(of_a("F32", "99999999999999999999999", "0,4", 4), HasAll({"expected an integer"}));
  CHECK_THAT(of_a("F32", "4611686018427387904,4", "0,0", 0), HasAll({"do not hold"}));
  CHECK_THAT(of_a("F32", "4611686018427387905", "0,4", 4), HasAll({"do not hold"}));
  CHECK_THAT(of_a("F32", "2", "0,4", 4), HasAll({"float32 of shape (2,)", "from 0 to 4"}));
  CHECK_THAT(of_a("F32", "1", "4,0", 4), HasAll({"do not hold"}));
  CHECK_THAT(of_a("F32", "1", "0", 4), HasAll({"fewer than two data_offsets"}));
  CHECK_THAT(of_a("F32", "1", "0,4,8", 4), HasAll({"more than two data_offsets"}));
  CHECK_THAT(of_a("F32", "1", "0,4", 3), HasAll({"tells of 4 bytes of data, and the file has 3"}));
  CHECK_THAT(of_a("F32", "1", "0,4", 5), HasAll({"tells of 4 bytes of data, and the file has 5"}));
  CHECK_THAT(of_a("F32", "1", "4,8", 8), HasAll({"begin at 4, behind"}));
  CHECK_THAT(of_a("F32", "1000000000000", "0,4000000000000", 4),
             HasAll({"tells of 4000000000000"}));
  std::string axes = "1";
  for (int i = 0; i < 64; ++i) axes += ",1";
  CHECK_THAT(of_a("F32", axes, "0,4", 4), HasAll({"'a' has more than", "axes"}));
  CHECK_THAT(
      header("{\"a\":" + entry("U8", "4", "0,4") + ",\"b\":" + entry("U8", "4", "2,6") + "}", 6),
      HasAll({"'b' begin at 2, before"}));
  CHECK_THAT(
      header("{\"a\":" + entry("U8", "4", "0,4") + ",\"a\":" + entry("U8", "4", "0,4") + "}", 4),
      HasAll({"'a' stands in the header twice"}));
  for (const std::string open : {"[", "{\"a\":"}) {
    std::string deep;
    for (int i = 0; i < 1000000; ++i) deep += open;
    CHECK_THAT(header(deep), HasAll({"bad.safetensors"}));
    CHECK_THAT(header("{\"a\":{\"shape\":" + deep), HasAll({"'shape' of 'a'"}));
  }
  CHECK_THAT(error_text<FileError>([&] { load_safetensors(folder / "no.safetensors"); }),
             HasAll({"no such file"}));
  CHECK_THAT(error_text<FileError>([&] { load_safetensors(folder.path()); }),
             HasAll({"not a regular file"}));
}

TEST_CASE("every changed or missing byte of a safetensors file reads or fails cleanly",
          "[bad_input]") {
  const TemporaryFolder folder;
  const std::string good = bytes_of(data_folder() + "/parameters.safetensors");
  int failed = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x15);
    const std::string path = folder.write("x.safetensors", bytes);
    try {
      load_safetensors(path);
    } catch (const FileError&) {
      ++failed;
    }
    folder.write("x.safetensors", good.substr(0, i));
    CHECK_THROWS_AS(load_safetensors(path), FileError);
  }
  CHECK(failed > 500);
}

TEST_CASE("bytes of bools that are neither 0 nor 1 count as true") {
  const TemporaryFolder folder;
  std::string bytes = with_header("{\"a\":" + entry("BOOL", "2", "0,2") + "}", 0);
  const std::string path = folder.write("b.safetensors", bytes + std::string("\x07\0", 2));
  CHECK(array_equal(load_safetensors(path).at("a"), Array({true, false})));
}
