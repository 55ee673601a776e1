// Special functions for reference evaluators: plain series and iterations in long double.
#pragma once

namespace croton::reference {

double erfcx(double x);
double erfinv(double x);
double erfcinv(double y);
double digamma(double x);
double polygamma(int n, double x);
double bessel_i(int order, double x);
/// exp(-|x|) times bessel_i.
double bessel_i_scaled(int order, double x);

/// The regularised incomplete functions; NaN outside their domains.
double gammainc(double a, double x);
double gammaincc(double a, double x);
double betainc(double a, double b, double x);
double betaln(double a, double b);

}  // namespace croton::reference
