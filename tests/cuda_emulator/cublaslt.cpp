// The emulated cuBLASLt. Descriptors go to the real library too, if there is one, which judges
// attributes without a GPU; heuristics and products are our own.
#include <dlfcn.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_set>

#include "tests/cuda_emulator/cublaslt_objects.h"
#include "tests/cuda_emulator/library_call.h"
#include "tests/cuda_emulator/report.h"
#include "tests/cuda_emulator/settings.h"

#define EMULATOR_API extern "C" __attribute__((visibility("default")))

using namespace emulator;

struct cublasLtContext {
  int device = -1;
};

namespace {

std::mutex mutex;
std::unordered_set<const void*>& alive() {
  static auto& all = *new std::unordered_set<const void*>;
  return all;
}

struct RealKind {
  cublasStatus_t (*destroy)(void*) = nullptr;
  cublasStatus_t (*set)(void*, int, const void*, std::size_t) = nullptr;
  cublasStatus_t (*get)(void*, int, void*, std::size_t, std::size_t*) = nullptr;
};

struct Real {
  void* library = nullptr;
  RealKind kinds[3];
  cublasStatus_t (*create_description)(void**, cublasComputeType_t, cudaDataType_t) = nullptr;
  cublasStatus_t (*create_layout)(void**, cudaDataType, std::uint64_t, std::uint64_t,
                                  std::int64_t) = nullptr;
  cublasStatus_t (*create_preference)(void**) = nullptr;
};

constexpr const char* kPrefixes[] = {"cublasLtMatmulDesc", "cublasLtMatrixLayout",
                                     "cublasLtMatmulPreference"};

Real open_real() {
  announce("libcublasLt");
  Real r;
  if (!settings().real_cublaslt) return r;
  const std::string soname = format("libcublasLt.so.%d", EMULATED_CUBLAS_MAJOR);
  for (const char* folder : {"/lib64/", "/lib/"}) {
    r.library = dlopen((settings().toolkit + folder + soname).c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (r.library) break;
  }
  if (!r.library) return r;
  const auto get = [&](auto& function, const std::string& name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(r.library, name.c_str()));
  };
  for (int i = 0; i < 3; ++i) {
    get(r.kinds[i].destroy, std::string(kPrefixes[i]) + "Destroy");
    get(r.kinds[i].set, std::string(kPrefixes[i]) + "SetAttribute");
    get(r.kinds[i].get, std::string(kPrefixes[i]) + "GetAttribute");
  }
  get(r.create_description, "cublasLtMatmulDescCreate");
  get(r.create_layout, "cublasLtMatrixLayoutCreate");
  get(r.create_preference, "cublasLtMatmulPreferenceCreate");
  return r;
}

const Real& real() {
  static const Real all = open_real();
  return all;
}

const RealKind& real_kind(const LtObject& o) { return real().kinds[static_cast<int>(o.kind)]; }

LtObject* make(LtKind kind) {
  auto* object = new LtObject;
  object->kind = kind;
  const std::lock_guard lock(mutex);
  alive().insert(object);
  return object;
}

cublasStatus_t destroy(const void* handle, LtKind kind) {
  const LtObject* object = lt_object(handle, kind);
  if (!object) return CUBLAS_STATUS_INVALID_VALUE;
  if (object->real) real_kind(*object).destroy(object->real);
  const std::lock_guard lock(mutex);
  alive().erase(handle);
  delete object;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t set(const void* handle, LtKind kind, int attribute, const void* value,
                   std::size_t size) {
  auto* object = const_cast<LtObject*>(lt_object(handle, kind));
  if (!object || !value || size == 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (object->real) {
    if (const auto wrong = real_kind(*object).set(object->real, attribute, value, size))
      return wrong;
  }
  const auto* bytes = static_cast<const char*>(value);
  object->values[attribute].assign(bytes, bytes + size);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t get(const void* handle, LtKind kind, int attribute, void* value, std::size_t size,
                   std::size_t* written) {
  const LtObject* object = lt_object(handle, kind);
  if (!object) return CUBLAS_STATUS_INVALID_VALUE;
  if (object->real) return real_kind(*object).get(object->real, attribute, value, size, written);
  const auto at = object->values.find(attribute);
  if (at == object->values.end()) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (written) *written = at->second.size();
  if (size == 0) return CUBLAS_STATUS_SUCCESS;
  if (size < at->second.size()) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, at->second.data(), at->second.size());
  return CUBLAS_STATUS_SUCCESS;
}

// What an algorithm of ours holds: which product it is for, how aligned its operands must be, and
// how much workspace it uses.
struct Algorithm {
  std::uint64_t magic, shape, alignments, workspace;
};
constexpr std::uint64_t kMagic = 0x43726f746f6e4c74;
constexpr std::uint64_t kWorkspace = 64 * 1024;

std::uint64_t shape_of(const LtProduct& p) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const std::int64_t v :
       {p.m, p.n, p.k, std::int64_t{p.batch}, p.a.leading, p.b.leading, p.d.leading,
        std::int64_t{p.transpose_a}, std::int64_t{p.transpose_b}, std::int64_t{p.tf32},
        std::int64_t{p.epilogue}, std::int64_t{p.a.type}, std::int64_t{p.d.type}}) {
    hash = (hash ^ static_cast<std::uint64_t>(v)) * 1099511628211ull;
  }
  return hash;
}

cublasStatus_t refuse(cublasStatus_t status, const std::string& why) {
  library_report(("cublasLtMatmul: " + why).c_str());
  return status;
}

// Each operand is as aligned as the preference said when the algorithm was chosen.
cublasStatus_t check_alignment(const Algorithm& algorithm, const LtOperands& o,
                               const LtProduct& p) {
  const struct {
    const void* pointer;
    const char* name;
    cudaDataType_t type;
  } operands[] = {
      {o.a, "A", p.a.type}, {o.b, "B", p.b.type}, {o.c, "C", p.c.type}, {o.d, "D", p.d.type}};
  for (int i = 0; i < 4; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(operands[i].pointer);
    const std::uint64_t wanted = std::max<std::uint64_t>(algorithm.alignments >> (16 * i) & 0xffff,
                                                         lt_size(operands[i].type));
    if (address % wanted == 0) continue;
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED,
                  format("%s is not aligned to %d bytes, for which the algorithm was chosen",
                         operands[i].name, static_cast<int>(wanted)));
  }
  return CUBLAS_STATUS_SUCCESS;
}

void add_ranges(std::vector<LibraryRange>& ranges, const void* base, const LtMatrix& x, bool write,
                const char* role) {
  const auto size = static_cast<std::int64_t>(lt_size(x.type));
  const std::int64_t lines = x.row_order ? x.rows : x.columns;
  const std::int64_t length = x.row_order ? x.columns : x.rows;
  const bool whole = length == x.leading;
  for (std::int64_t member = 0; member < (x.step == 0 ? 1 : x.batch); ++member) {
    const char* begin = static_cast<const char*>(base) + member * x.step * size;
    if (whole) {
      ranges.push_back({begin, static_cast<std::uint64_t>(x.extent() * size), write, role});
      continue;
    }
    for (std::int64_t i = 0; i < lines; ++i) {
      ranges.push_back(
          {begin + i * x.leading * size, static_cast<std::uint64_t>(length * size), write, role});
    }
  }
}

cublasStatus_t status_of(CUresult result) {
  if (result == CUDA_SUCCESS) return CUBLAS_STATUS_SUCCESS;
  return result == CUDA_ERROR_INVALID_VALUE ? CUBLAS_STATUS_INVALID_VALUE
                                            : CUBLAS_STATUS_EXECUTION_FAILED;
}

Algorithm make_algorithm(const LtObject* preference, const LtProduct& p) {
  Algorithm algorithm{kMagic, shape_of(p), 0, 0};
  const auto limit =
      preference ? preference->get(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{0}) : 0;
  algorithm.workspace = p.k >= 64 ? std::min(limit, kWorkspace) : 0;
  for (int i = 0; i < 4; ++i) {
    const auto alignment =
        preference
            ? preference->get(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + i, std::uint32_t{256})
            : 1;
    algorithm.alignments |= std::uint64_t{std::min(alignment, 0xffffu)} << (16 * i);
  }
  return algorithm;
}

}  // namespace

const LtObject* emulator::lt_object(const void* handle, LtKind kind) {
  const std::lock_guard lock(mutex);
  if (!alive().contains(handle)) return nullptr;
  const auto* object = static_cast<const LtObject*>(handle);
  return object->kind == kind ? object : nullptr;
}

EMULATOR_API std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
EMULATOR_API const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR:
      return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return "CUBLAS_STATUS unknown";
}

EMULATOR_API const char* cublasLtGetStatusString(cublasStatus_t status) {
  return cublasLtGetStatusName(status);
}

EMULATOR_API cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  real();
  if (const int code = injected_failure("library")) return static_cast<cublasStatus_t>(code);
  const int device = current_device();
  if (device < 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasLtContext{device};
  const std::lock_guard lock(mutex);
  alive().insert(*handle);
  return CUBLAS_STATUS_SUCCESS;
}

EMULATOR_API cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  const std::lock_guard lock(mutex);
  if (!alive().erase(handle)) return CUBLAS_STATUS_INVALID_VALUE;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

EMULATOR_API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                                     cublasComputeType_t compute,
                                                     cudaDataType_t scale) {
  if (!description) return CUBLAS_STATUS_INVALID_VALUE;
  void* judged = nullptr;
  if (real().library) {
    if (const auto wrong = real().create_description(&judged, compute, scale)) return wrong;
  }
  LtObject* object = make(LtKind::description);
  object->real = judged;
  object->set(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, compute);
  object->set(CUBLASLT_MATMUL_DESC_SCALE_TYPE, scale);
  *description = reinterpret_cast<cublasLtMatmulDesc_t>(object);
  return CUBLAS_STATUS_SUCCESS;
}

EMULATOR_API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  return destroy(description, LtKind::description);
}

EMULATOR_API cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                                           cublasLtMatmulDescAttributes_t attribute,
                                                           const void* value, std::size_t size) {
  return set(description, LtKind::description, attribute, value, size);
}

EMULATOR_API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout,
                                                       cudaDataType type, std::uint64_t rows,
                                                       std::uint64_t columns,
                                                       std::int64_t leading) {
  if (!layout) return CUBLAS_STATUS_INVALID_VALUE;
  void* judged = nullptr;
  if (real().library) {
    if (const auto wrong = real().create_layout(&judged, type, rows, columns, leading))
      return wrong;
  }
  LtObject* object = make(LtKind::layout);
  object->real = judged;
  object->set(CUBLASLT_MATRIX_LAYOUT_TYPE, type);
  object->set(CUBLASLT_MATRIX_LAYOUT_ROWS, rows);
  object->set(CUBLASLT_MATRIX_LAYOUT_COLS, columns);
  object->set(CUBLASLT_MATRIX_LAYOUT_LD, leading);
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(object);
  return CUBLAS_STATUS_SUCCESS;
}

EMULATOR_API cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy(layout, LtKind::layout);
}

EMULATOR_API cublasStatus_t cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void* value,
    std::size_t size) {
  return set(layout, LtKind::layout, attribute, value, size);
}

EMULATOR_API cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  if (!preference) return CUBLAS_STATUS_INVALID_VALUE;
  void* judged = nullptr;
  if (real().library) {
    if (const auto wrong = real().create_preference(&judged)) return wrong;
  }
  LtObject* object = make(LtKind::preference);
  object->real = judged;
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(object);
  return CUBLAS_STATUS_SUCCESS;
}

EMULATOR_API cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy(preference, LtKind::preference);
}

EMULATOR_API cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
    const void* value, std::size_t size) {
  return set(preference, LtKind::preference, attribute, value, size);
}

EMULATOR_API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t results[],
    int* count) {
  const LtObject* o = lt_object(description, LtKind::description);
  const LtObject* chosen = lt_object(preference, LtKind::preference);
  if (!handle || !o || !chosen || wanted < 1 || !results || !count)
    return CUBLAS_STATUS_INVALID_VALUE;
  *count = 0;
  if (const int code = injected_failure("library")) return static_cast<cublasStatus_t>(code);
  LtProduct p;
  const auto layout = [](const void* handle_of) { return lt_object(handle_of, LtKind::layout); };
  if (const auto wrong = read_product(*o, layout(a), layout(b), layout(c), layout(d), p))
    return wrong;
  const Algorithm algorithm = make_algorithm(chosen, p);
  results[0] = {};
  std::memcpy(results[0].algo.data, &algorithm, sizeof algorithm);
  results[0].workspaceSize = algorithm.workspace;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

EMULATOR_API cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void* alpha, const void* a,
    cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
    const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
    cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* chosen, void* workspace,
    std::size_t workspace_bytes, cudaStream_t stream) {
  const LtObject* o = lt_object(description, LtKind::description);
  if (!handle || !o || !alpha || !beta || !a || !b || !c || !d) return CUBLAS_STATUS_INVALID_VALUE;
  if (const int code = injected_failure("library")) return static_cast<cublasStatus_t>(code);
  LtProduct p;
  const auto layout = [](const void* handle_of) { return lt_object(handle_of, LtKind::layout); };
  if (const auto wrong = read_product(*o, layout(a_layout), layout(b_layout), layout(c_layout),
                                      layout(d_layout), p)) {
    return wrong;
  }
  if (device_of_stream(stream) != handle->device) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "the stream is of another device than the handle");
  }
  Algorithm algorithm = make_algorithm(nullptr, p);
  if (chosen) std::memcpy(&algorithm, chosen->data, sizeof algorithm);
  if (algorithm.magic != kMagic || algorithm.shape != shape_of(p)) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "the algorithm was chosen for another product");
  }
  if (algorithm.workspace > workspace_bytes || (algorithm.workspace && !workspace)) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "less workspace than the algorithm needs");
  }
  LtOperands operands{
      a, b, c, d, *static_cast<const float*>(alpha), *static_cast<const float*>(beta)};
  if (p.wide) {
    operands.alpha = *static_cast<const double*>(alpha);
    operands.beta = *static_cast<const double*>(beta);
  }
  if (const auto wrong = check_alignment(algorithm, operands, p)) return wrong;
  if ((p.epilogue & CUBLASLT_EPILOGUE_BIAS) && !p.bias) return CUBLAS_STATUS_INVALID_VALUE;
  std::vector<LibraryRange> ranges;
  add_ranges(ranges, a, p.a, false, "matrix A");
  add_ranges(ranges, b, p.b, false, "matrix B");
  if (operands.beta != 0) add_ranges(ranges, c, p.c, false, "matrix C");
  add_ranges(ranges, d, p.d, true, "matrix D");
  if (p.bias) {
    const auto elements = static_cast<std::uint64_t>(p.m + p.bias_step * (p.batch - 1));
    ranges.push_back({p.bias, elements * lt_size(p.bias_type), false, "bias"});
  }
  if (algorithm.workspace) ranges.push_back({workspace, algorithm.workspace, true, "workspace"});
  const auto used = algorithm.workspace;
  return status_of(library_call(stream, "cublasLtMatmul", ranges, [p, operands, workspace, used] {
    std::memset(workspace, 0xff, used);
    multiply(p, operands);
  }));
}
