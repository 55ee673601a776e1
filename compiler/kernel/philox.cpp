#include <utility>

#include "compiler/kernel/math.h"

namespace croton::kernel {
namespace {

constexpr int kRounds = 10;

// The lower and the upper half of a uint64.
std::pair<Expr, Expr> halves(Expr x) {
  Builder& b = *x.builder;
  return {b.cast(x, DType::uint32), b.cast(x >> 32, DType::uint32)};
}

}  // namespace

PhiloxWords philox(Expr key, Expr stream, Expr counter) {
  Builder& b = *key.builder;
  const Expr multiplier0 = b.integer(DType::uint32, 0xd2511f53);
  const Expr multiplier1 = b.integer(DType::uint32, 0xcd9e8d57);
  auto [key0, key1] = halves(key);
  auto [c0, c1] = halves(counter);
  auto [c2, c3] = halves(stream);
  for (int round = 0; round < kRounds; ++round) {
    const Expr high0 = b.binary(Binary::mul_hi, c0, multiplier0);
    const Expr high1 = b.binary(Binary::mul_hi, c2, multiplier1);
    const Expr low0 = c0 * multiplier0;
    const Expr low1 = c2 * multiplier1;
    c0 = high1 ^ c1 ^ key0;
    c1 = low1;
    c2 = high0 ^ c3 ^ key1;
    c3 = low0;
    key0 = key0 + 0x9e3779b9u;  // the golden ratio and sqrt(3) - 1, as in the paper
    key1 = key1 + 0xbb67ae85u;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace croton::kernel
