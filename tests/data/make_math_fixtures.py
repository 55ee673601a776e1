"""Writes math_values.txt: values of special functions by mpmath, to more digits than a float64 has.

    python3 tests/data/make_math_fixtures.py [POINTS [FILE]]

A block is a line "@ name" and then lines of operands and the result. Every second operand is exact
in float32. The committed file has 60 points an interval. To measure the bounds in
compiler/kernel/math_bounds.cpp write some thousands into another folder and run

    CROTON_TEST_DATA=FOLDER test_compiler -s "each special function*"
"""

import math
import os
import random
import sys

import mpmath as mp
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
mp.mp.dps = 40
inf, nan = mp.inf, mp.nan

TINY = [5e-324, 1e-310, 2.2250738585072014e-308, 1e-300, 1e-30, 1.401298464324817e-45,
        1.1754943508222875e-38]
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, float("inf"), float("-inf"), float("nan")]
EDGES += TINY + [-t for t in TINY] + [1e300, -1e300, 3e38, -3e38]


def gamma(x):
    if x == 0:
        return mp.mpf("-inf") if str(float(x)) == "-0.0" else inf
    if x == -inf or (x < 0 and x == mp.floor(x)):
        return nan
    return inf if x > 200 else mp.gamma(x)


def gammaln(x):
    if abs(x) == inf or (x <= 0 and x == mp.floor(x)):
        return inf
    if x > 0:
        return mp.loggamma(x)
    return mp.log(abs(mp.pi / (x * mp.sinpi(x)))) - mp.loggamma(-x)


def digamma(x):
    if x == inf:
        return inf
    if x == 0:
        return -inf if str(float(x)) == "0.0" else inf
    if x == -inf or (x < 0 and x == mp.floor(x)):
        return nan
    return mp.log(x) if x > 1e40 else mp.digamma(x)


def polygamma(x, n):
    n = int(n)
    if x == inf:
        return mp.mpf(0)
    if x == -inf:
        return nan
    if x == 0:
        return inf if n % 2 else -inf
    if x < 0 and x == mp.floor(x):
        return inf if n % 2 else nan
    if abs(x) < 1e-30:
        return (-1) ** (n + 1) * mp.factorial(n) / mp.mpf(x) ** (n + 1)
    if x > 1e6:
        return (-1) ** (n + 1) * mp.factorial(n - 1) / x ** n * (
            1 + n / (2 * x) + n * (n + 1) / (12 * x * x))
    return mp.polygamma(n, x)


def erfcx(x):
    if x == inf:
        return mp.mpf(0)
    if x < -30:
        return inf
    if x > 1e10:
        return 1 / (x * mp.sqrt(mp.pi))
    return mp.exp(x * x) * mp.erfc(x)


def erfinv(x):
    return nan if abs(x) > 1 else x * inf if abs(x) == 1 else mp.erfinv(x)


def erfcinv(y):
    if not 0 <= y <= 2:
        return nan
    if y == 0 or y == 2:
        return inf if y == 0 else -inf
    if y > 0.01:
        return mp.erfinv(1 - y)
    z = mp.sqrt(-mp.log(y))
    for _ in range(100):
        slope = 2 / mp.sqrt(mp.pi) * mp.exp(-z * z)
        step = mp.log(mp.erfc(z) / y) * mp.erfc(z) / slope
        z += step
        if abs(step) < mp.mpf(10) ** -35:
            break
    return z


def bessel_i(order, scaled):
    def function(x):
        if abs(x) > 1e6:
            u = 4 * order * order
            v = 8 * abs(x)
            rest = 1 - (u - 1) / v + (u - 1) * (u - 9) / (2 * v * v) * (1 - (u - 25) / (3 * v))
            y = rest / mp.sqrt(2 * mp.pi * abs(x)) if scaled else inf
            return y if x > 0 or order == 0 else -y
        y = mp.besseli(order, x)
        return y * mp.exp(-abs(x)) if scaled else y
    return function


def bessel_j(order):
    def function(x):
        return mp.mpf(0) if abs(x) == inf else bessel(mp.besselj, order, x)
    return function


def bessel_y(order):
    def function(x):
        if x < 0:
            return nan
        return -inf if x == 0 else mp.mpf(0) if x == inf else bessel(mp.bessely, order, x)
    return function


def bessel(kind, order, x):
    """By the first terms of the asymptotic form where x is large, with digits for the angle."""
    if abs(x) < 1e15:
        return kind(order, x)
    with mp.workdps(400):
        a, u = abs(x), 4 * order * order
        q = (u - 1) / (8 * a)
        angle = a - mp.pi / 4 - order * mp.pi / 2
        sine, cosine = mp.sin(angle), mp.cos(angle)
        wave = cosine - q * sine if kind is mp.besselj else sine + q * cosine
        y = mp.sqrt(2 / (mp.pi * a)) * wave
    return -y if x < 0 and order == 1 else y


def cbrt(x):
    return x if x == 0 or abs(x) == inf else mp.sign(x) * mp.cbrt(abs(x))


def hypot(x, y):
    return inf if abs(x) == inf or abs(y) == inf else mp.sqrt(x * x + y * y)


def logaddexp(a, b):
    if a != a or b != b:
        return nan
    high, low = max(a, b) + mp.mpf(0), min(a, b)
    return high if low == -inf or high == inf else high + mp.log1p(mp.exp(low - high))


def logaddexp2(a, b):
    if a != a or b != b:
        return nan
    high, low = max(a, b) + mp.mpf(0), min(a, b)
    return high if low == -inf or high == inf else high + mp.log1p(mp.mpf(2) ** (low - high)) / mp.ln2


def log1mexp(x):
    if x > 0:
        return nan
    if x == 0:
        return -inf
    return mp.log(-mp.expm1(x)) if x > -1 else mp.log1p(-mp.exp(x))


def gamma_tail(a, x):
    """P(a, x) for x < a + 1, else Q(a, x)."""
    if x < a + 1:
        term = total = mp.mpf(1)
        n = 0
        while term > total * mp.eps:
            n += 1
            term *= x / (a + n)
            total += term
        return mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1)) * total
    count = 200 + int(12 * mp.sqrt(a) + 2000 / x)
    fraction = x + 2 * count + 1 - a
    for n in range(count, 0, -1):
        fraction = x + 2 * n - 1 - a - n * (n - a) / fraction
    return mp.exp(a * mp.log(x) - x - mp.loggamma(a)) / fraction


def gammainc(upper):
    def function(a, x):
        if a < 0 or x < 0 or (a == 0 and x == 0) or (a == inf and x == inf):
            return nan
        if x == 0 or a == inf:
            return mp.mpf(upper)
        if x == inf or a == 0:
            return mp.mpf(1 - upper)
        with mp.workdps(60 if a > 1e-20 and x > 1e-20 else 400):
            tail = gamma_tail(a, x)
            return tail if upper == (x >= a + 1) else 1 - tail
    return function


def betainc(a, b, x):
    if not (0 < a < inf and 0 < b < inf and 0 <= x <= 1):
        return nan
    return x if x in (0, 1) else mp.betainc(a, b, 0, x, regularized=True)


def betaln(a, b):
    if a < 0 or b < 0 or (min(a, b) == 0 and max(a, b) == inf):
        return nan
    if min(a, b) == 0 or max(a, b) == inf:
        return inf if min(a, b) == 0 else -inf
    return mp.log(mp.beta(a, b))


# Of polygamma; 100 is the largest.
ORDERS = (1, 2, 3, 10, 100)

# name, function, intervals of each operand: (low, high), or (low, high, "log").
FUNCTIONS = [
    ("erfcx", erfcx, [[(-27, 0)], [(0, 6)], [(1e-300, 1e300, "log")]]),
    ("erfinv", erfinv, [[(-1, 1)], [(0.99, 1)], [(1e-300, 1, "log")]]),
    ("erfcinv", erfcinv, [[(0, 2)], [(1e-320, 1, "log")], [(1.99, 2)], [(1e-30, 0.1, "log")]]),
    ("gamma", gamma, [[(0, 14)], [(13, 172)], [(-20, 0)], [(-185, -10)], [(1e-300, 1, "log")]]),
    ("gammaln", gammaln, [[(0, 4)], [(3, 20)], [(-20, 0)], [(1e-300, 1e300, "log")], [(0.9, 2.1)],
                          [(-1e5, -1)]]),
    ("digamma", digamma, [[(0, 10)], [(1.4, 1.5)], [(-20, 0)], [(1e-300, 1e300, "log")],
                          [(7, 100)]]),
    ("polygamma", polygamma, [[(0, 20), n] for n in ORDERS] + [[(-9, 0), n] for n in ORDERS] +
     [[(1e-30, 1e30, "log"), n] for n in ORDERS]),
    ("i0", bessel_i(0, False), [[(-10, 10)], [(8, 714)], [(1e-300, 700, "log")]]),
    ("i1", bessel_i(1, False), [[(-10, 10)], [(8, 714)], [(1e-300, 700, "log")]]),
    ("i0e", bessel_i(0, True), [[(-10, 10)], [(8, 714)], [(1e-300, 1e300, "log")]]),
    ("i1e", bessel_i(1, True), [[(-10, 10)], [(8, 714)], [(1e-300, 1e300, "log")]]),
    ("j0", bessel_j(0), [[(-10, 10)], [(8, 100)], [(1e-300, 1e6, "log")], [(1e6, 1e300, "log")]]),
    ("j1", bessel_j(1), [[(-10, 10)], [(8, 100)], [(1e-300, 1e6, "log")], [(1e6, 1e300, "log")]]),
    ("y0", bessel_y(0), [[(0, 10)], [(8, 100)], [(1e-300, 1e6, "log")], [(1e6, 1e300, "log")]]),
    ("y1", bessel_y(1), [[(0, 10)], [(8, 100)], [(1e-300, 1e6, "log")], [(1e6, 1e300, "log")]]),
    ("gammainc", gammainc(0), [[(0, 3), (0, 4)], [(0, 25), (0, 50)], [(18, 60), (10, 90)],
                               [(1e-5, 1e5, "log"), (1e-5, 1e5, "log")], [(990, 1010), (900, 1100)]]),
    ("gammaincc", gammainc(1), [[(0, 3), (0, 4)], [(0, 25), (0, 50)], [(18, 60), (10, 90)],
                                [(1e-5, 1e5, "log"), (1e-5, 1e5, "log")], [(990, 1010), (900, 1100)],
                                [(1e-8, 1, "log"), (1e-8, 2, "log")]]),
    ("betainc", betainc, [[(0, 3), (0, 3), (0, 1)], [(0, 30), (0, 30), (0, 1)],
                          [(1e-3, 1e3, "log"), (1e-3, 1e3, "log"), (0, 1)],
                          [(900, 1000), (900, 1000), (0.4, 0.6)]]),
    ("betaln", betaln, [[(0, 9), (0, 9)], [(1e-10, 1e10, "log"), (1e-10, 1e10, "log")],
                        [(1, 100), (1, 100)]]),
    ("cbrt", cbrt, [[(-8, 8)], [(5e-324, 1.7e308, "log")]]),
    ("hypot", hypot, [[(-4, 4), (-4, 4)], [(1e-320, 1e308, "log"), (1e-320, 1e308, "log")],
                      [(1e-3, 1e3, "log"), (1e-3, 1e3, "log")]]),
    ("logaddexp", logaddexp, [[(-4, 4), (-4, 4)], [(-800, 800), (-800, 800)],
                              [(100, 110), (100, 110)]]),
    ("logaddexp2", logaddexp2, [[(-4, 4), (-4, 4)], [(-1100, 1100), (-1100, 1100)],
                                [(100, 110), (100, 110)]]),
    ("log1mexp", log1mexp, [[(-2, 0)], [(-750, 0)], [(-1, -0.5)]]),
]


def draw(interval, single):
    if not isinstance(interval, tuple):
        return float(interval)
    low, high = interval[:2]
    if len(interval) > 2:
        value = float(mp.exp(random.uniform(float(mp.log(low)), float(mp.log(high)))))
    else:
        value = random.uniform(low, high)
    return float(np.float32(value)) if single else value


def text(value):
    if value != value:
        return "nan"
    if abs(value) == inf:
        return "inf" if value > 0 else "-inf"
    return mp.nstr(value, 24, min_fixed=0, max_fixed=0)


ODD = {"erfinv", "i1", "i1e", "j1", "cbrt"}


def evaluate(name, function, operands):
    if name in ODD and operands[0] == 0:
        return repr(operands[0])
    if name in ("i1e", "j1", "log1mexp") and operands[0] == -math.inf:
        return "-0.0"
    if name == "polygamma" and operands[0] == math.inf and operands[1] % 2 == 0:
        return "-0.0"
    if any(x != x for x in operands):
        return "inf" if function is hypot and any(abs(x) == inf for x in operands) else "nan"
    return text(function(*[mp.mpf(x) if x != 0 else x for x in operands]))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    path = sys.argv[2] if len(sys.argv) > 2 else os.path.join(here, "math_values.txt")
    random.seed(5)
    with np.errstate(all="ignore"), open(path, "w") as out:
        for name, function, regions in FUNCTIONS:
            out.write(f"@ {name}\n")
            if name == "polygamma":
                rows = [(x, n) for x in EDGES for n in (1.0, 2.0)]
            elif len(regions[0]) == 3:
                some = [0.0, 0.5, 1.0, 2.0, 300.0, math.inf, -1.0, math.nan]
                rows = [(a, b, x) for a in some for b in some for x in (0.0, 0.25, 1.0, -0.5, 2.0)]
            elif len(regions[0]) == 2:
                some = EDGES[:12]
                rows = [(x, y) for x in some for y in some]
            else:
                rows = [(x,) for x in EDGES]
            for region in regions:
                for k in range(count):
                    rows.append(tuple(draw(interval, k % 2 == 0) for interval in region))
            for row in rows:
                out.write(" ".join(repr(float(x)) for x in row) + " " + evaluate(name, function, row) +
                          "\n")


if __name__ == "__main__":
    main()
