#!/usr/bin/env python3
"""Computes the polynomial coefficients in special_coefficients.h. To make that file again:

    python3 compiler/kernel/special_coefficients.py > compiler/kernel/special_coefficients.h
    clang-format -i compiler/kernel/special_coefficients.h

It needs mpmath and takes some minutes. Each polynomial is a Chebyshev series, interpolated in 60 digits
at 64 nodes, cut where what is left does not matter, and written in powers. All are evaluated in
float64: the long ones for results in float64, the short ones for results in float32. Beside each
stands the error that the cut leaves, relative to the least value of the function on the interval,
in bits, and the condition of the sum: the greatest sum of sizes of terms over the value.
"""
import mpmath as mp
from coefficients import print_constant

mp.mp.dps = 60
NODES = 64
LONG, SHORT = mp.mpf(2) ** -58, mp.mpf(2) ** -31


def chebyshev(function, low, high):
    middle, half = (low + high) / 2, (high - low) / 2
    angles = [mp.pi * (2 * i + 1) / (2 * NODES) for i in range(NODES)]
    values = [function(middle + half * mp.cos(a)) for a in angles]
    series = []
    for k in range(NODES):
        c = 2 * sum(v * mp.cos(k * a) for v, a in zip(values, angles)) / NODES
        series.append(c / 2 if k == 0 else c)
    return series, values


def powers(series, low, high):
    """Coefficients of the powers of v."""
    middle, half = (low + high) / 2, (high - low) / 2
    # T_k in powers of u, then u = (v - middle) / half by Horner's rule.
    before, now = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
    total = [mp.mpf(0)] * len(series)
    for k, c in enumerate(series):
        basis = before if k == 0 else now
        for j, b in enumerate(basis):
            total[j] += c * b
        if k > 0:
            after = [mp.mpf(0)] + [2 * b for b in now]
            for j, b in enumerate(before):
                after[j] -= b
            before, now = now, after
    result = [mp.mpf(0)]
    for c in reversed(total):
        shifted = [mp.mpf(0)] + [r / half for r in result]
        for j, r in enumerate(result):
            shifted[j] -= r * middle / half
        shifted[0] += c
        result = shifted
    return result[:len(series)]


def fit(function, low, high, target):
    series, values = chebyshev(function, low, high)
    least = min(abs(v) for v in values)
    tail, count = mp.mpf(0), NODES
    while count > 1 and tail + abs(series[count - 1]) < target * least:
        count -= 1
        tail += abs(series[count])
    assert count < NODES - 6, "does not converge"
    found = [mp.mpf(float(c)) for c in powers(series[:count], low, high)]
    points = [low + (high - low) * i / 40 for i in range(41)]
    condition = max(sum(abs(c * p ** k) for k, c in enumerate(found)) /
                    abs(sum(c * p ** k for k, c in enumerate(found))) for p in points)
    return found, tail / least, condition


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x)


def scaled_erfcx(q):
    x = 4 * (1 + q) / (1 - q)
    return (1 + 2 * x) * erfcx(x)


def erfcinv_of_log(w):
    """The z > 0 with erfc(z) = y, where w = -log(y (2 - y))."""
    y = mp.exp(-w) / (1 + mp.sqrt(1 - mp.exp(-w)))
    z = mp.sqrt(w) * mp.mpf("0.9") if w > 1 else mp.erfinv(1 - y)
    for _ in range(60):
        ratio = mp.erfc(z) / y
        step = mp.log(ratio) * mp.erfc(z) / (2 / mp.sqrt(mp.pi) * mp.exp(-z * z))
        z += step
        if abs(step) < mp.mpf(10) ** -50:
            return z
    raise ValueError("no inverse")


def central_erfinv(v):
    w = v + mp.mpf("3.125")
    x = mp.sqrt(-mp.expm1(-w))
    return erfcinv_of_log(w) / x


def middle_erfinv(v):
    s = v + mp.mpf("4.25")
    return erfcinv_of_log(s * s) / s


def far_erfinv(v):
    s = 16 / (v + mp.mpf("1.625"))
    return erfcinv_of_log(s * s) / s


def sine_of_turn(v):
    d = mp.sqrt(v)
    return mp.sin(mp.pi * d) / d


def gamma_rest(t):
    return (mp.gamma(2 + t) - 1) / t


def gammaln_near(shift):
    return lambda v: mp.loggamma(v + shift) / ((v + shift - 1) * (v + shift - 2))


def stirling(v):
    x = 1 / mp.sqrt(v)
    with mp.workdps(120):
        y = x * (mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)
    return y


DIGAMMA_ROOT = mp.findroot(mp.digamma, 1.4616321449683623)


def digamma_near(v):
    return mp.digamma(v + 1.5) / (v + 1.5 - DIGAMMA_ROOT)


def digamma_far(v):
    x = 1 / mp.sqrt(v)
    with mp.workdps(120):
        y = (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) * x * x
    return y


def bessel_i_near(order):
    return lambda v: mp.besseli(order, mp.sqrt(v)) / mp.sqrt(v) ** order


def bessel_i_far(order):
    def function(v):
        x = 16 / (1 + v)
        return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)
    return function


def bessel_j_near(order):
    def function(v):
        x = mp.sqrt(32 + 32 * v)
        return mp.besselj(order, x) / x ** order
    return function


def phases(order, v):
    """P and Q x of J = sqrt(2/(pi x)) (P cos(c) - Q sin(c)), c = x - pi/4 - order pi/2."""
    x = 8 / mp.sqrt(v)
    c = x - mp.pi / 4 - order * mp.pi / 2
    j, y, root = mp.besselj(order, x), mp.bessely(order, x), mp.sqrt(mp.pi * x / 2)
    return root * (j * mp.cos(c) + y * mp.sin(c)), x * root * (y * mp.cos(c) - j * mp.sin(c))


def y0_near(v):
    x = mp.sqrt(32 + 32 * v)
    return mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x)


def y1_near(v):
    x = mp.sqrt(32 + 32 * v)
    return (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x


def bessel_j_far(order, part):
    return lambda v: phases(order, v)[part]


def temme(eta, v):
    """(Q(a, x) - erfc(eta sqrt(a/2))/2) sqrt(2 pi a) exp(a eta^2/2), where v = 40/a - 1 and
    eta^2/2 = x/a - 1 - log(x/a), with the sign of x - a."""
    a = 40 / (v + 1)
    ratio = -mp.lambertw(-mp.exp(-1 - eta * eta / 2), -1 if eta > 0 else 0).real
    x = ratio * a
    root = abs(eta) * mp.sqrt(a / 2)
    with mp.workdps(50):
        if eta > 0:
            rest = mp.gammainc(a, x, mp.inf, regularized=True) - mp.erfc(root) / 2
        else:
            rest = mp.erfc(root) / 2 - mp.gammainc(a, 0, x, regularized=True)
    return rest * mp.sqrt(2 * mp.pi * a) * mp.exp(a * eta * eta / 2)


def temme_series():
    """Chebyshev coefficients, by v and eta; eta in +-ETA."""
    rows, columns = 14, 26
    def points(n):
        return [mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    values = [[temme(ETA * e, v) for e in points(columns)] for v in points(rows)]
    basis = lambda n: [[mp.cos(k * mp.pi * (2 * i + 1) / (2 * n)) * (1 if k == 0 else 2) / n
                        for i in range(n)] for k in range(n)]
    by_eta = [[sum(b * f for b, f in zip(row, line)) for row in basis(columns)] for line in values]
    return [[sum(b * by_eta[i][k] for i, b in enumerate(row)) for k in range(columns)]
            for row in basis(rows)]


def temme_table(series, target):
    """Coefficients of powers of v and, within each, of eta, without what is below the target."""
    lengths = [max([k + 1 for k, c in enumerate(row) if abs(c) > target] or [0]) for row in series]
    count = max(j + 1 for j, n in enumerate(lengths) if n)
    lengths = [max(lengths[j:count]) for j in range(count)]
    in_eta = [powers(series[j][:lengths[j]], -ETA, ETA) for j in range(count)]
    table = []
    for k in range(lengths[0]):
        column = [in_eta[j][k] if k < lengths[j] else mp.mpf(0) for j in range(count)]
        table.append(powers(column, -ONE, ONE))
    return [[table[k][j] for k in range(lengths[j])] for j in range(count)]


def print_temme():
    series = temme_series()
    print("// (Q(a, x) - erfc(eta sqrt(a/2))/2) sqrt(2 pi a) exp(a eta^2/2): for each power of\n"
          "// 40/a - 1 the coefficients of the powers of eta, whose number stands in Rows")
    for target, suffix in ((SHORT, "Short"), (mp.mpf(2) ** -60, "Long")):
        table = temme_table(series, target)
        numbers = ", ".join(repr(float(c)) for row in table for c in row)
        print(f"inline constexpr double kTemme{suffix}[] = {{{numbers}}};")
        print(f"inline constexpr int kTemme{suffix}Rows[] = "
              f"{{{', '.join(str(len(row)) for row in table)}}};\n")


TINY = mp.mpf("1e-12")
ETA = mp.mpf("1.01")
ONE = mp.mpf(1)

# name, meaning, function of the argument of the polynomial, interval; whether the value has roots
# inside, so that errors are measured against its greatest value.
TABLES = [
    ("Erfcx", "(1 + 2x) exp(x^2) erfc(x) of (x - 4)/(x + 4), x >= 0", scaled_erfcx, -ONE, ONE),
    ("ErfinvCentral", "erfinv(x)/x of w - 3.125, w = -log(1 - x^2), w up to 6.25", central_erfinv,
     mp.mpf("-3.1249999"), mp.mpf("3.126")),
    ("ErfinvMiddle", "erfinv(x)/s of s - 4.25, s = sqrt(w) on 2.5 ... 6", middle_erfinv,
     mp.mpf("-1.751"), mp.mpf("1.76")),
    ("ErfinvFar", "erfinv(x)/s of 16/s - 1.625, s on 6 ... 27.4", far_erfinv, mp.mpf("-1.042"),
     mp.mpf("1.047")),
    ("SinPi", "sin(pi d)/d of d^2, d up to 1/2", sine_of_turn, TINY, ONE / 4),
    ("Gamma", "(gamma(2 + t) - 1)/t, t on 0 ... 1", gamma_rest, mp.mpf(0), ONE),
    ("GammalnLow", "log(gamma(z))/((z - 1)(z - 2)) of z - 1.125, z on 0.75 ... 1.5",
     gammaln_near(mp.mpf("1.125")), mp.mpf("-0.375"), mp.mpf("0.375")),
    ("GammalnHigh", "log(gamma(z))/((z - 1)(z - 2)) of z - 2.25, z on 1.5 ... 3",
     gammaln_near(mp.mpf("2.25")), mp.mpf("-0.75"), mp.mpf("0.75")),
    ("Stirling", "x (log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi)/2) of 1/x^2, x >= 8",
     stirling, TINY, ONE / 64),
    ("DigammaNear", "digamma(z)/(z - root) of z - 1.5, z on 1 ... 2", digamma_near, -ONE / 2,
     ONE / 2),
    ("DigammaFar", "(log(x) - 1/(2x) - digamma(x)) x^2 of 1/x^2, x >= 8", digamma_far, TINY,
     ONE / 64),
    ("I0Near", "I0(x) of x^2, x up to 8", bessel_i_near(0), TINY, mp.mpf(64)),
    ("I0Far", "sqrt(x) exp(-x) I0(x) of 16/x - 1, x >= 8", bessel_i_far(0), -ONE + TINY, ONE),
    ("I1Near", "I1(x)/x of x^2, x up to 8", bessel_i_near(1), TINY, mp.mpf(64)),
    ("I1Far", "sqrt(x) exp(-x) I1(x) of 16/x - 1, x >= 8", bessel_i_far(1), -ONE + TINY, ONE),
    ("J0Near", "J0(x) of x^2/32 - 1, x up to 8", bessel_j_near(0), -ONE, ONE),
    ("J0P", "P of J0 of (8/x)^2, x >= 8", bessel_j_far(0, 0), TINY, ONE),
    ("J0Q", "Q x of J0 of (8/x)^2, x >= 8", bessel_j_far(0, 1), TINY, ONE),
    ("J1Near", "J1(x)/x of x^2/32 - 1, x up to 8", bessel_j_near(1), -ONE, ONE),
    ("J1P", "P of J1 of (8/x)^2, x >= 8", bessel_j_far(1, 0), TINY, ONE),
    ("J1Q", "Q x of J1 of (8/x)^2, x >= 8", bessel_j_far(1, 1), TINY, ONE),
    ("Y0Near", "Y0(x) - 2/pi log(x) J0(x) of x^2/32 - 1, x up to 8", y0_near, -ONE, ONE),
    ("Y1Near", "(Y1(x) - 2/pi (log(x) J1(x) - 1/x))/x of x^2/32 - 1, x up to 8", y1_near, -ONE,
     ONE),
]
ROOTS = {"J0Near", "J1Near", "Y0Near", "Y1Near"}

# Each as the sum of three doubles.
CONSTANTS = [("DigammaRoot", "the zero of digamma between 1 and 2", DIGAMMA_ROOT),
             ("HalfLogTwoPi", "log(2 pi)/2", mp.log(2 * mp.pi) / 2),
             ("HalfLog2TwoPi", "log2(2 pi)/2", mp.log(2 * mp.pi, 2) / 2),
             ("Pi", "pi", mp.pi), ("SqrtPi", "sqrt(pi)", mp.sqrt(mp.pi))]

HEADER = '''// Made by special_coefficients.py; do not edit.
#pragma once

namespace croton::kernel {
'''


def main():
    print(HEADER)
    for constant in CONSTANTS:
        print_constant(*constant)
    for name, meaning, function, low, high in TABLES:
        scale = ONE
        if name in ROOTS:  # moved away from its roots, and back
            series, values = chebyshev(function, low, high)
            scale = max(abs(v) for v in values) / min(abs(v) for v in values)
        print(f"// {meaning}")
        for target, suffix in ((SHORT, "Short"), (LONG, "Long")):
            found, error, condition = fit(function, low, high, target * scale)
            bits = float(mp.log(error / scale, 2)) if error else -99.0
            print(f"inline constexpr double k{name}{suffix}[] = {{  // {bits:.1f}, "
                  f"{float(condition):.1f}\n    {', '.join(repr(float(c)) for c in found)}}};")
        print(flush=True)
    print_temme()
    print("}  // namespace croton::kernel")


if __name__ == "__main__":
    main()
