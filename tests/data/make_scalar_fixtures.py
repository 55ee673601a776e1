"""Writes scalar_values.txt: values of the elementwise ops by NumPy and SciPy. Run with NumPy 2.4.

Values of some special functions are by mpmath, to the last bit.

A block is a line "@ op dtype result operands" and then lines of operands and the result. Floats
are float64 values whose operands are exact in float32 too.
"""

import os

import make_math_fixtures as exact
import numpy as np
import scipy.special as special

here = os.path.dirname(os.path.abspath(__file__))
inf, nan = np.inf, np.nan

# The largest float32 below 1/2, and odd numbers beyond 2^23: what is lost by adding 1/2.
REALS = [-100.0, -9.5, -2.5, -1.0, -0.5, -0.0009765625, -0.0, 0.0, 0.0009765625, 0.25, 0.5, 1.0,
         1.5, 2.5, 3.0, 20.0, 85.5, 100.0, inf, -inf, nan, 0.49999997019767761,
         -0.49999997019767761, 8388609.0, -8388611.0]
PAIRS = [-2.5, -1.0, -0.0, 0.0, 0.125, 3.0, inf, -inf, nan]


def round_half_away(x):
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole)


def by_mpmath(name, *more):
    """A function of make_math_fixtures.py on arrays, with these operands in addition."""
    function = {entry[0]: entry[1] for entry in exact.FUNCTIONS}[name]

    def apply(*columns):
        rows = zip(*[c.tolist() for c in columns])
        return np.array([float(exact.evaluate(name, function, row + more)) for row in rows])
    return apply


UNARY = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square,
    "reciprocal": lambda x: 1 / x, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": np.rint, "sqrt": np.sqrt, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "arcsin": np.arcsin, "arccos": np.arccos, "arctan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "arcsinh": np.arcsinh,
    "arccosh": np.arccosh, "arctanh": np.arctanh, "erf": special.erf, "erfc": special.erfc,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "sigmoid": special.expit,
    "softplus": lambda x: np.logaddexp(0, x), "relu": lambda x: np.maximum(x, 0),
    "logical_not": np.logical_not, "bitwise_not": np.invert,
    "disconnected_grad": np.positive, "zero_grad": np.positive, "grad_clip": np.positive,
    "grad_scale": np.positive, "signbit": np.signbit, "cbrt": np.cbrt,
    "round_half_away_from_zero": round_half_away,
    "polygamma": by_mpmath("polygamma", 1.0),
}
for name in ("erfcx", "erfinv", "erfcinv", "gamma", "gammaln", "digamma", "i0", "i1", "i0e", "i1e",
             "j0", "j1", "y0", "y1", "log1mexp"):
    UNARY[name] = by_mpmath(name)


def trunc_divide(a, b):
    if a.dtype == float:
        return np.where(b == 0, a / b, np.rint((a - np.fmod(a, b)) / b))
    quotients = [int(abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1) if y else 0
                 for x, y in zip(a.tolist(), b.tolist())]
    info = np.iinfo(a.dtype)
    return np.array([(q - info.min) % (1 << info.bits) + info.min for q in quotients], a.dtype)


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "true_divide": np.true_divide,
    "floor_divide": np.floor_divide, "mod": np.mod, "pow": np.power, "arctan2": np.arctan2,
    "maximum": np.maximum, "minimum": np.minimum, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift, "right_shift": np.right_shift,
    "leaky_relu": lambda x, a: np.where(x > 0, x, x * a),
    "trunc_divide": trunc_divide, "fmod": np.fmod, "nextafter": np.nextafter,
    "copysign": np.copysign, "hypot": np.hypot,
    "gammainc": by_mpmath("gammainc"), "gammaincc": by_mpmath("gammaincc"),
    "betaln": by_mpmath("betaln"), "logaddexp": by_mpmath("logaddexp"), "logaddexp2": by_mpmath("logaddexp2"),
    "logistic_loss": lambda z, t: t * np.logaddexp(0, -z) + (1 - t) * np.logaddexp(0, z),
}
TERNARY = {"betainc": by_mpmath("betainc"), "clip": np.clip, "where": lambda c, a, b: np.where(c != 0, a, b)}

PREDICATES = {"lt", "le", "gt", "ge", "eq", "ne", "isnan", "isinf", "isfinite", "signbit"}
ROUNDINGS = {"floor", "ceil", "trunc", "round", "round_half_away_from_zero"}
LOGICAL = {"logical_and", "logical_or", "logical_xor", "logical_not"}
SHIFTS = {"left_shift", "right_shift"}
BITS = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"}
# With integers too; the rest takes floats.
ANY = {"add", "mul", "abs", "maximum", "minimum", "clip", "where", "disconnected_grad", "zero_grad",
       "grad_clip", "grad_scale"} | PREDICATES | ROUNDINGS
NUMBERS = {"sub", "neg", "sign", "square", "floor_divide", "mod", "trunc_divide", "fmod", "pow",
           "relu"}
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def integers(dtype, op):
    info = np.iinfo(dtype)
    values = [0, 1, 2, 3, 7, info.max]
    if info.min < 0:
        values += [-1, -2, -7, info.min]
    return np.array(values, dtype)


def operands(op, dtype, count):
    """Tuples of operands."""
    if op == "where":
        branches = operands("", dtype, 2)[:6]
        return [(c, a, b) for c in (0, 1) for a, b in branches]
    if dtype == "bool":
        base = np.array([False, True])
    elif dtype == "float64":
        base = np.array(REALS if count == 1 else PAIRS)
        if op == "logistic_loss":
            return [(z, t) for z in (-30.0, -2.5, 0.0, 0.125, 9.0, 30.0) for t in (0.0, 0.25, 1.0)]
        if op == "betainc":
            return [(a, b, x) for a in (0.25, 1.0, 7.5) for b in (0.5, 1.0, 30.0, nan)
                    for x in (-1.0, 0.0, 0.0625, 0.5, 1.0)]
        if count == 3:
            base = np.array([-2.5, 0.0, 0.125, 3.0, nan])
    else:
        base = integers(dtype, op)
        if count == 3:
            base = base[:4]
    grid = np.meshgrid(*[base] * count, indexing="ij")
    rows = list(zip(*[g.ravel() for g in grid]))
    if op == "pow" and dtype != "float64":
        rows = [row for row in rows if 0 <= row[1]]
    return rows


def text(value):
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return str(int(value))


def block(out, op, function, dtype, count):
    rows = operands(op, dtype, count)
    columns = [np.array([row[k] for row in rows], dtype) for k in range(count)]
    if op == "where":
        columns[0] = columns[0].astype(bool)
    with np.errstate(all="ignore"):
        result = function(*columns)
    if op not in PREDICATES | LOGICAL:
        assert result.dtype == dtype, (op, dtype, result.dtype)
    out.write(f"@ {op} {dtype} {result.dtype} {count}\n")
    for k in range(len(rows)):
        values = [column[k] for column in columns] + [result[k]]
        out.write(" ".join(text(v) for v in values) + "\n")


def converted(value, dtype):
    """The rule of casts: floats saturate and NaN is 0, integers wrap."""
    if dtype == "bool":
        return int(value != 0)
    if dtype == "float64":
        return float(value)
    info = np.iinfo(dtype)
    if isinstance(value, float):
        if value != value:
            return 0
        return min(max(int(value) if abs(value) != inf else value * 1e300, info.min), info.max)
    return (int(value) - info.min) % (1 << info.bits) + info.min


def casts(out):
    dtypes = ["float64", "bool", "int8", "int64", "uint8", "uint64"]
    for a in dtypes:
        for b in dtypes:
            if a == b:
                continue
            values = (REALS + [1e10, 1e30, -1e30] if a == "float64" else [0, 1] if a == "bool" else
                      [int(v) for v in integers(a, "")])
            out.write(f"@ cast {a} {b} 1\n")
            for v in values:
                r = converted(v, b)
                out.write(f"{text(v)} {text(int(r) if b not in ('float64',) else float(r))}\n")


def dtypes_of(op):
    if op in LOGICAL:
        return ["bool"]
    if op in SHIFTS:
        return INTEGERS
    if op in BITS:
        return INTEGERS + ["bool"]
    if op in ANY:
        return ["float64", "bool"] + INTEGERS
    if op in NUMBERS:
        return ["float64"] + INTEGERS
    return ["float64"]


def main():
    with open(os.path.join(here, "scalar_values.txt"), "w") as out:
        for count, table in ((1, UNARY), (2, BINARY), (3, TERNARY)):
            for op, function in table.items():
                for dtype in dtypes_of(op):
                    if op in ROUNDINGS and dtype != "float64":
                        block(out, op, np.positive if dtype != "bool" else np.array, dtype, count)
                    elif op.endswith("_grad") or op.startswith("grad_"):
                        block(out, op, np.array, dtype, count)
                    else:
                        block(out, op, function, dtype, count)
        casts(out)


main()
