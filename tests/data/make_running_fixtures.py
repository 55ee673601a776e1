"""Writes running_values.txt: running reductions and differences by NumPy. Run with NumPy 2.4.

Blocks as in make_shape_fixtures.py; the titles are those of tests/ops/running_fixtures.cpp. Sums and
products are exact, so that no order of operations is better than another.
"""

import os
import warnings

import numpy as np

from make_shape_fixtures import line

here = os.path.dirname(os.path.abspath(__file__))
inf, nan = np.inf, np.nan
warnings.simplefilter("ignore")
blocks = []


def block(title, operand, result):
    blocks.append("\n".join([f"@ {title}", line("in", operand), line("out", result)]))


def numbers(dtype, *shape):
    k = np.arange(int(np.prod(shape)))
    values = (k * 7 + k * k) % 5 - 2
    if dtype.startswith("float"):
        values = np.where(k % 3 == 2, values + 0.5, values)
    elif dtype.startswith("u"):
        values = abs(values)
    elif dtype == "bool":
        values = values > 0
    return values.astype(dtype).reshape(shape)


def backwards(f, axis):
    return lambda x: np.flip(f(np.flip(x, axis), axis), axis)


def exclusive(f, start):
    def g(x, axis):
        y = np.moveaxis(f(x, axis), axis, -1)
        y = np.concatenate([np.full_like(y[..., :1], start), y[..., :-1]], -1)[..., :x.shape[axis]]
        return np.moveaxis(y, -1, axis)

    return g


edges = np.array([[0.0, -0.0, 2.0, 0.0, 3.0], [1.5, nan, 3.0, -2.0, nan], [-inf, 1.0, inf, 2.0, 0.5],
                  [-inf, -inf, 4.0, -inf, 4.0], [5e-324, -5e-324, 1e-310, 2.0, 0.0]])
empty = np.zeros((2, 0, 3))
folds = {"cumsum": (np.cumsum, 0), "cumprod": (np.cumprod, 1),
         "cummax": (np.maximum.accumulate, None), "cummin": (np.minimum.accumulate, None),
         "logcumsumexp": (np.logaddexp.accumulate, -inf)}
for name, (f, start) in folds.items():
    dtypes = ["float64"]
    if name != "logcumsumexp":
        dtypes += ["float32", "float16", "int8", "uint8", "int32", "uint64", "bool"]
    for dtype in dtypes:
        if dtype == "bool" and start is None:
            continue
        x = numbers(dtype, 3, 5)
        if dtype == "float16" and start is not None:
            f16 = (np.cumsum if name == "cumsum" else np.cumprod)
            block(f"{name} 1", x, f16(x, axis=1, dtype=np.float32).astype(np.float16))
            continue
        block(f"{name} 1", x, f(x, axis=1))
    cube = numbers("float64", 2, 3, 4)
    for x in (cube, numbers("int32", 2, 3, 4)):
        if name == "logcumsumexp" and x.dtype.kind != "f":
            continue
        block(f"{name} -2", x, f(x, axis=-2))
        block(f"{name} 0 reverse", x, backwards(f, 0)(x))
        block(f"{name} 2 reverse", x, backwards(f, 2)(x))
        block(f"{name} all", x, f(x.ravel(), axis=0))
    block(f"{name} all", np.array(2.5), f(np.array([2.5]), axis=0))
    block(f"{name} 1", edges, f(edges, axis=1))
    block(f"{name} 0 reverse", edges, backwards(f, 0)(edges))
    block(f"{name} 1", empty, f(empty, axis=1))
    block(f"{name} -2", empty, f(empty, axis=-2))
    if start is not None:
        g = exclusive(f, start)
        for x in (cube, edges, empty):
            block(f"{name} 1 exclusive", x, g(x, 1))
        block(f"{name} 1 exclusive reverse", cube, backwards(g, 1)(cube))
block("cumsum 0 int8", numbers("int8", 6), np.cumsum(numbers("int8", 6), dtype=np.int8))
block("cumprod 0 float64", numbers("int32", 6), np.cumprod(numbers("int32", 6), dtype=np.float64))
for n in (0, 1, 2, 6):
    for x in (numbers("float64", 3, 5), numbers("uint8", 3, 5), numbers("bool", 3, 5)):
        block(f"diff {n}", x, np.diff(x, n))
block("diff 1 along 0", edges, np.diff(edges, axis=0))
block("diff 1 along -2", empty, np.diff(empty, axis=-2))

with open(os.path.join(here, "running_values.txt"), "w") as out:
    out.write("\n".join(blocks) + "\n")
