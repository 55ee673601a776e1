#include "runtime/attrs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

#include "croton/error.h"

namespace croton {
namespace {

constexpr std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h ^= v;
  h *= 0x9e3779b97f4a7c15ull;
  return h ^ (h >> 29);
}

std::uint64_t hash_text(std::uint64_t h, std::string_view text) {
  h = mix(h, text.size());
  for (char c : text) h = mix(h, static_cast<unsigned char>(c));
  return h;
}

[[noreturn]] void wrong(std::string_view name, const char* expected, bool present) {
  throw InternalError(fmt::format("internal error: attribute \"{}\" is {}, expected {}", name,
                                  present ? "of another type" : "absent", expected));
}

}  // namespace

void Attrs::set(std::string_view name, Value value) {
  for (Entry& entry : entries_) {
    if (entry.name == name) {
      entry.value = std::move(value);
      return;
    }
  }
  entries_.push_back({std::string(name), std::move(value)});
}

const Attrs::Value* Attrs::find(std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (entry.name == name) return &entry.value;
  }
  return nullptr;
}

std::int64_t Attrs::integer(std::string_view name) const {
  const Value* value = find(name);
  if (const auto* v = value ? std::get_if<std::int64_t>(value) : nullptr) return *v;
  wrong(name, "an integer", value != nullptr);
}

double Attrs::real(std::string_view name) const {
  const Value* value = find(name);
  if (const auto* v = value ? std::get_if<double>(value) : nullptr) return *v;
  wrong(name, "a float", value != nullptr);
}

const std::string& Attrs::text(std::string_view name) const {
  const Value* value = find(name);
  if (const auto* v = value ? std::get_if<std::string>(value) : nullptr) return *v;
  wrong(name, "a text", value != nullptr);
}

const std::vector<std::int64_t>& Attrs::integers(std::string_view name) const {
  const Value* value = find(name);
  if (const auto* v = value ? std::get_if<std::vector<std::int64_t>>(value) : nullptr) return *v;
  wrong(name, "a list of integers", value != nullptr);
}

std::int64_t Attrs::integer_or(std::string_view name, std::int64_t otherwise) const {
  return has(name) ? integer(name) : otherwise;
}

double Attrs::real_or(std::string_view name, double otherwise) const {
  return has(name) ? real(name) : otherwise;
}

std::string Attrs::text_or(std::string_view name, std::string_view otherwise) const {
  return has(name) ? text(name) : std::string(otherwise);
}

std::string Attrs::to_text() const {
  std::string out;
  for (const Entry& entry : entries_) {
    if (!out.empty()) out += ", ";
    out += entry.name + "=";
    if (const auto* i = std::get_if<std::int64_t>(&entry.value)) {
      out += fmt::format("{}", *i);
    } else if (const auto* d = std::get_if<double>(&entry.value)) {
      std::string digits = fmt::format("{}", *d);
      if (digits.find_first_not_of("-0123456789") == std::string::npos) digits += ".0";
      out += digits;
    } else if (const auto* s = std::get_if<std::string>(&entry.value)) {
      out += "\"" + *s + "\"";
    } else {
      out += fmt::format("[{}]", fmt::join(std::get<std::vector<std::int64_t>>(entry.value), ", "));
    }
  }
  return out;
}

std::uint64_t Attrs::hash() const {
  std::uint64_t h = 0x243f6a8885a308d3ull;
  for (const Entry& entry : entries_) {
    h = mix(hash_text(h, entry.name), entry.value.index());
    if (const auto* i = std::get_if<std::int64_t>(&entry.value)) {
      h = mix(h, static_cast<std::uint64_t>(*i));
    } else if (const auto* d = std::get_if<double>(&entry.value)) {
      h = mix(h, std::bit_cast<std::uint64_t>(*d + 0.0));  // -0 equals 0, so it hashes like it
    } else if (const auto* s = std::get_if<std::string>(&entry.value)) {
      h = hash_text(h, *s);
    } else {
      const auto& list = std::get<std::vector<std::int64_t>>(entry.value);
      h = mix(h, list.size());
      for (std::int64_t v : list) h = mix(h, static_cast<std::uint64_t>(v));
    }
  }
  return h;
}

}  // namespace croton
