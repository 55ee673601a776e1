"""Writes sort_values.txt: sorting and what is made with it by NumPy. Run with NumPy 2.4.

Blocks as in make_shape_fixtures.py; the titles are those of tests/ops/sort_fixtures.cpp.
"""

import os
import warnings

import numpy as np

from make_shape_fixtures import line

here = os.path.dirname(os.path.abspath(__file__))
inf, nan = np.inf, np.nan
warnings.simplefilter("ignore")
blocks = []


def block(title, operands, *results):
    blocks.append("\n".join([f"@ {title}"] + [line("in", x) for x in operands]
                            + [line("out", y) for y in results]))


def numbers(dtype, *shape):
    k = np.arange(int(np.prod(shape)))
    values = (k * 7 + k * k) % 9 - 4
    if dtype.startswith("float"):
        values = values / 4
    elif dtype.startswith("u"):
        values = abs(values)
    elif dtype == "bool":
        values = values > 0
    return values.astype(dtype).reshape(shape)


def descending(a, axis):
    """The order of the largest first, stable, NaN first."""
    if a.dtype.kind == "f":
        return np.lexsort((-np.where(np.isnan(a), 0, a), ~np.isnan(a)), axis=axis)
    return np.argsort(-a.astype(np.float64), axis=axis, kind="stable")


def stable(a, axis):
    return np.argsort(a, axis=axis, kind="stable")


edges = np.array([[2.0, 1.0, 2.0, nan, 1.0, -0.0, 0.0, -inf], [nan, inf, 3.0, nan, 3.0, -1.0, 2.0, 0.0],
                  [5e-324, -5e-324, 0.0, -0.0, 1e-310, -inf, inf, 0.0], [-0.0, 0.0] * 4])
big = np.array([[2**63, 2**63 - 1, 0, 2**64 - 1, 1]], dtype="uint64")
wide = np.array([[2**53 + 1, -2**53 - 1, 2**53, -2**63, 2**63 - 1]])
empty = np.zeros((2, 0, 3))
every = ["float64", "float32", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32",
         "int64", "uint64", "bool"]
for x in [numbers(d, 3, 7) for d in every] + [edges, edges.astype("float32"), wide]:
    block("sort", [x], np.sort(x, -1, kind="stable"), stable(x, -1))
for x in (edges, numbers("int8", 3, 7), numbers("bool", 2, 5)):
    order = descending(x, -1)
    block("sort descending", [x], np.take_along_axis(x, order, -1), order)
for x in (numbers("float64", 2, 3, 4), edges, numbers("int32", 4, 2), empty):
    block("sort 0", [x], np.sort(x, 0, kind="stable"), stable(x, 0))
    block("sort all", [x], np.sort(x, None, kind="stable"), stable(x, None))
block("sort -2", [empty], np.sort(empty, -2), stable(empty, -2))
block("sort -2", [numbers("float64", 2, 3, 4)], np.sort(numbers("float64", 2, 3, 4), -2),
      stable(numbers("float64", 2, 3, 4), -2))
for x in (edges, numbers("int32", 4, 5), numbers("uint8", 4, 5), numbers("float32", 3, 4)):
    order = descending(x, -1)[:, :3]
    block("topk 3", [x], np.take_along_axis(x, order, 1), order)
    order = stable(x, 0)[:2]
    block("topk 2 smallest along 0", [x], np.take_along_axis(x, order, 0), order)
block("topk 0", [numbers("float64", 2, 3)], np.zeros((2, 0)), np.zeros((2, 0), dtype=np.int64))
for x, v in ((np.array([-2.0, -0.0, 0.0, 1.5, 7.0, inf, nan]),
              np.array([[-3.0, -2.0, -0.0, 1.0], [7.0, inf, nan, 8.0]])),
             (np.array([1, 3, 3, 5], dtype="int32"), np.array([0, 1, 3, 4, 9], dtype="int32")),
             (np.array([0, 1, 1], dtype="uint8"), np.array(1, dtype="uint8")),
             (np.array([]), np.array([1.0])), (np.array([1.0]), np.zeros((2, 0)))):
    block("searchsorted", [x, v], np.searchsorted(x, v), np.searchsorted(x, v, side="right"))
x = np.array([3.0, nan, -1.0, 3.0, 0.5])
v = np.array([[3.0, 0.0], [nan, -2.0]])
block("searchsorted with a sorter", [x, v, stable(x, 0)],
      np.searchsorted(x, v, sorter=stable(x, 0)),
      np.searchsorted(x, v, side="right", sorter=stable(x, 0)))
for dtype in ("int64", "uint8", "int32"):
    block("bincount", [numbers("uint8", 2, 4).astype(dtype)],
          np.bincount(numbers("uint8", 2, 4).ravel(), minlength=6))
block("bincount", [np.zeros((0,), dtype=np.int64)], np.bincount(np.zeros((0,), dtype=np.int64), minlength=6))
block("bincount with weights", [numbers("int64", 2, 4) % 3, numbers("float64", 2, 4)],
      np.bincount((numbers("int64", 2, 4) % 3).ravel(), numbers("float64", 2, 4).ravel(), 6))

holes = np.array([[1.5, nan, 3.0, -2.0], [nan, nan, nan, nan], [0.5, 2.0, nan, 7.0],
                  [5.0, 1.0, -4.0, 2.0]])
infinite = np.array([[-inf, -inf, -inf], [-inf, 1.0, 2.0], [inf, 0.0, 3.0], [nan, 1.0, 2.0]])
q = np.array([0.0, 0.1, 0.3, 0.5, 2 / 3, 0.75, 0.99, 1.0])
cube = numbers("float64", 2, 3, 4)
for x in (cube, numbers("float64", 3, 5), numbers("int32", 3, 5)):
    for method in ("linear", "lower", "higher", "nearest", "midpoint"):
        # Integers give floats with every method.
        block(f"quantile {method}", [x, q],
              np.quantile(x, q, axis=1, method=method).astype("float64"))
    block("median", [x], np.median(x))
    block("median 1", [x], np.median(x, axis=1))
    block("median 0,1", [x], np.median(x, axis=(0, 1)))
    block("percentile keepdims", [x, np.array([12.5, 40.0])],
          np.percentile(x, np.array([12.5, 40.0]), axis=-1, keepdims=True))
for x in (holes, infinite, np.zeros((3, 1)), np.zeros((0, 3))):
    block("median 1", [x], np.median(x, axis=1))
block("quantile scalar", [holes, np.array(0.3)], np.quantile(holes, 0.3, axis=1))
for x in (holes, cube[0]):
    block("nanmedian", [x], np.nanmedian(x))
    block("nanmedian 1", [x], np.nanmedian(x, axis=1))
    block("nanquantile", [x, np.array([0.25, 0.5, 0.9])],
          np.nanquantile(x, np.array([0.25, 0.5, 0.9]), axis=1))
    block("nanpercentile", [x, np.array(30.0)], np.nanpercentile(x, 30.0, axis=1))

with open(os.path.join(here, "sort_values.txt"), "w") as out:
    out.write("\n".join(blocks) + "\n")
