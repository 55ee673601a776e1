// Which products cuBLASLt takes.
#include <cstdint>
#include <cstdlib>

#include "tests/cuda_emulator/cublaslt_objects.h"

namespace emulator {
namespace {

cublasStatus_t read_layout(const LtObject& o, LtMatrix& matrix) {
  matrix.type = o.get(CUBLASLT_MATRIX_LAYOUT_TYPE, CUDA_R_32F);
  const auto order = o.get(CUBLASLT_MATRIX_LAYOUT_ORDER, std::int32_t{CUBLASLT_ORDER_COL});
  if (order != CUBLASLT_ORDER_COL && order != CUBLASLT_ORDER_ROW)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  matrix.row_order = order == CUBLASLT_ORDER_ROW;
  matrix.rows = static_cast<std::int64_t>(o.get(CUBLASLT_MATRIX_LAYOUT_ROWS, std::uint64_t{0}));
  matrix.columns = static_cast<std::int64_t>(o.get(CUBLASLT_MATRIX_LAYOUT_COLS, std::uint64_t{0}));
  matrix.leading = o.get(CUBLASLT_MATRIX_LAYOUT_LD, std::int64_t{0});
  matrix.batch = o.get(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, std::int32_t{1});
  matrix.step = o.get(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, std::int64_t{0});
  if (matrix.rows <= 0 || matrix.columns <= 0 || matrix.batch <= 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  const std::int64_t line = matrix.row_order ? matrix.columns : matrix.rows;
  return matrix.leading < line ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

// The table of types in cuBLASLt's documentation, as far as it is emulated.
bool takes_types(cublasComputeType_t compute, cudaDataType_t scale, const LtProduct& p) {
  const cudaDataType_t in = p.a.type, out = p.d.type;
  if (p.b.type != in || p.c.type != out) return false;
  switch (compute) {
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return scale == CUDA_R_64F && in == CUDA_R_64F && out == CUDA_R_64F;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      if (scale != CUDA_R_32F) return false;
      if (in == CUDA_R_32F) return out == CUDA_R_32F;
      return (in == CUDA_R_16F || in == CUDA_R_16BF) && (out == in || out == CUDA_R_32F);
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return scale == CUDA_R_32F && in == CUDA_R_32F && out == CUDA_R_32F;
    default:
      return false;
  }
}

bool takes_epilogue(int epilogue) {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
      return true;
    default:
      return false;
  }
}

bool shapes_agree(const LtProduct& p) {
  const auto op = [](const LtMatrix& x, bool transpose, std::int64_t& rows, std::int64_t& columns) {
    rows = transpose ? x.columns : x.rows;
    columns = transpose ? x.rows : x.columns;
  };
  std::int64_t m = 0, k = 0, k_of_b = 0, n = 0;
  op(p.a, p.transpose_a, m, k);
  op(p.b, p.transpose_b, k_of_b, n);
  const auto is_result = [&](const LtMatrix& x) { return x.rows == m && x.columns == n; };
  const int batch = p.d.batch;
  return k == k_of_b && is_result(p.c) && is_result(p.d) && p.a.batch == batch &&
         p.b.batch == batch && p.c.batch == batch;
}

}  // namespace

cublasStatus_t read_product(const LtObject& o, const LtObject* a, const LtObject* b,
                            const LtObject* c, const LtObject* d, LtProduct& p) {
  if (!a || !b || !c || !d) return CUBLAS_STATUS_INVALID_VALUE;
  for (const auto& [object, matrix] : {std::pair(a, &p.a), {b, &p.b}, {c, &p.c}, {d, &p.d}}) {
    if (const cublasStatus_t wrong = read_layout(*object, *matrix)) return wrong;
  }
  const auto operation = [&](int attribute) { return o.get(attribute, std::int32_t{CUBLAS_OP_N}); };
  p.transpose_a = operation(CUBLASLT_MATMUL_DESC_TRANSA) != CUBLAS_OP_N;
  p.transpose_b = operation(CUBLASLT_MATMUL_DESC_TRANSB) != CUBLAS_OP_N;
  if (operation(CUBLASLT_MATMUL_DESC_TRANSC) != CUBLAS_OP_N) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!shapes_agree(p)) return CUBLAS_STATUS_INVALID_VALUE;
  const auto compute = o.get(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, CUBLAS_COMPUTE_32F);
  const auto scale = o.get(CUBLASLT_MATMUL_DESC_SCALE_TYPE, CUDA_R_32F);
  if (!takes_types(compute, scale, p)) return CUBLAS_STATUS_NOT_SUPPORTED;
  p.epilogue = o.get(CUBLASLT_MATMUL_DESC_EPILOGUE, std::int32_t{CUBLASLT_EPILOGUE_DEFAULT});
  if (!takes_epilogue(p.epilogue)) return CUBLAS_STATUS_NOT_SUPPORTED;
  p.tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  p.wide = scale == CUDA_R_64F;
  p.batch = p.d.batch;
  p.m = p.d.rows, p.n = p.d.columns;
  p.k = p.transpose_a ? p.a.rows : p.a.columns;
  if (p.epilogue & CUBLASLT_EPILOGUE_BIAS) {
    p.bias = o.get(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(nullptr));
    p.bias_step = o.get(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, std::int64_t{0});
    const auto chosen = o.get(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, std::int32_t{-1});
    p.bias_type = chosen < 0 ? p.d.type : static_cast<cudaDataType_t>(chosen);
    if (p.bias_type != p.d.type) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const bool overlapping = p.batch > 1 && std::abs(p.d.step) < p.d.extent();
  return overlapping ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

}  // namespace emulator
