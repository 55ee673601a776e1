// The library op behind matrix products: epilogue(alpha * op(A) @ op(B) + beta * C). The operands
// are A and B, then C when the attribute "beta" is there and not 0, then the bias (a vector) when
// "epilogue" is "bias" or "bias_relu"; rewrites make those.
#include <fmt/format.h>

#include <algorithm>

#include "croton/error.h"
#include "ops/build.h"
#include "ops/reference.h"
#include "ops/registry.h"

namespace croton {
namespace {

bool flag(const Attrs& attrs, std::string_view name) { return attrs.integer_or(name, 0) != 0; }

/// What comes after the product.
struct Extras {
  double alpha;
  double beta;
  bool bias;
  bool relu;

  explicit Extras(const Attrs& attrs)
      : alpha(attrs.real_or("alpha", 1)),
        beta(attrs.real_or("beta", 0)),
        bias(attrs.text_or("epilogue", "").starts_with("bias")),
        relu(attrs.text_or("epilogue", "").ends_with("relu")) {}
};

/// C has the result's shape, the bias that of a row.
void infer_extras(Infer& infer, const Extras& extras, const std::vector<Dim>& shape) {
  int next = 2;
  if (extras.beta != 0) {
    const int c = next++;
    if (infer.ndim(c) != static_cast<int>(shape.size())) infer.fail("the addend does not fit");
    for (std::size_t k = 0; k < shape.size(); ++k) {
      infer.equal(infer.shape(c)[k], shape[k], "the addend does not fit");
    }
  }
  if (!extras.bias) return;
  if (infer.ndim(next) != 1) infer.fail("the bias must be a vector");
  infer.equal(infer.shape(next)[0], shape.back(), "the bias does not fit");
}

void infer_gemm(Infer& infer) {
  const Extras extras(infer.attrs());
  infer.expect_inputs(2 + (extras.beta != 0) + extras.bias);
  const DType dtype = infer.dtype(0);
  for (int k = 1; k < infer.inputs(); ++k) {
    if (infer.dtype(k) == dtype) continue;
    infer.fail(fmt::format("operands of one dtype expected: got {} and {}", name_of(dtype),
                           name_of(infer.dtype(k))));
  }
  if (is_bool(dtype)) infer.fail("bools have no matrix product; cast them");
  if (infer.ndim(0) < 2 || infer.ndim(1) < 2) infer.fail("two matrices are expected");
  std::vector<Dim> a = infer.shape(0);
  std::vector<Dim> b = infer.shape(1);
  if (flag(infer.attrs(), "transpose_a")) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (flag(infer.attrs(), "transpose_b")) std::swap(b[b.size() - 1], b[b.size() - 2]);
  infer.equal(a.back(), b[b.size() - 2], "the inner sizes clash");
  const Dim rows = a[a.size() - 2];
  const Dim columns = b.back();
  a.resize(a.size() - 2);
  b.resize(b.size() - 2);
  std::vector<Dim> shape(std::max(a.size(), b.size()), Dim(1));
  for (const std::vector<Dim>* batch : {&a, &b}) {
    for (std::size_t k = 0; k < batch->size(); ++k) {
      Dim& size = shape[shape.size() - batch->size() + k];
      const Dim own = (*batch)[k];
      if (own.is(1)) continue;
      size = size.is(1) ? own
                        : infer.equal(size, own, "sizes in front of the matrices clash",
                                      SizeRule::broadcast);
    }
  }
  shape.push_back(rows);
  shape.push_back(columns);
  infer_extras(infer, extras, shape);
  infer.out(dtype, std::move(shape));
}

/// C = alpha op(A) op(B): dA is g op(B)^T or its transpose, dB op(A)^T g or its transpose.
std::vector<Variable> gemm_grad(const GradArgs& args) {
  const Loc& loc = args.node.loc;
  const Attrs& attrs = args.node.attrs();
  const Extras extras(attrs);
  internal_check(extras.beta == 0 && !extras.bias && !extras.relu,
                 "a product with an epilogue is differentiated");
  const bool ta = flag(attrs, "transpose_a");
  const bool tb = flag(attrs, "transpose_b");
  const auto product = [&](const Variable& x, const Variable& y, bool tx, bool ty) {
    Attrs result{{"transpose_a", std::int64_t{tx}}, {"transpose_b", std::int64_t{ty}}};
    if (attrs.has("alpha")) result.set("alpha", attrs.real("alpha"));
    return apply("gemm", {x, y}, result, loc);
  };
  const Variable& a = args.in(0);
  const Variable& b = args.in(1);
  const Variable& g = args.g();
  std::vector<Variable> result(2);
  if (args.wants(0)) {
    result[0] = sum_like(ta ? product(b, g, tb, true) : product(g, b, false, !tb), a, loc);
  }
  if (args.wants(1)) {
    result[1] = sum_like(tb ? product(g, a, true, ta) : product(a, g, !ta, false), b, loc);
  }
  return result;
}

/// One operand of the reference: its numbers, and where the matrix of a batch position begins.
template <class T>
struct Matrices {
  std::vector<T> values;
  Shape shape;
  bool transposed;

  T at(const Shape& batch, std::int64_t row, std::int64_t column) const {
    const std::size_t rank = shape.size();
    Shape position;
    for (std::size_t k = 0; k + 2 < rank; ++k) {
      position.push_back(shape[k] == 1 ? 0 : batch[batch.size() - (rank - 2) + k]);
    }
    position.push_back(transposed ? column : row);
    position.push_back(transposed ? row : column);
    return values[static_cast<std::size_t>(reference::flat_index(shape, position))];
  }
  std::int64_t rows() const { return shape[shape.size() - (transposed ? 1 : 2)]; }
  std::int64_t columns() const { return shape[shape.size() - (transposed ? 2 : 1)]; }
};

std::vector<Array> gemm_reference(const Node& node, std::span<const Array> inputs) {
  return {reference::with_class(inputs[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    const Matrices<T> a{reference::values<T>(inputs[0]), inputs[0].shape(),
                        flag(node.attrs(), "transpose_a")};
    const Matrices<T> b{reference::values<T>(inputs[1]), inputs[1].shape(),
                        flag(node.attrs(), "transpose_b")};
    const Extras extras(node.attrs());
    const std::vector<T> addend =
        extras.beta != 0 ? reference::values<T>(inputs[2]) : std::vector<T>();
    const std::vector<T> bias =
        extras.bias ? reference::values<T>(inputs.back()) : std::vector<T>();
    Shape batch;
    const std::size_t rank = std::max(a.shape.size(), b.shape.size());
    for (std::size_t k = 0; k + 2 < rank; ++k) {
      std::int64_t size = 1;
      for (const Shape* shape : {&a.shape, &b.shape}) {
        if (k + shape->size() < rank) continue;
        const std::int64_t own = (*shape)[k + shape->size() - rank];
        if (own != 1) size = own;
      }
      batch.push_back(size);
    }
    Shape shape = batch;
    shape.push_back(a.rows());
    shape.push_back(b.columns());
    Array result = Array::zeros(shape, dtype_of<T>);
    T* to = result.template mutable_data<T>();
    reference::Odometer position(shape);
    for (std::int64_t i = 0; i < result.size(); ++i, position.next()) {
      const std::int64_t row = position.at()[rank - 2];
      const std::int64_t column = position.at()[rank - 1];
      Shape matrix = position.at();
      matrix.pop_back();
      matrix.pop_back();
      T sum{};
      for (std::int64_t k = 0; k < a.columns(); ++k) {
        sum = static_cast<T>(sum + a.at(matrix, row, k) * b.at(matrix, k, column));
      }
      if (extras.alpha != 1) sum = static_cast<T>(static_cast<double>(sum) * extras.alpha);
      if (!addend.empty()) {
        sum =
            static_cast<T>(sum + static_cast<T>(extras.beta) * addend[static_cast<std::size_t>(i)]);
      }
      if (!bias.empty()) sum = static_cast<T>(sum + bias[static_cast<std::size_t>(column)]);
      to[i] = extras.relu && sum < T() ? T() : sum;
    }
    return result.astype(inputs[0].dtype());
  })};
}

}  // namespace

void register_gemm_ops(OpRegistry& registry) {
  const auto example = [](Shape a, Shape b, std::int64_t ta, std::int64_t tb) {
    return Example{{std::move(a), std::move(b)},
                   {{-2, 2}, {-2, 2}},
                   {{"transpose_a", ta}, {"transpose_b", tb}}};
  };
  registry.add(
      {.name = "gemm",
       .doc =
           "Products of the matrices in the last two axes: alpha op(a) op(b), where op transposes "
           "or does not. The axes in front are equal or known to be 1.",
       .form = OpForm::library,
       .infer = infer_gemm,
       .grad = gemm_grad,
       .reference = gemm_reference,
       .examples = {example({3, 4}, {4, 5}, 0, 0), example({4, 3}, {4, 5}, 1, 0),
                    example({3, 4}, {5, 4}, 0, 1), example({4, 3}, {5, 4}, 1, 1),
                    example({2, 3, 4}, {2, 4, 5}, 0, 0), example({2, 3, 4}, {1, 4, 5}, 0, 0)}});
}

}  // namespace croton
