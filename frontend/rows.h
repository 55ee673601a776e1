// Rows of arguments: which are meant, and how they are shared out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "croton/data_parallel.h"

namespace croton {

class Runtime;

/// What a Rows means for a number of rows: [start, stop), or these.
struct ChosenRows {
  bool all = true;
  bool listed = false;
  std::int64_t start = 0;
  std::int64_t stop = 0;
  std::vector<std::int64_t> list = {};

  std::int64_t count() const {
    return listed ? static_cast<std::int64_t>(list.size())
                  : std::max<std::int64_t>(stop - start, 0);
  }
};

/// Looks into Rows.
struct RowsAccess {
  static bool all(const Rows& rows) { return rows.kind_ == Rows::Kind::all; }
  /// `fail` throws, and gets what is wrong: a row that is not there.
  static ChosenRows choose(const Rows& rows, std::int64_t of,
                           const std::function<void(const std::string&)>& fail);
};

/// Those rows of an array.
Array chosen_rows(const Array& array, const ChosenRows& rows);

/// The number of rows that the scattered arguments agree on, if there are any. `fail` throws, and
/// gets what is wrong with them.
std::optional<std::int64_t> common_rows(std::span<const Variable> inputs,
                                        const std::vector<bool>& scattered,
                                        std::span<const Array> arguments,
                                        const std::function<void(const std::string&)>& fail);

/// Where piece k of n begins: sizes differ by at most 1, larger ones come first.
std::int64_t begin_of(std::int64_t rows, int k, int n);

/// The contexts that were asked for, by their canonical names; all that are bound where none are.
/// ConfigError for one that is not bound, GraphError for one that is given twice, in the name of
/// `asker`.
std::vector<std::string> contexts_of(const std::vector<std::string>& asked, Runtime& runtime,
                                     std::string_view asker, const Loc& loc);

/// The symbols of inputs. GraphError, in the name of `asker`, for a scattered one without rows.
std::vector<Variable> symbols_of(const std::vector<ParallelInput>& inputs, std::string_view asker,
                                 const Loc& loc);

/// The arguments of a call, up to the last that was given, as arrays.
std::vector<Array> arrays_of(std::span<const Arg* const> args, std::span<const Variable> inputs,
                             const std::string& function);

}  // namespace croton
