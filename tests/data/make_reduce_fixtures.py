"""Writes reduce_values.txt: reductions by NumPy and SciPy. Run with
NumPy 2.4.

A block is a line "@ name", then a line "in dtype sizes | elements" for each operand and a line "out
dtype sizes | elements" for the result.
"""

import os
import warnings

import numpy as np
import scipy.special as special

here = os.path.dirname(os.path.abspath(__file__))
inf, nan = np.inf, np.nan
warnings.simplefilter("ignore")

random = np.random.default_rng(3)
cube = np.round(random.normal(0, 2, (2, 3, 4)), 2)
cube[0, 1, 2] = cube[0, 1, 0]
matrix = np.array([[1.5, -2.0, 0.0, 3.0], [-0.0, 4.0, 4.0, -5.0], [2.5, 2.5, -1.0, 0.25]])
holes = np.array([[1.5, nan, 3.0, -2.0], [nan, nan, nan, nan], [nan, -inf, -inf, nan],
                  [0.5, inf, nan, 7.0], [5.0, 1.0, -4.0, 2.0]])
infinite = np.array([[-inf, -inf, -inf], [-inf, 1.0, 2.0], [inf, 0.0, 3.0], [nan, 1.0, 2.0],
                     [1000.0, 1000.0, -1000.0]])
large = 1e8 + np.array([[4.0, 7.0, 13.0, 16.0], [1.0, 2.0, 2.0, 1.0]])
ints = np.array([[3, -1, 0, 7], [0, 2, -9, 2], [5, 5, 5, -5]])
small = np.array([[1, 0, 3, 3], [0, 2, 3, 2]])
bits = np.array([[True, False, True], [False, False, False]])
subnormal = np.array([[5e-324, -5e-324, 0.0], [1e-310, 2e-310, -3e-310]])

blocks = []


def add(name, function, *operands):
    blocks.append((name, [np.asarray(o) for o in operands], np.asarray(function(*operands))))


for x in (matrix, cube):
    for ddof in (0, 1, 2):
        add(f"var_ddof{ddof}", lambda a: a.var(ddof=ddof), x)
        add(f"var_01_ddof{ddof}", lambda a: a.var(axis=(0, 1), ddof=ddof), x)
    add("std_0", lambda a: a.std(axis=0), x)
    add("ptp", np.ptp, x)
    add("ptp_1", lambda a: np.ptp(a, axis=1), x)
    add("count_nonzero_0", lambda a: np.count_nonzero(a, axis=0), x)
    add("argmax", np.argmax, x)
    add("norm", np.linalg.norm, x)
    for name, order in (("2", 2), ("1", 1), ("0", 0), ("inf", inf), ("-inf", -inf), ("3", 3),
                        ("0.5", 0.5), ("-1", -1), ("-2", -2)):
        add(f"norm_{name}_axis1", lambda a: np.linalg.norm(a, order, axis=1), x)
    for name, order in (("fro", "fro"), ("1", 1), ("-1", -1), ("inf", inf), ("-inf", -inf)):
        add(f"norm_{name}_axes10", lambda a: np.linalg.norm(a, order, axis=(1, 0)), x)
    add("logsumexp_all", special.logsumexp, x)
    add("logsumexp_01_keepdims", lambda a: special.logsumexp(a, axis=(0, 1), keepdims=True), x)
add("var_last_ddof5", lambda a: a.var(axis=1, ddof=5), matrix)
add("var_last", lambda a: a.var(axis=1), large)
add("std_last", lambda a: a.std(axis=1), subnormal)
for x in (ints, small):
    add("ptp", np.ptp, x)
    add("count_nonzero_0", lambda a: np.count_nonzero(a, axis=0), x)
    add("norm", np.linalg.norm, x)
add("count_nonzero_0", lambda a: np.count_nonzero(a, axis=0), bits)
add("argmax", np.argmax, bits)
for x in (matrix, holes, ints):
    last = x.shape[1] - 1
    add("argmax_last", lambda a: last - np.argmax(a[:, ::-1], axis=1), x)
    add("argmin_last", lambda a: last - np.argmin(a[:, ::-1], axis=1), x)
add("logsumexp_last", lambda a: special.logsumexp(a, axis=1), infinite)
add("average", lambda a, w: np.average(a, weights=w), matrix, np.abs(matrix) + 1)
add("average_1", lambda a, w: np.average(a, axis=1, weights=w), matrix, np.array([1.0, 0, 2, 3]))
add("average_1", lambda a, w: np.average(a, axis=1, weights=w), ints, np.array([1.0, 0, 2, 3]))
for x in (holes, matrix):
    for name in ("nansum", "nanprod", "nanmean", "nanmax", "nanmin", "nanvar", "nanstd"):
        add(name, getattr(np, name), x)
        add(f"{name}_1", lambda a: getattr(np, name)(a, axis=1), x)
    add("nanvar_ddof1", lambda a: np.nanvar(a, axis=0, ddof=1), x)
for x in (holes[[0, 3, 4]], matrix):
    add("nanargmax_1", lambda a: np.nanargmax(a, axis=1), x)
    add("nanargmin_1", lambda a: np.nanargmin(a, axis=1), x)
    add("nanargmax", np.nanargmax, x)


observed = np.array([[1.5, -2.0, 0.5, 3.0, 4.0], [0.25, 4.0, -1.0, 2.0, 2.5], [2.0, 2.0, 1.0, 0.5, -3.0]])
often, much = np.array([1, 3, 0, 2, 1]), np.array([0.5, 1.0, 2.0, 0.25, 1.5])
for x in (observed, observed[0], observed[:, :1], ints):
    add("cov", np.cov, x)
    add("cov_columns", lambda a: np.cov(a, rowvar=False), x)
    add("cov_ddof0", lambda a: np.cov(a, ddof=0), x)
for ddof in (0, 1, 2):
    add(f"cov_often_ddof{ddof}", lambda a, f: np.cov(a, fweights=f, ddof=ddof), observed, often)
    add(f"cov_much_ddof{ddof}", lambda a, w: np.cov(a, aweights=w, ddof=ddof), observed, much)
    add(f"cov_both_ddof{ddof}", lambda a, f, w: np.cov(a, fweights=f, aweights=w, ddof=ddof),
        observed, often, much)
for x in (observed, observed[0], ints):
    add("corrcoef", np.corrcoef, x)
    add("corrcoef_columns", lambda a: np.corrcoef(a, rowvar=False), x)


def line(a):
    """Floats in full, so that they are read exactly."""
    values = a.ravel().tolist()
    text = " ".join(repr(v) if a.dtype.kind == "f" else str(int(v)) for v in values)
    return f"{a.dtype} {' '.join(map(str, a.shape))} | {text}"


with open(os.path.join(here, "reduce_values.txt"), "w") as out:
    for name, operands, result in blocks:
        out.write(f"@ {name}\n")
        for a in operands:
            out.write("in " + line(a) + "\n")
        out.write("out " + line(result) + "\n")
