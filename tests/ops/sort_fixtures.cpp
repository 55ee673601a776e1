// Sorting, searching, counting and quantiles against NumPy (tests/data/make_sort_fixtures.py): by
// the references of their ops and compiled.
#include "croton/sort.h"
#include "tests/ops/array_fixtures.h"

using namespace croton;
using namespace croton::test;

namespace {

std::function<Operands(const Operands&)> sorting(const Axis& axis,
                                                 const SortOptions& options = {}) {
  return [=](const Operands& x) {
    return Operands{croton::sort(x[0], axis, options), argsort(x[0], axis, options)};
  };
}

std::function<Operands(const Operands&)> taking(int k, int axis, bool largest) {
  return [=](const Operands& x) {
    const auto [values, places] = topk(x[0], k, axis, {.largest = largest});
    return Operands{values, places};
  };
}

void add_sorting(Builders& b) {
  b["sort"] = sorting(-1);
  b["sort descending"] = sorting(-1, {.descending = true});
  b["sort 0"] = sorting(0);
  b["sort -2"] = sorting(-2);
  b["sort all"] = sorting(none);
  b["topk 3"] = taking(3, -1, true);
  b["topk 0"] = taking(0, -1, true);
  b["topk 2 smallest along 0"] = taking(2, 0, false);
}

void add_searching(Builders& b) {
  b["searchsorted"] = [](const Operands& x) {
    return Operands{searchsorted(x[0], x[1]), searchsorted(x[0], x[1], Side::right)};
  };
  b["searchsorted with a sorter"] = [](const Operands& x) {
    return Operands{searchsorted(x[0], x[1], Side::left, x[2]),
                    searchsorted(x[0], x[1], Side::right, x[2])};
  };
  b["bincount"] = [](const Operands& x) { return Operands{bincount(x[0], {.length = 6})}; };
  b["bincount with weights"] = [](const Operands& x) {
    return Operands{bincount(x[0], {.length = 1, .minlength = 6, .weights = x[1]})};
  };
}

void add_quantiles(Builders& b) {
  const std::map<std::string, Quantile> methods{{"linear", Quantile::linear},
                                                {"lower", Quantile::lower},
                                                {"higher", Quantile::higher},
                                                {"nearest", Quantile::nearest},
                                                {"midpoint", Quantile::midpoint}};
  for (const auto& [name, method] : methods) {
    b["quantile " + name] = [method = method](const Operands& x) {
      return Operands{quantile(x[0], x[1], 1, {.method = method})};
    };
  }
  b["quantile scalar"] = [](const Operands& x) { return Operands{quantile(x[0], x[1], 1)}; };
  b["percentile keepdims"] = [](const Operands& x) {
    return Operands{percentile(x[0], x[1], -1, {.keepdims = true})};
  };
  b["median"] = [](const Operands& x) { return Operands{median(x[0])}; };
  b["median 1"] = [](const Operands& x) { return Operands{median(x[0], 1)}; };
  b["median 0,1"] = [](const Operands& x) { return Operands{median(x[0], {0, 1})}; };
  b["nanmedian"] = [](const Operands& x) { return Operands{nanmedian(x[0])}; };
  b["nanmedian 1"] = [](const Operands& x) { return Operands{nanmedian(x[0], 1)}; };
  b["nanquantile"] = [](const Operands& x) { return Operands{nanquantile(x[0], x[1], 1)}; };
  b["nanpercentile"] = [](const Operands& x) { return Operands{nanpercentile(x[0], x[1], 1)}; };
}

Builders builders() {
  Builders b;
  add_sorting(b);
  add_searching(b);
  add_quantiles(b);
  return b;
}

}  // namespace

TEST_CASE("sorting and quantiles agree with NumPy", "[ops][sort][fixtures]") {
  // Integers give floatX.
  const ConfigScope wide(current_config().with("floatX", "float64"));
  check_fixtures("sort_values.txt", builders(), 1e-12);
}
