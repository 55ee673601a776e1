"""Writes elementwise_values.txt: functions that are built from scalar ops, with their derivatives, by
mpmath.

A block is a line "@ name operands", then lines of operands (exact in float16), the value, the first
derivative by each operand (or by the last) and, for functions of one operand, the second
derivative.
"""

import os

import mpmath as mp

here = os.path.dirname(os.path.abspath(__file__))
mp.mp.dps = 40

POINTS = [-30, -8.5, -3.5, -1.5, -1, -0.25, -0.0009765625, 0.0009765625, 0.25, 1, 1.5, 2.75, 7, 30]
POSITIVE = [x for x in POINTS if x > 0]
UNIT = [0.0009765625, 0.125, 0.25, 0.5, 0.625, 0.75, 0.9375]


def elu(alpha, scale=1):
    return lambda x: scale * (x if x > 0 else alpha * mp.expm1(x))


def celu(alpha):
    return lambda x: x if x > 0 else alpha * mp.expm1(x / alpha)


def gelu_tanh(x):
    return x / 2 * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x ** 3)))


def clipped(x, low, high):
    return min(max(x, low), high)


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def ndtri(p):
    return mp.sqrt(2) * mp.erfinv(2 * p - 1)


SELU = elu(mp.mpf("1.6732632423543772848"), mp.mpf("1.0507009873554804934"))

UNARY = [
    ("deg2rad", lambda x: x * mp.pi / 180, POINTS),
    ("rad2deg", lambda x: x * 180 / mp.pi, POINTS),
    ("xlogx", lambda x: x * mp.log(x), POSITIVE),
    ("ndtri", ndtri, UNIT),
    ("trigamma", lambda x: mp.polygamma(1, x), POSITIVE),
    ("log_sigmoid", lambda x: -mp.log1p(mp.exp(-x)), POINTS),
    ("hard_sigmoid", lambda x: clipped(x / 5 + mp.mpf(1) / 2, 0, 1), POINTS),
    ("softsign", lambda x: x / (1 + abs(x)), POINTS),
    ("elu", elu(1), POINTS),
    ("elu_0.75", elu(0.75), POINTS),
    ("selu", SELU, POINTS),
    ("celu_0.75", celu(0.75), POINTS),
    ("gelu", lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2, POINTS),
    ("gelu_tanh", gelu_tanh, POINTS),
    ("silu", lambda x: x * sigmoid(x), POINTS),
    ("mish", lambda x: x * mp.tanh(mp.log1p(mp.exp(x))), POINTS),
    ("relu6", lambda x: clipped(x, 0, 6), POINTS),
]
PAIRS = [(a, x) for a in (0.5, 2, 7.5) for x in (0.25, 1.5, 9)]
# By the second operand alone.
SECOND = [
    ("gammal", lambda a, x: mp.gammainc(a, 0, x), PAIRS),
    ("gammau", lambda a, x: mp.gammainc(a, x), PAIRS),
    ("chi2sf", lambda k, x: mp.gammainc(k / 2, x / 2, regularized=True),
     [(k, x) for k in (1, 4, 9) for x in (0.25, 3, 20)]),
]
BINARY = [
    ("xlogy", lambda x, y: x * mp.log(y), [(x, y) for x in POINTS[3:11] for y in (0.125, 1, 7)]),
    ("xlog1py", lambda x, y: x * mp.log1p(y), [(x, y) for x in POINTS[3:11] for y in (-0.5, 1, 7)]),
]


def text(value):
    return mp.nstr(value, 20, min_fixed=0, max_fixed=0)


def main():
    with open(os.path.join(here, "elementwise_values.txt"), "w") as out:
        for name, function, points in UNARY:
            out.write(f"@ {name} 1\n")
            for x in points:
                values = [function(mp.mpf(x)), mp.diff(function, x, h=mp.mpf(10) ** -20),
                          mp.diff(function, x, 2, h=mp.mpf(10) ** -12)]
                out.write(" ".join([repr(float(x))] + [text(v) for v in values]) + "\n")
        for name, function, points in SECOND:
            out.write(f"@ {name} 2\n")
            for x, y in points:
                values = [function(mp.mpf(x), mp.mpf(y)), mp.diff(function, (x, y), (0, 1))]
                out.write(" ".join([repr(float(x)), repr(float(y))] + [text(v) for v in values]) +
                          "\n")
        for name, function, points in BINARY:
            out.write(f"@ {name} 2\n")
            for x, y in points:
                values = [function(mp.mpf(x), mp.mpf(y)), mp.diff(function, (x, y), (1, 0)),
                          mp.diff(function, (x, y), (0, 1))]
                out.write(" ".join([repr(float(x)), repr(float(y))] + [text(v) for v in values]) +
                          "\n")


main()
