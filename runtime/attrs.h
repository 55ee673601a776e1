#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace croton {

/// The parameters of a node or a library call: a flat map from names to integers (booleans and
/// dtypes included), floats, strings and integer lists, in order of insertion. Printed, compared
/// and hashed in this one place.
class Attrs {
 public:
  using Value = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>>;
  struct Entry {
    std::string name;
    Value value;
    bool operator==(const Entry&) const = default;
  };

  Attrs() = default;
  Attrs(std::initializer_list<Entry> entries) : entries_(entries) {}

  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  /// Sets or replaces.
  void set(std::string_view name, Value value);

  bool has(std::string_view name) const { return find(name) != nullptr; }

  // Readers: InternalError when absent or of another type.
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const std::vector<std::int64_t>& integers(std::string_view name) const;
  /// Integer, or `otherwise` when absent.
  std::int64_t integer_or(std::string_view name, std::int64_t otherwise) const;
  double real_or(std::string_view name, double otherwise) const;
  std::string text_or(std::string_view name, std::string_view otherwise) const;

  /// "axis=1, keepdims=0"; empty for none.
  std::string to_text() const;
  std::uint64_t hash() const;
  bool operator==(const Attrs&) const = default;

 private:
  const Value* find(std::string_view name) const;
  std::vector<Entry> entries_;
};

}  // namespace croton
