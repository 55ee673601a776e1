#include "croton/array.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <limits>

#include "croton/error.h"
#include "runtime/array_access.h"

using namespace croton;
using Catch::Contains;
using I = std::vector<std::int64_t>;
using F = std::vector<float>;

namespace {

/// A device whose memory the host may not touch: addresses are shifted, so that reading one in
/// place would crash or give nonsense.
class FarHome : public ArrayHome {
 public:
  static constexpr std::ptrdiff_t kShift = std::ptrdiff_t{1} << 46;
  int copies = 0;
  std::size_t bytes = 0;

  std::string_view name() const override { return "far"; }
  bool host_accessible() const override { return false; }
  void wait() override {}
  void copy_to_host(void* target, const void* source, std::size_t n) override {
    ++copies;
    bytes += n;
    std::memcpy(target, static_cast<const std::byte*>(source) - kShift, n);
  }

  /// `a` on this device.
  Array place(const Array& a) {
    const ArrayImpl& i = *ArrayAccess::impl(a);
    return ArrayAccess::wrap_strided(i.dtype, i.shape, i.strides, i.block, i.data + kShift, this);
  }
};

class NearHome : public ArrayHome {
 public:
  int waits = 0;
  std::string_view name() const override { return "near"; }
  bool host_accessible() const override { return true; }
  void wait() override { ++waits; }
  void copy_to_host(void*, const void*, std::size_t) override { FAIL("reads in place"); }
};

}  // namespace

TEST_CASE("copies share until one is written to", "[array]") {
  Array a = {1, 2, 3};
  Array b = a;
  CHECK(a.raw_data() == b.raw_data());
  b.mutable_data<std::int64_t>()[0] = 9;
  CHECK(a.to_vector<std::int64_t>() == I{1, 2, 3});
  CHECK(b.to_vector<std::int64_t>() == I{9, 2, 3});
  const void* before = b.raw_data();
  b.mutable_data<std::int64_t>()[1] = 8;
  CHECK(b.raw_data() == before);  // nobody shares now
  const Array view = b.slice(0, 1, {});
  b.mutable_data<std::int64_t>()[1] = 7;
  CHECK(view.to_vector<std::int64_t>() == I{8, 3});  // views share as well
}

TEST_CASE("writing to borrowed memory", "[array]") {
  float own[2] = {1, 2};
  Array a = Array::borrow(own, {2});
  a.mutable_data<float>()[0] = 5;
  CHECK(own[0] == 5);
  Array b = a;
  b.mutable_data<float>()[0] = 6;
  CHECK(own[0] == 5);
  const float fixed[2] = {1, 2};
  Array c = Array::borrow(fixed, {2});
  CHECK(c.raw_data() == fixed);
  c.mutable_data<float>()[0] = 5;
  CHECK(fixed[0] == 1);
  CHECK(c.at<float>({0}) == 5);
}

TEST_CASE("an Array without a value says so", "[array]") {
  Array a;
  CHECK_FALSE(a.has_value());
  CHECK_THROWS_WITH(a.shape(), Contains("holds no value"));
  CHECK_THROWS_AS(a.to_vector<float>(), UserError);
  CHECK_THROWS_AS(a.copy(), UserError);
  Array b = {1};
  a = std::move(b);
  CHECK(a.has_value());
  const Array& same = a;
  a = same;
  CHECK(a.size() == 1);
}

TEST_CASE("elements want the exact dtype and say both", "[array]") {
  Array a = {1.5f, 2.5f};
  CHECK(a.data<float>()[1] == 2.5f);
  CHECK_THROWS_WITH(a.data<double>(),
                    Contains("float64") && Contains("float32") && Contains("astype"));
  CHECK_THROWS_AS(a.mutable_data<int>(), UserError);
  CHECK_THROWS_AS(a.to_vector<int>(), UserError);
  CHECK_THROWS_AS(a.at<double>({0}), UserError);
  CHECK_THROWS_AS(a.item<float>(), UserError);
  CHECK_THROWS_WITH(a.item<float>(), Contains("(2,)"));
  CHECK(Array({{3}}).item<std::int64_t>() == 3);
  CHECK_THROWS_WITH(a.transpose().slice(0, {}, {}, -1).data<float>(), Contains("contiguous()"));
}

TEST_CASE("at takes negative indices and checks bounds", "[array]") {
  const Array a = {{1, 2, 3}, {4, 5, 6}};
  CHECK(a.at<std::int64_t>({1, 2}) == 6);
  CHECK(a.at<std::int64_t>({-2, -1}) == 3);
  CHECK_THROWS_WITH(a.at<std::int64_t>({0, 3}),
                    Contains("axis 1") && Contains("got 3") && Contains("-3 to 2"));
  CHECK_THROWS_AS(a.at<std::int64_t>({-3, 0}), UserError);
  CHECK_THROWS_WITH(a.at<std::int64_t>({0}), Contains("got 1, expected 2"));
  CHECK_THROWS_AS(Array::zeros({0}).at<float>({0}), UserError);
}

TEST_CASE("views", "[array]") {
  const Array a = Array::arange(24).reshape({2, 3, 4});
  CHECK(a.is_contiguous());
  CHECK(std::vector<std::int64_t>(a.strides().begin(), a.strides().end()) == I{12, 4, 1});
  CHECK(a.nbytes() == 192);
  const Array t = a.transpose();
  CHECK(t.shape() == Shape({4, 3, 2}));
  CHECK_FALSE(t.is_contiguous());
  CHECK(t.raw_data() == a.raw_data());
  CHECK(t.at<std::int64_t>({3, 2, 1}) == 23);
  CHECK(a.transpose({1, 0, -1}).at<std::int64_t>({2, 1, 3}) == 23);
  CHECK(a.transpose({1, 0, 2}).to_vector<std::int64_t>() ==
        I{0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 16, 17, 18, 19, 8, 9, 10, 11, 20, 21, 22, 23});
  CHECK(a[1][-1].to_vector<std::int64_t>() == I{20, 21, 22, 23});
  CHECK(array_equal(t.contiguous().transpose(), a));
  CHECK(t.contiguous().is_contiguous());
  CHECK(a.copy().raw_data() != a.raw_data());
  CHECK(Array::zeros({3, 1}).transpose().is_contiguous());
  CHECK(Array::zeros({0, 3}).transpose().is_contiguous());
  CHECK(Array(1).transpose().ndim() == 0);
  CHECK_THROWS_AS(a.transpose({0, 1}), UserError);
  CHECK_THROWS_WITH(a.transpose({0, 1, 1}), Contains("twice"));
  CHECK_THROWS_WITH(a.transpose({0, 1, 3}), Contains("got 3"));
  CHECK_THROWS_AS(a[2], UserError);
  CHECK_THROWS_AS(Array(1)[0], UserError);
}

TEST_CASE("slices mean what Python's mean", "[array]") {
  const Array a = Array::arange(10);
  using Bound = std::optional<std::int64_t>;
  const auto s = [&](Bound start, Bound stop, std::int64_t step) {
    return a.slice(0, start, stop, step).to_vector<std::int64_t>();
  };
  const std::nullopt_t none = std::nullopt;
  CHECK(s(2, 5, 1) == I{2, 3, 4});
  CHECK(s(none, none, 3) == I{0, 3, 6, 9});
  CHECK(s(none, none, -3) == I{9, 6, 3, 0});
  CHECK(s(-3, none, 1) == I{7, 8, 9});
  CHECK(s(100, -100, -4) == I{9, 5, 1});
  CHECK(s(none, -8, 1) == I{0, 1});
  CHECK(s(5, 2, 1).empty());
  CHECK(s(2, 5, -1).empty());
  CHECK(s(20, 30, 1).empty());
  CHECK(s(-1, -100, -9) == I{9, 0});
  CHECK(s(none, none, std::numeric_limits<std::int64_t>::min()) == I{9});
  CHECK(s(none, none, std::numeric_limits<std::int64_t>::max()) == I{0});
  CHECK_THROWS_WITH(a.slice(0, 0, 1, 0), Contains("step"));
  CHECK_THROWS_WITH(a.slice(1, 0, 1), Contains("axis"));
  CHECK(Array::zeros({2, 0}).slice(1, {}, {}, -1).size() == 0);
  CHECK(Array::arange(12).reshape({3, 4}).slice(-1, 1, {}, 2).to_vector<std::int64_t>() ==
        I{1, 3, 5, 7, 9, 11});
}

TEST_CASE("reshape and broadcast_to", "[array]") {
  const Array a = Array::arange(6);
  CHECK(a.reshape({2, 3}).raw_data() == a.raw_data());
  CHECK(a.reshape({-1, 2}).shape() == Shape({3, 2}));
  CHECK(a.reshape({2, 3}).transpose().reshape({-1}).to_vector<std::int64_t>() ==
        I{0, 3, 1, 4, 2, 5});
  CHECK(Array(3).reshape({1, 1}).shape() == Shape({1, 1}));
  CHECK(Array::zeros({0, 4}).reshape({-1, 2}).shape() == Shape({0, 2}));
  CHECK_THROWS_WITH(a.reshape({4}), Contains("6 elements") && Contains("(4,)"));
  CHECK_THROWS_AS(a.reshape({-1, 4}), UserError);
  CHECK_THROWS_AS(a.reshape({-1, -1}), UserError);
  CHECK_THROWS_AS(a.reshape({-2, -3}), UserError);
  CHECK_THROWS_AS(Array::zeros({0}).reshape({-1, 0}), UserError);
  const Array b = Array({{1}, {2}}).broadcast_to({2, 2, 3});
  CHECK(b.to_vector<std::int64_t>() == I{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  CHECK_THROWS_WITH(a.broadcast_to({2, 5}), Contains("(6,)") && Contains("(2, 5)"));
  CHECK_THROWS_AS(a.broadcast_to({}), UserError);
  Array c = Array(1).broadcast_to({3});
  c.mutable_data<std::int64_t>()[0] = 5;
  CHECK(c.to_vector<std::int64_t>() == I{5, 1, 1});
}

TEST_CASE("astype converts", "[array]") {
  using B = std::vector<std::int8_t>;
  const float inf = std::numeric_limits<float>::infinity();
  const Array a = {1.9, -1.9, 300.0, -300.0};
  CHECK(a.astype(DType::int8).to_vector<std::int8_t>() == B{1, -1, 127, -128});
  CHECK(Array({inf, -inf, inf - inf}).astype(DType::int64).to_vector<std::int64_t>() ==
        I{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(), 0});
  CHECK(Array({-1.0, 1e30}).astype(DType::uint64).to_vector<std::uint64_t>() ==
        std::vector<std::uint64_t>{0, ~std::uint64_t{0}});
  CHECK(Array({300, -1}).astype(DType::int8).to_vector<std::int8_t>() == B{44, -1});
  CHECK(Array({300, -1}).astype(DType::uint8).to_vector<std::uint8_t>() ==
        std::vector<std::uint8_t>{44, 255});
  CHECK(Array({0.0, -0.0, 0.5, 2.0}).astype(DType::boolean).to_vector<bool>() ==
        std::vector<bool>{false, false, true, true});
  CHECK(Array({true, false}).astype(DType::float16).astype(DType::float32).to_vector<float>() ==
        F{1, 0});
  CHECK(Array({0.1}).astype(DType::float16).astype(DType::float64).item<double>() ==
        0.0999755859375);
  CHECK(a.astype(DType::float32).raw_data() == a.raw_data());
  CHECK(Array::arange(6).reshape({2, 3}).transpose().astype(DType::float32).to_vector<float>() ==
        F{0, 3, 1, 4, 2, 5});
  CHECK(Array::zeros({0, 2}).astype(DType::int8).shape() == Shape({0, 2}));
}

TEST_CASE("comparing arrays", "[array]") {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              inf = std::numeric_limits<float>::infinity();
  CHECK(array_equal(Array({1, 2}), Array({1, 2})));
  CHECK_FALSE(array_equal(Array({1, 2}), Array({1, 3})));
  CHECK_FALSE(array_equal(Array({1, 2}), Array({1.0, 2.0})));
  CHECK_FALSE(array_equal(Array({1}), Array({{1}})));
  CHECK_FALSE(array_equal(Array({nan}), Array({nan})));
  CHECK(allclose(Array({1.0, inf}), Array({1.000001, inf})));
  CHECK(allclose(Array({1}), Array({1.0})));
  CHECK_FALSE(allclose(Array({inf}), Array({-inf})));
  CHECK_FALSE(allclose(Array({inf}), Array({1.0})));
  CHECK_FALSE(allclose(Array({nan}), Array({nan})));
  CHECK(allclose(Array({nan}), Array({nan}), 0, 0, true));
  CHECK_FALSE(allclose(Array({1.0}), Array({1.1})));
}

TEST_CASE("arrays on a device are read through its home", "[array]") {
  FarHome home;
  const Array host = Array::arange(24).reshape({2, 3, 4});
  const Array a = home.place(host);
  CHECK(a.context() == "far");
  CHECK(host.context() == "cpu");
  CHECK(a.at<std::int64_t>({1, 2, 3}) == 23);
  CHECK(home.bytes == 8);  // only the element travels
  CHECK(array_equal(a, host));
  CHECK(a.to_host().context() == "cpu");
  CHECK(to_string(a) == to_string(host));
  const Array part = a.transpose().slice(0, {}, {}, -2);
  CHECK(part.context() == "far");
  CHECK(array_equal(part, host.transpose().slice(0, {}, {}, -2)));
  CHECK(part.astype(DType::float32).context() == "cpu");
  CHECK(array_equal(part.copy(), part));
  CHECK(a.slice(1, 3, {}).to_host().shape() == Shape({2, 0, 4}));
  CHECK_THROWS_WITH(a.data<std::int64_t>(), Contains("'far'") && Contains("to_host()"));
  Array b = a;
  CHECK_THROWS_WITH(b.mutable_data<std::int64_t>(), Contains("'far'"));
}

TEST_CASE("memory that the host can read is shared after waiting", "[array]") {
  NearHome home;
  const Array host = {1, 2, 3};
  const ArrayImpl& i = *ArrayAccess::impl(host);
  const Array a = ArrayAccess::wrap(i.dtype, i.shape, i.block, nullptr, &home);
  const Array h = a.to_host();
  CHECK(home.waits == 1);
  CHECK(h.raw_data() == host.raw_data());
  CHECK(h.context() == "cpu");
  CHECK(a.at<std::int64_t>({-1}) == 3);
  CHECK(home.waits == 2);
  CHECK_THROWS_AS(a.data<std::int64_t>(), UserError);  // the same program must run on a GPU
}
