#include "runtime/npy_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <limits>
#include <string_view>

#include "croton/error.h"
#include "runtime/array_access.h"

namespace croton {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "\x93NUMPY";

struct Header {
  std::string descr;
  bool fortran_order = false;
  Shape shape;
};

/// Reads the Python literal of a header: a dict with the keys 'descr', 'fortran_order', 'shape'.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const ByteSource& source) : text_(text), source_(source) {}

  Header parse() {
    Header h;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        h.descr = read_descr();
        descr = true;
      } else if (key == "fortran_order") {
        h.fortran_order = boolean();
        order = true;
      } else if (key == "shape") {
        h.shape = tuple();
        shape = true;
      } else {
        fail(fmt::format("unknown key '{}'", key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!descr || !order || !shape) fail("a key of 'descr', 'fortran_order', 'shape' is missing");
    return h;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    source_.fail(fmt::format("damaged header at character {}: {}", at_, reason));
  }
  void blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(char c) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}'", c));
  }
  std::string string() {
    blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("expected a string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a string does not end");
    std::string s(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return s;
  }
  std::string read_descr() {
    blanks();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(')) {
      source_.fail(
          "holds records (a structured dtype), which have no dtype here; save the fields "
          "one by one");
    }
    return string();
  }
  bool boolean() {
    blanks();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return word == "True";
      }
    }
    fail("expected True or False");
  }
  Shape tuple() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      if (shape.size() == kMaxRank) {
        source_.fail(fmt::format("has more than {} axes; merge some with reshape", kMaxRank));
      }
      shape.push_back(number());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }
  std::int64_t number() {
    blanks();
    const std::size_t start = at_;
    std::int64_t n = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, text_[at_] - '0', &n)) {
        fail("a size is too large");
      }
    }
    if (at_ == start) fail("expected a size");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
    return n;
  }

  std::string_view text_;
  const ByteSource& source_;
  std::size_t at_ = 0;
};

struct ElementFormat {
  DType dtype;
  bool swapped;
};

ElementFormat parse_descr(const std::string& descr, const ByteSource& source) {
  const char order = descr.empty() ? '\0' : descr[0];
  const bool has_order = order == '<' || order == '>' || order == '=' || order == '|';
  const std::string type = has_order ? descr.substr(1) : descr;
  struct Known {
    std::string_view code;
    DType dtype;
  };
  constexpr Known kKnown[] = {
      {"b1", DType::boolean}, {"?", DType::boolean}, {"i1", DType::int8},    {"i2", DType::int16},
      {"i4", DType::int32},   {"i8", DType::int64},  {"u1", DType::uint8},   {"u2", DType::uint16},
      {"u4", DType::uint32},  {"u8", DType::uint64}, {"f2", DType::float16}, {"f4", DType::float32},
      {"f8", DType::float64},
  };
  for (const Known& k : kKnown) {
    if (k.code == type) return {k.dtype, order == '>' && size_of(k.dtype) > 1};
  }
  if (type == "O") source.fail("holds pickled Python objects ('O'), which are not read");
  if (type == "V2") {
    source.fail(
        "holds raw 2-byte elements ('V2'), as bfloat16 arrays are saved from Python; save "
        "them as float32");
  }
  source.fail(
      fmt::format("dtype '{}' has no counterpart; expected bool, an integer or a float of "
                  "16, 32 or 64 bits",
                  descr));
}

void swap_bytes(std::byte* data, std::size_t bytes, std::size_t width) {
  for (std::size_t i = 0; i < bytes; i += width) std::reverse(data + i, data + i + width);
}

std::string read_header_text(ByteSource& source) {
  std::array<unsigned char, 8> start{};
  if (source.remaining() < start.size()) source.fail("too short for a .npy file");
  source.read(start.data(), start.size());
  if (std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0) {
    source.fail("not a .npy file: it does not begin with \\x93NUMPY");
  }
  const int major = start[6];
  if (major < 1 || major > 3) {
    source.fail(
        fmt::format("unknown format version {}.{}; expected 1.0, 2.0 or 3.0", major, start[7]));
  }
  std::array<unsigned char, 4> length_bytes{};
  const std::size_t length_size = major == 1 ? 2 : 4;
  if (source.remaining() < length_size) source.fail("the header is cut off");
  source.read(length_bytes.data(), length_size);
  std::uint32_t length = 0;
  for (std::size_t i = length_size; i-- > 0;) length = length << 8 | length_bytes[i];
  // NumPy's own headers have a few hundred bytes; long ones belong to structured dtypes.
  if (length > source.remaining() || length > (1u << 20)) {
    source.fail(fmt::format("the header is cut off: {} bytes announced, {} there", length,
                            source.remaining()));
  }
  std::string text(length, '\0');
  source.read(text.data(), length);
  return text;
}

std::string descr_of(DType dtype, const std::string& name) {
  if (dtype == DType::bfloat16) {
    throw FileError(
        fmt::format("[save] {}: NumPy has no bfloat16; save astype(DType::float32)", name));
  }
  const char kind = is_bool(dtype) ? 'b' : is_float(dtype) ? 'f' : is_signed(dtype) ? 'i' : 'u';
  return fmt::format("{}{}{}", size_of(dtype) == 1 ? '|' : '<', kind, size_of(dtype));
}

}  // namespace

void ByteSource::fail(const std::string& reason) const {
  throw FileError(fmt::format("[load] {}: {}", name_, reason));
}

Array read_npy(ByteSource& source) {
  const std::string text = read_header_text(source);
  const Header header = HeaderParser(text, source).parse();
  const ElementFormat format = parse_descr(header.descr, source);
  std::uint64_t count = 1;
  bool overflow = false, empty = false;
  for (std::int64_t s : header.shape) {
    empty |= s == 0;
    overflow |= __builtin_mul_overflow(count, static_cast<std::uint64_t>(s), &count);
  }
  std::uint64_t bytes = 0;
  overflow |= __builtin_mul_overflow(count, size_of(format.dtype), &bytes);
  if (empty) {
    bytes = 0;
  } else if (overflow || bytes > source.remaining()) {
    source.fail(fmt::format("the data is cut off: shape {} of {} does not fit the {} bytes there",
                            header.shape.to_string(), name_of(format.dtype), source.remaining()));
  }
  Shape order = header.shape;
  if (header.fortran_order) std::reverse(order.begin(), order.end());
  Array result = ArrayAccess::make_host(format.dtype, order);
  std::byte* data = ArrayAccess::impl(result)->data;
  source.read(data, bytes);
  if (format.swapped) swap_bytes(data, bytes, size_of(format.dtype));
  if (is_bool(format.dtype)) {
    for (std::uint64_t i = 0; i < bytes; ++i) data[i] = std::byte{data[i] != std::byte{0}};
  }
  return header.fortran_order ? result.transpose().contiguous() : result;
}

std::string npy_header(const Array& array, const std::string& name) {
  std::string shape;
  for (std::int64_t s : array.shape()) shape += fmt::format("{}, ", s);
  if (array.ndim() > 1) shape.resize(shape.size() - 2);  // a lone size keeps its comma
  if (array.ndim() == 1) shape.pop_back();
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 descr_of(array.dtype(), name), shape);
  constexpr std::size_t kPrefix = 10;
  const std::size_t total = (kPrefix + dict.size() + 1 + 63) / 64 * 64;
  dict.resize(total - kPrefix - 1, ' ');
  dict += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

}  // namespace croton
