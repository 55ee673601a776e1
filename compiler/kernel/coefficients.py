#!/usr/bin/env python3
"""Computes the polynomial coefficients in coefficients.h. To make that file again:

    python3 compiler/kernel/coefficients.py > compiler/kernel/coefficients.h
    clang-format -i compiler/kernel/coefficients.h

It needs mpmath and NumPy and takes half a minute. Each polynomial minimises the greatest weighted
error over its interval. float32 ones are fitted by Lawson's iteration, their coefficients rounded
one after the other, lowest power first, the others fitted anew each time; float64 ones, whose
degree leaves room to spare, by weighted least squares over Chebyshev nodes in 60 digits.
The bits of error that the fit leaves stand beside each array (-26 is 2 to the power -26).
"""
import mpmath as mp
import numpy as np

mp.mp.dps = 60


def nodes(low, high, count):
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle + half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]


def lawson(x, target, weight, powers):
    """Coefficients of least greatest weighted error, in double precision."""
    scale = np.max(np.abs(x))
    basis = np.stack([(x / scale) ** p for p in powers], 1) * weight[:, None]
    goal = target * weight
    w = np.ones_like(x) / len(x)
    best, best_error = None, np.inf
    for _ in range(60):
        root = np.sqrt(w)
        c, *_ = np.linalg.lstsq(basis * root[:, None], goal * root, rcond=None)
        error = np.abs(basis @ c - goal)
        if error.max() < best_error:
            best, best_error = c, error.max()
        w = w * error
        w /= w.sum()
    return best / scale ** np.array(powers, dtype=float)


def fit32(function, powers, low, high, weight=lambda x: 1 / x, fixed=None):
    """`weight` is given the target's value, or use a constant for absolute error."""
    points = nodes(mp.mpf(low), mp.mpf(high), 600)
    exact = [function(p) for p in points]
    x = np.array([float(p) for p in points])
    weights = np.array([abs(float(weight(p, v))) for p, v in zip(points, exact)])
    rest = np.array([float(v - sum(c * p ** k for k, c in (fixed or {}).items()))
                     for p, v in zip(points, exact)])
    done = dict(fixed or {})
    left = list(powers)
    while left:
        c = lawson(x, rest, weights, left)
        value = float(np.float32(c[0]))
        done[left[0]] = value
        rest = rest - value * x ** left[0]
        left = left[1:]
    return done, np.max(np.abs(rest * weights))


def fit64(function, powers, low, high, weight=lambda x: 1 / x, fixed=None):
    points = nodes(mp.mpf(low), mp.mpf(high), 4 * len(powers) + 20)
    exact = [function(p) for p in points]
    weights = [abs(weight(p, v)) for p, v in zip(points, exact)]
    done = dict(fixed or {})

    def solve(left):
        a = mp.matrix(len(points), len(left))
        b = mp.matrix(len(points), 1)
        for i, (p, v, w) in enumerate(zip(points, exact, weights)):
            for j, k in enumerate(left):
                a[i, j] = w * p ** k
            b[i] = w * (v - sum(c * p ** k for k, c in done.items()))
        return mp.lu_solve(a, b)

    left = list(powers)
    for _ in range(min(3, len(left))):  # the others' rounding does not matter
        done[left[0]] = mp.mpf(float(solve(left)[0]))
        left = left[1:]
    if left:
        for k, c in zip(left, solve(left)):
            done[k] = mp.mpf(float(c))
    error = max(abs(w * (v - sum(c * p ** k for k, c in done.items())))
                for p, v, w in zip(points, exact, weights))
    return done, error


def relative(point, value):
    return 1 / value


def of_square(function):
    """function(x) / x as a function of x squared."""
    return lambda y: function(mp.sqrt(y)) / mp.sqrt(y)


def less_one(function):
    return lambda y: function(y) - 1


def plus_one(point, value):
    return 1 / (value + 1)


def log2_erfc(x):
    return mp.log(mp.erfc(1 + x)) / LN2


def erfc_of_point(point, value):
    return mp.erfc(1 + point)


def scaled_erfc(k):
    def function(q):
        x = k * (1 + q) / (1 - q)
        return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)
    return function


LN2 = mp.log(2)
HALF = LN2 / 2 * mp.mpf("1.001")
LOW, HIGH = mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(2) - 1
QUARTER = mp.pi / 4 * mp.mpf("1.001")
TINY = mp.mpf("1e-30")
ONE = {0: mp.mpf(1)}


# name, meaning, function, (first power printed, float32's last, float64's last), interval, weight,
# fixed coefficients
TABLES = [
    ("Exp", "exp(x) on +-ln(2)/2", mp.exp, (0, 6, 12), (-HALF, HALF), relative, ONE),
    ("Exp2", "2^x on +-1/2", lambda x: mp.mpf(2) ** x, (0, 6, 12), (-0.5005, 0.5005), relative,
     ONE),
    ("Expm1", "(exp(x) - 1 - x) / x^2 on +-ln(2)/2", mp.expm1, (2, 6, 12), (-HALF, HALF), relative,
     {1: mp.mpf(1)}),
    ("Tanh", "(tanh(x)/x - 1) / x^2 of x^2, x in +-0.7", of_square(mp.tanh), (1, 5, 12),
     (TINY, mp.mpf("0.491")), relative, ONE),
    ("Log", "(log(1 + x) - x + x^2/2) / x^3 on sqrt(1/2) - 1 ... sqrt(2) - 1", mp.log1p,
     (3, 10, 22), (LOW, HIGH), relative, {1: mp.mpf(1), 2: mp.mpf(-0.5)}),
    ("Sin", "(sin(x)/x - 1) / x^2 of x^2, x in +-pi/4", of_square(mp.sin), (1, 4, 7),
     (TINY, QUARTER ** 2), relative, ONE),
    ("Cos", "(cos(x) - 1 + x^2/2) / x^4 of x^2, x in +-pi/4", lambda y: mp.cos(mp.sqrt(y)),
     (2, 4, 7), (TINY, QUARTER ** 2), relative, {0: mp.mpf(1), 1: mp.mpf(-0.5)}),
    ("Arctan", "(atan(x)/x - 1) / x^2 of x^2, x in +-tan(pi/8)", of_square(mp.atan), (1, 5, 12),
     (TINY, mp.mpf("0.1717")), relative, ONE),
    ("Arcsin", "(asin(x)/x - 1) / x^2 of x^2, x in +-1/2", of_square(mp.asin), (1, 5, 13),
     (TINY, mp.mpf("0.2501")), relative, ONE),
    ("Erf", "erf(x)/x - 1 of x^2, x up to 1 (float32)", less_one(of_square(mp.erf)), (0, 6, 0),
     (mp.mpf("1e-8"), mp.mpf("1.001")), plus_one, {}),
    ("Erf", "erf(x)/x - 1 of x^2, x up to 1 (float64)", less_one(of_square(mp.erf)), (0, 0, 11),
     (TINY, mp.mpf("1.001")), plus_one, {}),
    ("Log2Erfc", "log2(erfc(1 + x)) on 0 ... 3 (float32)", log2_erfc, (0, 6, 0), (-0.001, 3),
     erfc_of_point, {}),
    ("Log2Erfc", "log2(erfc(1 + x)) on 0 ... 4.95 (float64)", log2_erfc, (0, 0, 18), (-0.001, 4.95),
     erfc_of_point, {}),
    ("Erfc", "(1 + 2x) exp(x^2) erfc(x) of (x - 2)/(x + 2), x on 0.4 ... 10.1 (float32)",
     scaled_erfc(2), (0, 9, 0), (mp.mpf("-1.6") / mp.mpf("2.4"), mp.mpf("8.1") / mp.mpf("12.1")),
     relative, {}),
    ("Erfc", "(1 + 2x) exp(x^2) erfc(x) of (x - 4)/(x + 4), x on 0.4 ... 27.3 (float64)",
     scaled_erfc(4), (0, 0, 20), (mp.mpf("-3.6") / mp.mpf("4.4"), mp.mpf("23.3") / mp.mpf("31.3")),
     relative, {}),
    ("LogForPow", "(log(1 + x) - x + x^2/2) / x^3 in float64, for pow of float32", mp.log1p,
     (3, 0, 14), (LOW, HIGH), relative, {1: mp.mpf(1), 2: mp.mpf(-0.5)}),
    ("Exp2ForPow", "2^x on +-1/2 in float64, for pow of float32", lambda x: mp.mpf(2) ** x,
     (0, 0, 7), (-0.5005, 0.5005), relative, ONE),
    ("Artanh", "(atanh(x)/x - 1 - x^2/3) / x^4 of x^2, x up to (sqrt(2) - 1)/(sqrt(2) + 1)",
     of_square(mp.atanh), (2, 0, 9), (TINY, mp.mpf("0.02945")), relative,
     {0: mp.mpf(1), 1: mp.mpf(1) / 3}),
]

# Each as the sum of three doubles.
CONSTANTS = [("Ln2", "log(2)", LN2), ("Log2E", "1/log(2)", 1 / LN2),
             ("Log10Of2", "log10(2)", mp.log10(2)), ("Log10E", "1/log(10)", 1 / mp.log(10)),
             ("HalfPi", "pi/2", mp.pi / 2), ("TwoOverPi", "2/pi", 2 / mp.pi)]

HEADER = '''// Made by coefficients.py; do not edit.
#pragma once

namespace croton::kernel {
'''


def literal(value, single):
    return repr(float(value)) if not single else f"{float(np.float32(float(value))):.9g}"


def print_table(name, coefficients, first, error, single):
    text = ", ".join(literal(coefficients[k], single) for k in range(first, max(coefficients) + 1))
    print(f"inline constexpr double k{name}F{32 if single else 64}[] = {{  "
          f"// {float(mp.log(error, 2)):.1f}\n    {text}}};")


def print_constant(name, meaning, value):
    parts = []
    for _ in range(3):
        parts.append(float(value))
        value -= mp.mpf(parts[-1])
    print(f"// {meaning}\ninline constexpr double k{name}[] = {{{', '.join(map(repr, parts))}}};\n")


def print_parts():
    """So many bits that a product with the largest double has 150 behind the point."""
    with mp.workprec(1400):
        rest = 2 / mp.pi * mp.mpf(2) ** 100
        parts = []
        for _ in range(22):
            parts.append(float(rest))
            rest -= mp.mpf(parts[-1])
    print("// 2/pi times 2^100, as the sum of doubles")
    print(f"inline constexpr double kTwoOverPiParts[] = {{{', '.join(map(repr, parts))}}};\n")


def main():
    print(HEADER)
    for constant in CONSTANTS:
        print_constant(*constant)
    print_parts()
    for name, meaning, function, (first, last32, last64), interval, weight, fixed in TABLES:
        powers = [k for k in range(first, 60) if k not in fixed]
        print(f"// {meaning}")
        for last, fit, single in ((last32, fit32, True), (last64, fit64, False)):
            if last:
                found, error = fit(function, [k for k in powers if k <= last], *interval, weight,
                                   fixed)
                print_table(name, found, first, error, single)
        print()
    print("}  // namespace croton::kernel")


if __name__ == "__main__":
    main()
