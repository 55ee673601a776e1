#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "croton/collectives.h"
#include "croton/combine.h"
#include "croton/data_parallel.h"
#include "croton/function.h"

// Contexts that have each their own values of shared variables, as Synkhronos' workers do:
// functions compute on each from its rows and update its values, and collectives bring them
// together. DataParallel, which has one value of everything, is the other way.
namespace croton {

/// An output of a group's function, its name, and how it is made of what the ranks have: anything
/// but Combine::whole.
struct CROTON_API GroupOutput {
  Variable value;
  std::string name = {};
  Combine combine = Combine::mean;
  template <Symbol T>
  GroupOutput(const T& value, Combine combine = Combine::mean) : value(value), combine(combine) {}
  GroupOutput(std::string name, const Variable& value, Combine combine = Combine::mean)
      : value(value), name(std::move(name)), combine(combine) {}
};

/// A shared variable and its value after the call, on each rank from what that rank has.
struct GroupUpdate {
  Shared target;
  Operand value;
  /// How the values of several slices become one: not Combine::whole or gather.
  Combine slices = Combine::mean;
};

struct GroupFunctionOptions {
  std::vector<GroupUpdate> updates = {};
  /// As FunctionOptions has them.
  std::vector<Given> givens = {};
  /// Shared variables of which a call takes rows as it does of arguments: those that `batch_s`
  /// chooses, in as many slices as there are.
  std::vector<Shared> sliceable_shareds = {};
  std::string name = {};
  std::optional<OnUnused> on_unused = {};
  std::optional<Config> config = {};
  bool no_default_updates = false;
  bool keep_on_device = false;
};

struct GroupCallOptions {
  /// Rows of the scattered arguments, chosen before they are shared out.
  Rows batch = {};
  /// Rows of the sliceable shared variables, chosen on each rank: none for all of them, one choice
  /// for every rank, or one a rank.
  std::vector<Rows> batch_s = {};
  /// Each rank computes its rows in that many pieces, one after the other. Updates are computed
  /// from the values before the call for each piece, put together, and stored once.
  int num_slices = 1;
  /// The outputs that are wanted, by index, in that order; all where it is left out. Updates are
  /// made all the same.
  std::optional<std::vector<std::size_t>> output_subset = {};
};

/// A function of a group. A handle, cheap to copy; may be called from several threads.
class CROTON_API GroupFunction {
 public:
  GroupFunction() = default;

  /// As Function's. CallError where scattered arguments differ in their numbers of rows, for rows
  /// that are not there, and where there is nothing to slice. Any number of rows will do: ranks
  /// without rows do nothing, and their values stay as they were. Without any rows rank 0 alone
  /// computes the outputs, and nothing is updated.
  Outputs operator()(const Arg& a = Arg::kNone, const Arg& b = Arg::kNone,
                     const Arg& c = Arg::kNone, const Arg& d = Arg::kNone,
                     const Arg& e = Arg::kNone, const Arg& f = Arg::kNone,
                     const Arg& g = Arg::kNone, const Arg& h = Arg::kNone) const;
  Outputs call(std::span<const Array> arguments, const GroupCallOptions& options = {}) const;
  Outputs call(std::initializer_list<Array> arguments, const GroupCallOptions& options = {}) const {
    return call(std::span(arguments.begin(), arguments.size()), options);
  }

  const std::string& name() const;
  const std::vector<std::string>& output_names() const;

  struct Impl;

 private:
  friend class Group;
  const Impl& impl() const;
  std::shared_ptr<const Impl> impl_;
};

/// One shared variable, or several.
struct CROTON_API SharedList {
  std::vector<Shared> list;
  SharedList(const Shared& shared) : list{shared} {}
  SharedList(std::initializer_list<Shared> shareds) : list(shareds) {}
  SharedList(const std::vector<Shared>& shareds) : list(shareds) {}
};

/// One array, or one for each shared variable.
struct CROTON_API ArrayList {
  std::vector<Array> list;
  ArrayList() = default;
  ArrayList(const Array& array) : list{array} {}
  ArrayList(std::initializer_list<Array> arrays) : list(arrays) {}
  ArrayList(const std::vector<Array>& arrays) : list(arrays) {}
};

/// Ranks 0, 1, ..., each on a context. On rank 0 a shared variable is itself; every other rank gets
/// one of its own, with a copy of the value, when a function or collective of the group first needs
/// it. A handle, cheap to copy; copies are one group. After Synkhronos.
///
/// All that takes shared variables throws a UserError for an empty one, for the same one given
/// twice, for a rank that is not there, and, before anything is changed, for another number of
/// arrays or another dtype or number of axes than expected. Shapes change only where a shared
/// variable was made with `.resizable = true`.
class CROTON_API Group {
 public:
  /// A rank on each of these contexts; on all that the flag `contexts` binds, in its order, where
  /// there are none. ConfigError for a context that is not bound.
  explicit Group(const std::vector<std::string>& contexts = {}, Loc loc = Loc::current());

  int size() const;
  const std::vector<std::string>& contexts() const;

  /// Compiles a function that each rank computes from its own rows and shared values. GraphError as
  /// croton::function has it, for Combine::whole, for means of what is not a float, and for a
  /// sliceable shared variable that the function does not need, has no rows, or updates.
  GroupFunction function(const std::vector<ParallelInput>& inputs,
                         const std::vector<GroupOutput>& outputs,
                         const GroupFunctionOptions& options = {}, Loc loc = Loc::current()) const;

  /// Gives every rank the values of rank 0, or these.
  void broadcast(const SharedList& shareds, const ArrayList& values = {}) const;
  /// Shares out the rows of arrays, or of `batch` of them: sizes differ by at most 1, the first
  /// ranks have more.
  void scatter(const SharedList& shareds, const ArrayList& values, const Rows& batch = {}) const;
  /// The values of all ranks, in their order: along a new axis 0, or without `stacked` one behind
  /// the other along axis 0, where lengths may differ. Changes nothing.
  std::vector<Array> gather(const std::vector<Shared>& shareds, bool stacked = true) const;
  Array gather(const Shared& shared, bool stacked = true) const;
  /// Gives every rank the values of all, one behind the other along axis 0.
  void all_gather(const SharedList& shareds) const;
  /// The values of all ranks combined, in their order. With `in_place` rank 0 gets them as its
  /// values; those of the other ranks stay.
  std::vector<Array> reduce(const std::vector<Shared>& shareds,
                            CollectiveOp op = CollectiveOp::mean, bool in_place = true) const;
  Array reduce(const Shared& shared, CollectiveOp op = CollectiveOp::mean,
               bool in_place = true) const;
  /// Gives every rank the values of all combined.
  void all_reduce(const SharedList& shareds, CollectiveOp op = CollectiveOp::mean) const;

  /// `batch` chooses among the rows of the arrays that have any.
  void set_value(int rank, const SharedList& shareds, const ArrayList& values,
                 const Rows& batch = {}) const;
  std::vector<Array> get_value(int rank, const std::vector<Shared>& shareds) const;
  Array get_value(int rank, const Shared& shared) const;
  /// The sizes of axis 0 on each rank.
  std::vector<std::int64_t> get_lengths(const Shared& shared) const;
  /// The shapes on each rank.
  std::vector<Shape> get_shapes(const Shared& shared) const;

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace croton
