"""Writes scalar_gradients.txt: first and second derivatives of scalar ops by JAX and mpmath. Run
with JAX 0.10 on a CPU, and mpmath 1.3. make_array_gradient_fixtures.py has the other ops.

A block is a line "@ op operands", with the operands by which it is differentiated, and then lines
of all operands, "|", the first derivatives, "|", the second ones (for two operands: 00 01 11).
JAX's numbers stand where mpmath's derivatives to 40 digits agree with them; else, or where JAX has
no such function, mpmath's. mpmath has none at infinities: those there are JAX's, "-" where it has
NaN, or the derivative is too large. Points avoid ties and kinks, where conventions differ.
"""

import itertools
import os
import sys

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import mpmath as mp
import numpy as np

import make_math_fixtures as exact

jax.config.update("jax_enable_x64", True)
mp.mp.dps = 40
here = os.path.dirname(os.path.abspath(__file__))
inf = float("inf")

# Points.
REAL = [-20.5, -3.0, -1.0, -0.375, -0.0009765625, -0.0, 0.0, 0.0009765625, 0.375, 1.0, 3.0, 20.5]
NOT_0 = [-(2.0 ** 70), *(x for x in REAL if x != 0), 2.0 ** 70]
POSITIVE = [2.0 ** -70, 0.0009765625, 0.375, 0.75, 1.0, 1.25, 3.0, 20.5, 1000.0, 2.0 ** 70]
UNIT = [-0.9990234375, -0.75, -0.375, -0.0009765625, -0.0, 0.0, 0.0009765625, 0.375, 0.75,
        0.9990234375]
FRACTIONS = [-1000.25, -3.625, -1.25, -0.375, 0.375, 1.25, 3.625, 1000.25]
POLES = [-3.5, -2.25, -0.75, 2.0 ** -10, 0.375, 0.875, 1.25, 2.5, 6.0, 30.25]
PAIRS = [(-3.0, 2.5), (-1.0, -0.375), (-0.375, 0.0), (0.0, 2.0), (0.5, -7.0), (1.0, 0.25),
         (2.5, 3.0), (20.5, 1.5), (0.0009765625, -20.5), (1000.0, -1.0)]
EXTREMES = [(2.0 ** 600, 2.0 ** 601), (2.0 ** -600, 2.0 ** -601)]
EXPONENTS = PAIRS + [(1.0, 1.0), (-3.0, -3.0), (700.0, 800.0), (-inf, 3.0)]
QUOTIENTS = [(-3.625, 2.5), (-7.25, -2.0), (0.5, 3.0), (7.25, 2.0), (7.25, -2.0), (1000.25, 0.75),
             (-20.5, 0.375)]
SHAPES = [(0.5, 0.25), (0.5, 1.5), (1.0, 1.0), (2.5, 0.75), (2.5, 4.0), (7.0, 3.0), (20.5, 25.0),
          (20.5, 18.0)]

def mp_sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def mp_logistic_loss(z, t):
    return t * mp.log1p(mp.exp(-z)) + (1 - t) * mp.log1p(mp.exp(z))


def logistic_loss(z, t):
    return t * jax.nn.softplus(-z) + (1 - t) * jax.nn.softplus(z)


# Name: points, JAX's function, mpmath's. Points of more operands are tuples.
UNARY = {
    "abs": (NOT_0, jnp.abs, abs),
    "neg": (REAL, jnp.negative, lambda x: -x),
    "sign": (NOT_0, jnp.sign, mp.sign),
    "square": (REAL, jnp.square, lambda x: x * x),
    "reciprocal": (NOT_0 + [inf], lambda x: 1 / x, lambda x: 1 / x),
    "floor": (FRACTIONS, jnp.floor, mp.floor),
    "ceil": (FRACTIONS, jnp.ceil, mp.ceil),
    "trunc": (FRACTIONS, jnp.trunc, lambda x: mp.sign(x) * mp.floor(abs(x))),
    "round": (FRACTIONS, jnp.round, mp.nint),
    "round_half_away_from_zero": (FRACTIONS, lambda x: jnp.trunc(x + jnp.copysign(0.5, x)),
                                  mp.nint),
    "sqrt": (POSITIVE + [inf], jnp.sqrt, mp.sqrt),
    "cbrt": (NOT_0, jnp.cbrt, exact.cbrt),
    "exp": (REAL + [-700.0, -inf], jnp.exp, mp.exp),
    "exp2": (REAL + [-1000.0, -inf], jnp.exp2, lambda x: mp.mpf(2) ** x),
    "expm1": (REAL + [-700.0, -inf], jnp.expm1, mp.expm1),
    "log": (POSITIVE + [inf], jnp.log, mp.log),
    "log2": (POSITIVE + [inf], jnp.log2, lambda x: mp.log(x) / mp.ln2),
    "log10": (POSITIVE + [inf], jnp.log10, mp.log10),
    "log1p": (POSITIVE + UNIT + [inf], jnp.log1p, mp.log1p),
    "sin": (REAL, jnp.sin, mp.sin),
    "cos": (REAL, jnp.cos, mp.cos),
    "tan": (REAL, jnp.tan, mp.tan),
    "arcsin": (UNIT, jnp.arcsin, mp.asin),
    "arccos": (UNIT, jnp.arccos, mp.acos),
    "arctan": (REAL + [1000.0, inf], jnp.arctan, mp.atan),
    "sinh": (REAL, jnp.sinh, mp.sinh),
    "cosh": (REAL, jnp.cosh, mp.cosh),
    "tanh": (REAL + [400.0, inf, -inf], jnp.tanh, mp.tanh),
    "arcsinh": (REAL + [1000.0], jnp.arcsinh, mp.asinh),
    "arccosh": ([1.0009765625, 1.25, 3.0, 20.5, 1000.0], jnp.arccosh, mp.acosh),
    "arctanh": (UNIT, jnp.arctanh, mp.atanh),
    "sigmoid": (REAL + [-700.0, 700.0, inf, -inf], jax.nn.sigmoid, mp_sigmoid),
    "softplus": (REAL + [-700.0, 700.0, inf, -inf], jax.nn.softplus,
                 lambda x: mp.log1p(mp.exp(x))),
    "relu": (NOT_0, jax.nn.relu, lambda x: max(x, mp.mpf(0))),
    "erf": (REAL[1:-1] + [-5.5, 5.5, inf, -inf], special.erf, mp.erf),
    "erfc": (REAL[1:-1] + [-5.5, 5.5, inf, -inf], special.erfc, mp.erfc),
    "erfcx": (REAL + [100.0, 1000.0], None, exact.erfcx),
    "erfinv": (UNIT, special.erfinv, mp.erfinv),
    "erfcinv": ([2.0 ** -70, 0.0009765625, 0.375, 0.75, 1.0, 1.25, 1.875, 1.9990234375], None,
                exact.erfcinv),
    "gamma": (POLES, special.gamma, mp.gamma),
    "gammaln": (POLES + [1000.0], special.gammaln, exact.gammaln),
    "digamma": (POLES + [1000.0], special.digamma, mp.digamma),
    "polygamma": (POLES + [1000.0], lambda x: special.polygamma(1, x),
                  lambda x: mp.polygamma(1, x)),
    "i0": (REAL, special.i0, lambda x: mp.besseli(0, x)),
    "i1": (REAL + [-0.109375, 0.140625], special.i1, lambda x: mp.besseli(1, x)),
    "i0e": (NOT_0[1:-1] + [700.0], special.i0e, exact.bessel_i(0, True)),
    "i1e": (NOT_0[1:-1] + [700.0], special.i1e, exact.bessel_i(1, True)),
    "j0": (REAL + [100.25], None, lambda x: mp.besselj(0, x)),
    "j1": (REAL + [-0.109375, 0.140625, 100.25], None, lambda x: mp.besselj(1, x)),
    "y0": (POSITIVE[1:-1] + [100.25], None, lambda x: mp.bessely(0, x)),
    "y1": (POSITIVE[1:-1] + [100.25], None, lambda x: mp.bessely(1, x)),
    "log1mexp": ([-800.0, -700.0, -20.5, -3.0, -1.0, -0.375, -0.0009765625, -(2.0 ** -60), -inf],
                 lambda x: jnp.log(-jnp.expm1(x)), exact.log1mexp),
    "cast": (REAL, lambda x: x.astype(jnp.float32).astype(jnp.float64), lambda x: x),
}
BINARY = {
    "add": (PAIRS, jnp.add, lambda a, b: a + b),
    "sub": (PAIRS, jnp.subtract, lambda a, b: a - b),
    "mul": (PAIRS, jnp.multiply, lambda a, b: a * b),
    "true_divide": (QUOTIENTS + [(0.0, 2.0), (3.0, inf)], jnp.divide, lambda a, b: a / b),
    "floor_divide": (QUOTIENTS, jnp.floor_divide, lambda a, b: mp.floor(a / b)),
    "trunc_divide": (QUOTIENTS, lambda a, b: jnp.trunc(a / b),
                     lambda a, b: mp.sign(a / b) * mp.floor(abs(a / b))),
    "mod": (QUOTIENTS, jnp.mod, lambda a, b: a - b * mp.floor(a / b)),
    "fmod": (QUOTIENTS, jnp.fmod,
             lambda a, b: a - b * mp.sign(a / b) * mp.floor(abs(a / b))),
    "pow": ([(0.375, 2.5), (1.0, -3.0), (2.5, 0.375), (3.0, 0.0), (3.0, 1.0), (3.0, 2.0),
             (20.5, -7.25), (0.0009765625, 20.5), (1000.0, 0.0009765625)], jnp.power,
            lambda a, b: a ** b),
    "maximum": (PAIRS, jnp.maximum, max),
    "minimum": (PAIRS, jnp.minimum, min),
    "copysign": ([(-3.0, 2.5), (3.0, 2.5), (0.375, -1.0), (-0.375, -20.5)], jnp.copysign,
                 lambda a, b: abs(a) * mp.sign(b)),
    "nextafter": (PAIRS, None, lambda a, b: a),
    "hypot": (PAIRS + EXTREMES, jnp.hypot, exact.hypot),
    "arctan2": (PAIRS + EXTREMES, jnp.arctan2, mp.atan2),
    "logaddexp": (EXPONENTS, jnp.logaddexp, exact.logaddexp),
    "logaddexp2": (EXPONENTS, jnp.logaddexp2, exact.logaddexp2),
    "betaln": (SHAPES + [(0.0009765625, 3.0)], special.betaln, exact.betaln),
    "gammainc": (SHAPES, special.gammainc, exact.gammainc(False)),
    "gammaincc": (SHAPES, special.gammaincc, exact.gammainc(True)),
    "leaky_relu": ([(-3.0, 0.25), (-0.375, -2.0), (0.375, 0.25), (20.5, 0.0)],
                   lambda x, alpha: jnp.where(x > 0, x, alpha * x),
                   lambda x, alpha: x if x > 0 else alpha * x),
    "logistic_loss": ([(-700.0, 0.25), (-3.0, 1.0), (-0.375, 0.0), (0.0, 0.375), (0.375, 0.75),
                       (3.0, 0.0), (700.0, 0.25)], logistic_loss, mp_logistic_loss),
}
TERNARY = {
    "clip": ([(-3.0, -1.0, 2.5), (0.375, -1.0, 2.5), (20.5, -1.0, 2.5)], jnp.clip,
             lambda x, low, high: min(max(x, low), high)),
    "where": ([(1.0, 2.5, -3.0), (0.0, 2.5, -3.0)], lambda c, a, b: jnp.where(c != 0, a, b),
              lambda c, a, b: a if c else b),
    "betainc": ([(0.5, 0.5, 0.375), (2.5, 1.0, 0.75), (1.0, 3.0, 0.0009765625), (7.0, 4.0, 0.625),
                 (20.5, 30.0, 0.375)], special.betainc, exact.betainc),
}
# Operands by which an op has no derivative, or is not differentiated.
FIXED = {"where": [0], "gammainc": [0], "gammaincc": [0], "betainc": [0, 1]}


def by_jax(function, point, operands):
    if function is None:
        return [None] * len(operands), [None] * (len(operands) * (len(operands) + 1) // 2)
    first = [float(jax.grad(function, k)(*point)) for k in operands]
    pairs = itertools.combinations_with_replacement(operands, 2)
    return first, [float(jax.grad(jax.grad(function, k), j)(*point)) for k, j in pairs]


def by_mpmath(function, point, orders):
    """A derivative to many digits; none at infinities."""
    if any(abs(x) == inf for x in point):
        return None
    scale = min([abs(x) for x in point if x != 0] or [1]) if 0 not in point else mp.mpf(1) / 1024
    with mp.workdps(60):
        point = tuple(map(mp.mpf, point))
        value = mp.diff(function, point, orders, h=scale * mp.mpf(10) ** -16)
        noise = abs(function(*point)) / mp.mpf(scale) ** sum(orders) * mp.mpf(10) ** -50
        return value if abs(value) > noise else mp.mpf(0)


def agree(a, b):
    return a is not None and abs(a - b) <= 1e-13 * abs(b) + 1e-300


def choose(name, point, jax_value, mp_value, counts):
    """JAX's value where it is right."""
    if mp_value is None:
        counts["limit"] += 1
        return "-" if jax_value is None or np.isnan(jax_value) else shown(jax_value)
    if agree(jax_value, mp_value):
        counts["jax"] += 1
        return shown(jax_value)
    if abs(mp_value) > sys.float_info.max:
        return "-"
    counts["mpmath"] += 1
    if jax_value is not None:
        print(f"{name} at {point}: JAX {jax_value}, mpmath {mp.nstr(mp_value, 17)}")
    return shown(float(mp_value))


def shown(x):
    return "%.16g" % (0.0 if x == 0 else x)


def scalars(out):
    counts = {"jax": 0, "mpmath": 0, "limit": 0}
    for name, (points, function, many_digits) in (UNARY | BINARY | TERNARY).items():
        points = [p if isinstance(p, tuple) else (p,) for p in points]
        operands = [k for k in range(len(points[0])) if k not in FIXED.get(name, [])]
        out.write(f"@ {name} {' '.join(map(str, operands))}\n")
        for point in points:
            unit = [tuple(int(j == k) for j in range(len(point))) for k in operands]
            twice = [tuple(a + b for a, b in zip(*pair))
                     for pair in itertools.combinations_with_replacement(unit, 2)]
            words = [" ".join(repr(x) for x in point)]
            for values, orders in zip(by_jax(function, point, operands), (unit, twice)):
                words.append(" ".join(
                    choose(name, point, value, by_mpmath(many_digits, point, order), counts)
                    for value, order in zip(values, orders)))
            out.write(" | ".join(words) + "\n")
    print(counts)


def main():
    with open(os.path.join(here, "scalar_gradients.txt"), "w") as out:
        scalars(out)


if __name__ == "__main__":
    main()
