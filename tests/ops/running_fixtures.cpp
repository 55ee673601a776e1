// Running folds and differences against NumPy (tests/data/make_running_fixtures.py): by the
// references of their ops and compiled.
#include "croton/cumulative.h"
#include "tests/ops/array_fixtures.h"

using namespace croton;
using namespace croton::test;

namespace {

using Run = Variable (*)(const Operand&, const Axis&, const CumulativeOptions&);

void add_folds(Builders& b) {
  const std::map<std::string, Run> runs{{"cumsum", cumsum},
                                        {"cumprod", cumprod},
                                        {"cummax", cummax},
                                        {"cummin", cummin},
                                        {"logcumsumexp", logcumsumexp}};
  for (const auto& [name, run] : runs) {
    const auto put = [&, run = run](const std::string& suffix, const Axis& axis,
                                    const CumulativeOptions& options) {
      b[name + " " + suffix] = [=](const Operands& x) {
        return Operands{run(x[0], axis, options)};
      };
    };
    put("1", 1, {});
    put("-2", -2, {});
    put("all", none, {});
    put("0 reverse", 0, {.reverse = true});
    put("2 reverse", 2, {.reverse = true});
    if (name == "cummax" || name == "cummin") continue;
    put("1 exclusive", 1, {.exclusive = true});
    put("1 exclusive reverse", 1, {.reverse = true, .exclusive = true});
  }
  b["cumsum 0 int8"] = [](const Operands& x) {
    return Operands{cumsum(x[0], 0, {.dtype = DType::int8})};
  };
  b["cumprod 0 float64"] = [](const Operands& x) {
    return Operands{cumprod(x[0], 0, {.dtype = DType::float64})};
  };
}

Builders builders() {
  Builders b;
  add_folds(b);
  for (const int n : {0, 1, 2, 6}) {
    b["diff " + std::to_string(n)] = [n](const Operands& x) { return Operands{diff(x[0], n)}; };
  }
  b["diff 1 along 0"] = [](const Operands& x) { return Operands{diff(x[0], 1, 0)}; };
  b["diff 1 along -2"] = [](const Operands& x) { return Operands{diff(x[0], 1, -2)}; };
  return b;
}

}  // namespace

TEST_CASE("running folds agree with NumPy", "[ops][running][fixtures]") {
  check_fixtures("running_values.txt", builders(), 1e-12);
}
