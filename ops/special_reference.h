// Special functions for reference evaluators: plain series and iterations in long double.
#pragma once

#include "croton/dtype.h"

namespace croton::reference {

double erfcx(double x);
double erfinv(double x);
double erfcinv(double y);
double digamma(double x);
double polygamma(int n, double x);
double bessel_i(int order, double x);
/// -inf at 0, where C may give the other sign for -0, and NaN below.
double bessel_y(int order, double x);
/// The number next to a on the way to b, in a float dtype.
double next_after(DType dtype, double a, double b);
/// exp(-|x|) times bessel_i.
double bessel_i_scaled(int order, double x);

/// The regularised incomplete functions; NaN outside their domains.
double gammainc(double a, double x);
double gammaincc(double a, double x);
double betainc(double a, double b, double x);
double betaln(double a, double b);

}  // namespace croton::reference
