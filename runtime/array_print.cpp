#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>

#include "croton/array.h"
#include "runtime/array_access.h"
#include "runtime/dtype_dispatch.h"
#include "runtime/float_text.h"

// The rules are those of NumPy's array2string with its default options, so that people can compare
// outputs as text.

namespace croton {
namespace {

constexpr int kPrecision = 8;
constexpr std::int64_t kThreshold = 1000;
constexpr std::int64_t kEdgeItems = 3;
constexpr std::size_t kLineWidth = 75;

using ElementText = std::function<std::string(const std::byte*)>;

/// Calls f with the address of each element that is shown.
template <class F>
void each_shown(const ArrayImpl& a, bool summary, const std::byte* p, std::size_t axis, F&& f) {
  if (axis == a.shape.size()) {
    f(p);
    return;
  }
  const std::int64_t n = a.shape[axis];
  const std::int64_t step = a.strides[axis] * static_cast<std::int64_t>(size_of(a.dtype));
  const bool shortened = summary && n > 2 * kEdgeItems;
  for (std::int64_t i = 0; i < n; ++i) {
    if (shortened && i == kEdgeItems) i = n - kEdgeItems;
    each_shown(a, summary, p + i * step, axis + 1, f);
  }
}

double float_at(const std::byte* p, DType dtype) {
  switch (dtype) {
    case DType::float16:
      return static_cast<float>(*reinterpret_cast<const float16*>(p));
    case DType::bfloat16:
      return static_cast<float>(*reinterpret_cast<const bfloat16*>(p));
    case DType::float32:
      return *reinterpret_cast<const float*>(p);
    default:
      return *reinterpret_cast<const double*>(p);
  }
}

/// `value` as the dtype holds it.
double rounded(double value, DType dtype) {
  switch (dtype) {
    case DType::float16:
      return static_cast<float>(float16(value));
    case DType::bfloat16:
      return static_cast<float>(bfloat16(value));
    case DType::float32:
      return static_cast<float>(value);
    default:
      return value;
  }
}

/// From where on NumPy 2.4 prefers exponents.
double exponent_cutoff(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return 1e6;
    case DType::float64:
      return 1e8;
    default:
      return 1e3;
  }
}

bool wants_exponents(double largest, double smallest, DType dtype) {
  if (largest == 0) return false;
  return largest >= exponent_cutoff(dtype) || smallest < rounded(1e-4, dtype) ||
         rounded(largest / smallest, dtype) > 1000;
}

std::string padded_left(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

/// Common layout of all floats that are shown.
class FloatColumn {
 public:
  FloatColumn(const ArrayImpl& a, bool summary) : dtype_(a.dtype) {
    double largest = 0, smallest = 0;
    std::vector<double> finite;
    bool nan_or_inf = false, negative_inf = false;
    each_shown(a, summary, a.data, 0, [&](const std::byte* p) {
      const double v = float_at(p, dtype_);
      if (!std::isfinite(v)) {
        nan_or_inf = true;
        negative_inf |= v < 0;
        return;
      }
      finite.push_back(v);
      const double m = std::fabs(v);
      if (m == 0) return;
      if (largest == 0 || m > largest) largest = m;
      if (smallest == 0 || m < smallest) smallest = m;
    });
    exponents_ = wants_exponents(largest, smallest, dtype_);
    measure(finite);
    if (nan_or_inf) {
      const std::size_t width = negative_inf ? 4 : 3;
      if (width > right_ + 1) left_ = std::max(left_, width - right_ - 1);
    }
  }

  std::string operator()(double v) const {
    if (std::isnan(v)) return padded_left("nan", left_ + right_ + 1);
    if (std::isinf(v)) return padded_left(v < 0 ? "-inf" : "inf", left_ + right_ + 1);
    return exponents_ ? scientific(v) : positional(v);
  }

 private:
  void measure(const std::vector<double>& finite) {
    std::size_t fraction = 0;
    for (double v : finite) {
      const std::string text = exponents_ ? scientific_text(v, dtype_, kPrecision)
                                          : positional_text(v, dtype_, kPrecision);
      const std::size_t point = text.find('.');
      const std::size_t e = std::min(text.find('e'), text.size());
      left_ = std::max(left_, point);
      fraction = std::max(fraction, e - point - 1);
      if (exponents_) exponent_ = std::max(exponent_, text.size() - e - 2);
    }
    fraction_ = fraction;
    right_ = exponents_ ? exponent_ + 2 + fraction : fraction;
  }

  std::string positional(double v) const {
    std::string text = positional_text(v, dtype_, kPrecision);
    const std::size_t point = text.find('.');
    text.resize(point + 1 + right_, ' ');
    return std::string(left_ - point, ' ') + text;
  }

  std::string scientific(double v) const {
    const std::string text = fixed_scientific_text(v, dtype_, static_cast<int>(fraction_));
    const std::size_t point = text.find('.'), e = text.find('e');
    std::string power = text.substr(e + 2);
    if (power.size() < exponent_) power.insert(0, exponent_ - power.size(), '0');
    return std::string(left_ - point, ' ') + text.substr(0, e + 2) + power;
  }

  DType dtype_;
  bool exponents_ = false;
  std::size_t left_ = 0, right_ = 0, fraction_ = 0, exponent_ = 0;
};

std::string integer_text(const std::byte* p, DType dtype) {
  return with_type(dtype, [&]<class T>() -> std::string {
    if constexpr (Integer<T>)
      return std::to_string(*reinterpret_cast<const T*>(p));
    else
      return {};
  });
}

ElementText element_text(const ArrayImpl& a, bool summary) {
  const DType dtype = a.dtype;
  const bool lone = a.shape.empty();
  if (is_bool(dtype)) {
    return [lone](const std::byte* p) -> std::string {
      return *reinterpret_cast<const bool*>(p) ? (lone ? "True" : " True") : "False";
    };
  }
  if (is_float(dtype)) {
    if (lone) return [dtype](const std::byte* p) { return scalar_text(float_at(p, dtype), dtype); };
    return [dtype, column = FloatColumn(a, summary)](const std::byte* p) {
      return column(float_at(p, dtype));
    };
  }
  std::size_t width = 0;
  each_shown(a, summary, a.data, 0,
             [&](const std::byte* p) { width = std::max(width, integer_text(p, dtype).size()); });
  return [dtype, width](const std::byte* p) { return padded_left(integer_text(p, dtype), width); };
}

/// Sets the elements in brackets and lines.
class Layout {
 public:
  Layout(const ArrayImpl& a, bool summary)
      : a_(a), summary_(summary), text_(element_text(a, summary)) {}

  std::string print() const { return block(a_.data, 0, " ", kLineWidth); }

 private:
  std::string block(const std::byte* p, std::size_t axis, const std::string& indent,
                    std::size_t width) const {
    const std::size_t left = a_.shape.size() - axis;
    if (left == 0) return text_(p);
    const std::string s = left == 1 ? row(p, axis, indent, width) : rows(p, axis, indent, width);
    std::string text(1, '[');
    return text.append(s, indent.size()).append("]");
  }

  std::string row(const std::byte* p, std::size_t axis, const std::string& indent,
                  std::size_t width) const {
    std::string done, line = indent;
    const auto extend = [&](const std::string& word) {
      // A line that holds nothing yet is not wrapped: it would not help.
      if (line.size() + word.size() > width - 1 && line.size() > indent.size()) {
        line.erase(line.find_last_not_of(' ') + 1);
        done += line + "\n";
        line = indent;
      }
      line += word;
    };
    each(p, axis, [&](const std::byte* q, bool last) {
      extend(q == nullptr ? "..." : text_(q));
      if (!last) line += ' ';
    });
    return done + line;
  }

  std::string rows(const std::byte* p, std::size_t axis, const std::string& indent,
                   std::size_t width) const {
    const std::string separator(a_.shape.size() - axis - 1, '\n');
    std::string s;
    each(p, axis, [&](const std::byte* q, bool last) {
      s += indent + (q == nullptr ? "..." : block(q, axis + 1, indent + " ", width - 1));
      if (!last) s += separator;
    });
    return s;
  }

  /// Calls f(address, last) for the entries shown along an axis; null stands for "...".
  template <class F>
  void each(const std::byte* p, std::size_t axis, F&& f) const {
    const std::int64_t n = a_.shape[axis];
    const std::int64_t step = a_.strides[axis] * static_cast<std::int64_t>(size_of(a_.dtype));
    const bool shortened = summary_ && n > 2 * kEdgeItems;
    for (std::int64_t i = 0; i < n; ++i) {
      if (shortened && i == kEdgeItems) {
        f(static_cast<const std::byte*>(nullptr), false);
        i = n - kEdgeItems;
      }
      f(p + i * step, i == n - 1);
    }
  }

  const ArrayImpl& a_;
  bool summary_;
  ElementText text_;
};

}  // namespace

std::string to_string(const Array& array) {
  if (!array.has_value()) return "(no value)";
  const Array host = array.to_host();
  const ArrayImpl& a = *ArrayAccess::impl(host);
  if (a.size == 0) return "[]";
  return Layout(a, a.size > kThreshold).print();
}

std::ostream& operator<<(std::ostream& out, const Array& array) { return out << to_string(array); }

}  // namespace croton
