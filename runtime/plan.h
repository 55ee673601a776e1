// A plan is what a compiled function is: a list of steps over buffer slots, as pure data. It names
// contexts and kernels; binding it to devices and running it is the executor's work.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "croton/array.h"
#include "croton/dtype.h"
#include "croton/shape.h"
#include "runtime/attrs.h"
#include "runtime/dim.h"

namespace croton {

struct SharedState;

enum class SlotKind : std::uint8_t {
  input,      ///< argument `index` of the call
  shared,     ///< value of shared variable `index` at the start of the call, on the slot's context
  constant,   ///< Plan::constants[index]
  temporary,  ///< lives inside the call, in the arena of its context
  result,     ///< an output or an update: a block of its own that outlives the call
  view,       ///< the memory of slot `index` under another shape (same number of elements)
};

/// All slots are C-contiguous.
struct Slot {
  SlotKind kind = SlotKind::temporary;
  std::int32_t index = 0;
  DType dtype = DType::float32;
  std::vector<DimRef> shape;
  std::int32_t context = 0;  ///< index into Plan::contexts
};

struct Step {
  enum class Kind : std::uint8_t {
    launch,   ///< run a kernel over a grid of blocks
    library,  ///< call a library function of the context's backend
    copy,     ///< slots[0] <- slots[1], between contexts; runs on the context of the source
  };
  Kind kind = Kind::launch;
  std::int32_t context = 0;
  std::vector<std::int32_t> slots;  ///< launch: the kernel's buffers; library: outputs, then inputs
  std::int32_t outputs = 1;         ///< how many of the slots, in front, are written
  std::vector<std::int32_t> after;  ///< earlier steps of other contexts that must have ended

  // launch
  std::int32_t kernel = -1;   ///< index into Plan::kernels
  std::vector<DimRef> sizes;  ///< the kernel's size arguments
  DimRef blocks = 0;          ///< size of the grid, in blocks of the kernel
  DimRef threads = -1;        ///< GPU: threads of a block; -1: PlanKernel::threads
  DimRef packed = -1;         ///< GPU: blocks of the kernel in one block of the launch; -1: 1
  DimRef shared_bytes = -1;   ///< GPU: dynamic shared memory of a block of the launch; -1: 0
  DimRef span = -1;  ///< GPU: elements that the kernel counts through; -1: those of buffers
  DimRef work = 0;   ///< estimated cost of the launch in scalar operations; decides threads
  std::vector<std::int32_t> shares;  ///< for each output: the input position in `slots` whose
                                     ///< memory it may take over when that input dies here, or -1

  /// Zero where non-temporal stores are possible: each row that the kernel writes starts at a
  /// multiple of 64 bytes.
  DimRef misalignment = 0;

  // library
  std::string name;  ///< "gemm" ...
  Attrs attrs;

  std::string label;  ///< in the user's words, for messages, printing and profiles
  /// What this launch says when check k of its kernel fails, instead of the kernel's own message,
  /// which is the same wherever the kernel is used.
  std::vector<std::string> checks;
};

/// What stands before the text of a GPU module in its wide form, where indices have 64 bits.
inline constexpr std::string_view kWideForm = "#define CROTON_WIDE\n";

/// Sizes, grids, spans and elements of a buffer from here on need the wide form.
inline constexpr std::int64_t kWideFrom = (std::int64_t{1} << 30) - (std::int64_t{1} << 21);

/// Program text that becomes one module.
struct PlanModule {
  std::int32_t context = 0;  ///< for whose device
  std::string text;
  std::vector<std::string> kernels;
};

struct PlanKernel {
  std::string name;
  std::int32_t module = 0;
  /// The same kernel with non-temporal stores, compiled when first wanted; -1: none. Wanted when
  /// the launch writes more than the last-level cache and nobody in the plan reads it again.
  std::int32_t streaming_module = -1;
  std::vector<std::string> checks;  ///< messages by check id; {value} and {bound} are filled in
  std::int32_t threads = 256;       ///< GPU: of a block
  bool packed = false;              ///< GPU: takes the number of blocks, behind its sizes
  bool rare = false;                ///< its module is compiled when a call first launches it
  bool indexed = false;  ///< GPU: computes indices in 32 bits, or 64 in the text's wide form
};

/// Two sizes that must be equal in each call.
struct PlanCheck {
  DimRef a = 0;
  DimRef b = 0;
  std::string message;      ///< {a} and {b} are filled in
  std::string line = {};    ///< "file.cpp:12", where the user asked for what needs it
  bool broadcasts = false;  ///< one that is 1 would be stretched if that were known
};

struct PlanInput {
  std::string name;  ///< as the user wrote it; may be empty
  DType dtype = DType::float32;
  Shape shape;         ///< static sizes, kAnyDim where any will do
  bool taken = false;  ///< an earlier part of the function gives it, not the caller
};

/// An input that is wanted in a second memory.
struct SecondInput {
  std::int32_t input = 0;
  std::int32_t context = 0;
};

/// After the call a shared variable has its new value where updates of the plan put it, and nowhere
/// else.
struct PlanUpdate {
  std::int32_t shared = 0;
  std::int32_t slot = 0;
  std::int32_t context = -1;  ///< index into Plan::contexts; -1: its home
};

/// An argument of a plan that an earlier one of the same call gives.
struct Taken {
  std::int32_t part = 0;
  std::int32_t output = 0;
  bool size = false;  ///< an integer scalar, read on the host
};

struct Plan {
  std::string name;
  std::vector<std::string> contexts;
  std::vector<PlanInput> inputs;
  std::vector<SecondInput> seconds;  ///< arguments behind the inputs; known once it is bound
  std::vector<std::shared_ptr<SharedState>> shareds;
  std::vector<Array> constants;
  std::vector<Slot> slots;
  std::vector<PlanModule> modules;
  std::vector<PlanKernel> kernels;
  std::vector<Step> steps;
  std::vector<std::int32_t> outputs;  ///< slots
  std::vector<PlanUpdate> updates;
  std::vector<PlanCheck> checks;
  DimTable dims;
};

/// One line a slot and a step, for people and tests.
std::string to_text(const Plan& plan);

}  // namespace croton
