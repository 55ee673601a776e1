#include "runtime/float_text.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace croton {
namespace {

/// Reads "d.ddde+XX", which ends at `end` with a null character.
Decimal parse_scientific(const char* text, const char* end) {
  Decimal d;
  if (*text == '-') {
    d.negative = true;
    ++text;
  }
  for (; text != end && *text != 'e'; ++text) {
    if (*text != '.') d.digits += *text;
  }
  while (d.digits.size() > 1 && d.digits.back() == '0') d.digits.pop_back();
  d.point = 1 + (text == end ? 0 : std::atoi(text + 1));
  return d;
}

template <class Half>
Decimal shortest_half(double value) {
  char text[32];
  int n = 0;
  for (int precision = 0; precision <= 9; ++precision) {
    n = std::snprintf(text, sizeof text, "%.*e", precision, value);
    if (static_cast<double>(static_cast<float>(Half(std::strtod(text, nullptr)))) == value) break;
  }
  return parse_scientific(text, text + n);
}

/// The value rounded to `places` digits after the point; scientific or not. Rounds the exact value.
Decimal rounded_decimal(double value, int places, bool scientific) {
  char text[400];
  const int n = std::snprintf(text, sizeof text, scientific ? "%.*e" : "%.*f", places, value);
  if (scientific) return parse_scientific(text, text + n);
  Decimal d;
  std::string digits(text, text + n);
  if (digits[0] == '-') {
    d.negative = true;
    digits.erase(0, 1);
  }
  const std::size_t point = digits.find('.');
  d.point = static_cast<int>(point == std::string::npos ? digits.size() : point);
  if (point != std::string::npos) digits.erase(point, 1);
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  d.digits = digits;
  return d;
}

std::string positional(const Decimal& d) {
  std::string whole, fraction;
  const int count = static_cast<int>(d.digits.size());
  for (int i = 0; i < d.point; ++i)
    whole += i < count ? d.digits[static_cast<std::size_t>(i)] : '0';
  for (int i = d.point; i < count; ++i)
    fraction += i < 0 ? '0' : d.digits[static_cast<std::size_t>(i)];
  if (whole.empty()) whole += '0';
  if (d.digits == "0") fraction.clear();
  std::string text(d.negative ? "-" : "");
  return text.append(whole).append(".").append(fraction);
}

std::string scientific(const Decimal& d) {
  const int exponent = d.digits == "0" ? 0 : d.point - 1;
  char tail[16];
  std::snprintf(tail, sizeof tail, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
  std::string text(d.negative ? "-" : "");
  text += d.digits[0];
  return text.append(".").append(d.digits, 1).append(tail);
}

double scalar_cutoff(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return 1e16;
    case DType::float32:
      return 1e6;
    default:
      return 1e3;
  }
}

}  // namespace

Decimal shortest_decimal(double value, DType dtype) {
  if (dtype == DType::float16) return shortest_half<float16>(value);
  if (dtype == DType::bfloat16) return shortest_half<bfloat16>(value);
  char text[64];  // to_chars fills at most 24
  const auto format = std::chars_format::scientific;
  const std::to_chars_result r =
      dtype == DType::float32
          ? std::to_chars(text, text + sizeof text, static_cast<float>(value), format)
          : std::to_chars(text, text + sizeof text, value, format);
  *r.ptr = '\0';
  return parse_scientific(text, r.ptr);
}

std::string positional_text(double value, DType dtype, int precision) {
  const Decimal d = shortest_decimal(value, dtype);
  if (static_cast<int>(d.digits.size()) - d.point <= precision) return positional(d);
  return positional(rounded_decimal(value, precision, false));
}

std::string scientific_text(double value, DType dtype, int precision) {
  const Decimal d = shortest_decimal(value, dtype);
  if (static_cast<int>(d.digits.size()) - 1 <= precision) return scientific(d);
  return scientific(rounded_decimal(value, precision, true));
}

std::string fixed_scientific_text(double value, DType dtype, int places) {
  const Decimal d = shortest_decimal(value, dtype);
  std::string text = static_cast<int>(d.digits.size()) - 1 == places
                         ? scientific(d)
                         : scientific(rounded_decimal(value, places, true));
  const std::size_t point = text.find('.'), e = text.find('e');
  const std::size_t missing = static_cast<std::size_t>(places) - (e - point - 1);
  return text.insert(e, missing, '0');
}

std::string scalar_text(double value, DType dtype) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const double magnitude = std::fabs(value);
  const Decimal d = shortest_decimal(value, dtype);
  if (magnitude == 0 || (magnitude >= 1e-4 && magnitude < scalar_cutoff(dtype))) {
    std::string text = positional(d);
    if (text.back() == '.') text += '0';
    return text;
  }
  std::string text = scientific(d);
  if (d.digits.size() == 1) text.erase(text.find('.'), 1);
  return text;
}

}  // namespace croton
