#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "croton/error.h"
#include "frontend/safetensors_file.h"

namespace croton {
namespace {

constexpr std::string_view kMetadata = "__metadata__";

/// A name as messages have it.
std::string name_text(const std::string& name) {
  return name.size() <= 80 ? "'" + name + "'" : "'" + name.substr(0, 80) + "...'";
}

std::optional<DType> dtype_of_code(std::string_view code) {
  constexpr std::pair<std::string_view, DType> kKnown[] = {
      {"F64", DType::float64}, {"F32", DType::float32},   {"F16", DType::float16},
      {"I64", DType::int64},   {"BF16", DType::bfloat16}, {"I32", DType::int32},
      {"I16", DType::int16},   {"I8", DType::int8},       {"U64", DType::uint64},
      {"U32", DType::uint32},  {"U16", DType::uint16},    {"U8", DType::uint8},
      {"BOOL", DType::boolean}};
  for (const auto& [known, dtype] : kKnown) {
    if (known == code) return dtype;
  }
  return {};
}

/// Reads the header as it is parsed, without building a tree of it: what cannot be right ends it at
/// once, however deep or long it goes on.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& title) : title_(title) {}

  std::map<std::string, StoredArray> arrays;

  [[noreturn]] void fail(const std::string& reason) const {
    throw FileError(fmt::format("{}: {}", title_, reason));
  }

  bool null() override { wrong("null"); }
  bool boolean(bool) override { wrong("true or false"); }
  bool number_float(double, const std::string& text) override { wrong(text); }
  bool binary(nlohmann::json::binary_t&) override { wrong("binary data"); }
  bool number_integer(std::int64_t value) override { wrong(std::to_string(value)); }

  bool number_unsigned(std::uint64_t value) override {
    if (!in_list_) wrong(std::to_string(value));
    if (field_ == "shape") {
      constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      if (value > kMost) fail(fmt::format("{} has a size of {}", name_text(name_), value));
      if (stored_.shape.size() == kMaxRank) {
        fail(fmt::format("{} has more than {} axes", name_text(name_), kMaxRank));
      }
      stored_.shape.push_back(static_cast<std::int64_t>(value));
    } else {
      if (offsets_ == 2) fail(name_text(name_) + " has more than two data_offsets");
      (offsets_++ == 0 ? stored_.begin : stored_.end) = value;
    }
    return true;
  }

  bool string(std::string& text) override {
    if (depth_ == 2 && name_ == kMetadata) return true;
    if (depth_ != 2 || field_ != "dtype" || in_list_) wrong(name_text(text));
    const std::optional<DType> dtype = dtype_of_code(text);
    if (!dtype) {
      fail(
          fmt::format("{} has dtype {}, which has no counterpart: expected F64, F32, F16, BF16, "
                      "I64, I32, I16, I8, U64, U32, U16, U8 or BOOL",
                      name_text(name_), name_text(text)));
    }
    stored_.dtype = *dtype;
    return true;
  }

  bool start_object(std::size_t) override {
    if (depth_ == 2 || in_list_) wrong("an object");
    ++depth_;
    if (depth_ == 2) {
      stored_ = {};
      offsets_ = 0;
      fields_ = {};
    }
    return true;
  }

  bool key(std::string& key) override {
    if (depth_ == 1) {
      name_ = key;
      const bool twice = key == kMetadata ? std::exchange(metadata_, true) : arrays.contains(key);
      if (twice) fail(name_text(key) + " stands in the header twice");
      return true;
    }
    if (name_ == kMetadata) return true;
    field_ = key;
    const auto known = std::find(kFields.begin(), kFields.end(), key);
    if (known == kFields.end()) {
      fail(fmt::format("{} has an unknown field {}", name_text(name_), name_text(key)));
    }
    bool& seen = fields_[static_cast<std::size_t>(known - kFields.begin())];
    if (seen) fail(fmt::format("{} has two fields '{}'", name_text(name_), key));
    seen = true;
    return true;
  }

  bool end_object() override {
    if (--depth_ == 0 || name_ == kMetadata) return true;
    for (std::size_t i = 0; i < kFields.size(); ++i) {
      if (!fields_[i]) fail(fmt::format("{} has no field '{}'", name_text(name_), kFields[i]));
    }
    if (offsets_ != 2) fail(name_text(name_) + " has fewer than two data_offsets");
    arrays.emplace(name_, stored_);
    return true;
  }

  bool start_array(std::size_t) override {
    const bool list = field_ == "shape" || field_ == "data_offsets";
    if (depth_ != 2 || name_ == kMetadata || in_list_ || !list) wrong("a list");
    in_list_ = true;
    return true;
  }
  bool end_array() override {
    in_list_ = false;
    return true;
  }

  bool parse_error(std::size_t place, const std::string&,
                   const nlohmann::detail::exception&) override {
    fail(fmt::format("the header is no JSON: wrong at character {}", place));
  }

 private:
  static constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};

  [[noreturn]] void wrong(const std::string& what) const {
    if (depth_ == 0) fail("the header is " + what + ": expected an object");
    if (depth_ == 1) fail(fmt::format("{} is {}: expected an object", name_text(name_), what));
    if (name_ == kMetadata) fail(fmt::format("the metadata has {}: expected a string", what));
    const char* const expected = field_ == "dtype" ? "a string"
                                 : in_list_        ? "an integer of 0 or more"
                                                   : "a list";
    fail(fmt::format("'{}' of {} has {}: expected {}", field_, name_text(name_), what, expected));
  }

  const std::string& title_;
  int depth_ = 0;
  bool in_list_ = false, metadata_ = false;
  std::string name_, field_;
  std::array<bool, 3> fields_{};
  int offsets_ = 0;
  StoredArray stored_;
};

/// Compares sizes with the bytes that they claim.
void check_size(const HeaderReader& reader, const std::string& name, const StoredArray& a) {
  std::uint64_t count = 1;
  bool overflow = false, empty = false;
  for (const std::int64_t size : a.shape) {
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(count, static_cast<std::uint64_t>(size), &count);
  }
  overflow |= __builtin_mul_overflow(count, size_of(a.dtype), &count);
  if (empty) count = 0, overflow = false;
  if (a.end < a.begin || overflow || a.end - a.begin != count) {
    reader.fail(fmt::format("{} is {} of shape {}, which its bytes from {} to {} do not hold",
                            name_text(name), name_of(a.dtype), a.shape.to_string(), a.begin,
                            a.end));
  }
}

}  // namespace

std::map<std::string, StoredArray> parse_safetensors_header(std::string_view json,
                                                            std::uint64_t bytes,
                                                            const std::string& title) {
  HeaderReader reader(title);
  nlohmann::json::sax_parse(json, &reader);
  std::vector<const std::pair<const std::string, StoredArray>*> order;
  for (const auto& entry : reader.arrays) {
    check_size(reader, entry.first, entry.second);
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::uint64_t at = 0;
  for (const auto* entry : order) {
    const StoredArray& a = entry->second;
    if (a.begin != at) {
      reader.fail(fmt::format("the bytes of {} begin at {}, {} the end of those before it, {}",
                              name_text(entry->first), a.begin, a.begin < at ? "before" : "behind",
                              at));
    }
    at = a.end;
  }
  if (at != bytes) {
    reader.fail(
        fmt::format("the header tells of {} bytes of data, and the file has {}", at, bytes));
  }
  return std::move(reader.arrays);
}

}  // namespace croton
