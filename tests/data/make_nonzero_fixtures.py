"""Writes nonzero_values.txt: what NumPy gives where sizes follow from values. Run with NumPy 2.4. The
format is that of make_shape_fixtures.py."""

import os

import numpy as np

import make_shape_fixtures as fixtures
from make_shape_fixtures import block, numbers

here = os.path.dirname(os.path.abspath(__file__))
dtypes = ("float64", "float32", "int32", "uint8", "bool")
special = np.array([[np.nan, 1.0, -0.0], [np.inf, np.nan, 0.0], [-np.inf, 1.0, 5e-324]])


def places():
    for x in [numbers(7, dtype=d) for d in dtypes] + [numbers(3, 4, dtype=d) for d in dtypes] + [
            special, np.zeros((2, 3)), np.ones((2, 2)), np.zeros((0, 3)), numbers(2, 3, 2)]:
        block("nonzero", [x], list(np.nonzero(x)))
        block("flatnonzero", [x], np.flatnonzero(x))
        block("argwhere", [x], np.argwhere(x))
        block("nonzero_values", [x], x[np.nonzero(x)])
    x = numbers(5000, dtype="int32") % 3 % 2  # several blocks
    block("flatnonzero", [x], np.flatnonzero(x))


def masks():
    for dtype in ("float64", "int32", "bool"):
        x = numbers(4, 3, dtype=dtype)
        rows = np.array([True, False, True, True])
        cells = numbers(4, 3, dtype="bool", seed=5)
        block("mask", [x, rows], x[rows])
        block("mask", [x, cells], x[cells])
        block("mask", [x, np.zeros(4, bool)], x[np.zeros(4, bool)])
        block("mask", [numbers(4, 3, 2, dtype=dtype), cells], numbers(4, 3, 2, dtype=dtype)[cells])
        block("mask and number", [x, rows], x[rows, 1])
        block("slice and mask", [x, rows[:3]], x[1:, rows[:3]])
        block("mask and array", [x, rows, np.array([2, 0, 1])], x[rows, [2, 0, 1]])
        block("compress 0", [x, rows], np.compress(rows, x, 0))
        block("compress 1", [x, rows[1:]], np.compress(rows[1:], x, 1))
        block("compress 1", [x, np.array([2, 0])], np.compress([2, 0], x, 1))
        block("compress", [x, rows], np.compress(rows, x))
        block("extract", [x, cells], np.extract(cells, x))
        v = numbers(int(cells.sum()), dtype=dtype, seed=9)
        y = x.copy()
        y[cells] = v
        block("set at mask", [x, cells, v], y)
        v = numbers(3, 3, dtype=dtype, seed=9)
        y = x.copy()
        y[rows] = v
        block("set at mask", [x, rows, v], y)
        if dtype != "bool":
            y = x.copy()
            y[rows] += v
            block("add at mask", [x, rows, v], y)


def copies():
    for dtype in ("float64", "int32", "bool"):
        x = numbers(3, 2, dtype=dtype)
        for counts in ([2, 0, 3], [0, 0, 0], [1, 1, 1]):
            block("repeat 0", [x, np.array(counts)], np.repeat(x, counts, 0))
        block("repeat 1", [x, np.array([4, 1], "uint8")], np.repeat(x, [4, 1], 1))
        block("repeat", [x, np.arange(6)], np.repeat(x, np.arange(6)))
    for x in (np.array([3, 0, 3, 7], "uint8"), np.array([0]), np.zeros(0, int),
              numbers(40, dtype="int32") % 5):
        block("bincount", [x], np.bincount(x))
        block("bincount 6", [x], np.bincount(x, minlength=6))
        w = numbers(x.size)
        if x.size:  # NumPy gives integers of no weights
            block("bincount weights", [x, w], np.bincount(x, w))


def uniques():
    arrays = [numbers(9, dtype=d) for d in dtypes] + [
        numbers(3, 4), numbers(2, 3, dtype="int32"), special, np.zeros(0), np.zeros((2, 0), "int32"),
        np.array(2.5), np.ones(5), numbers(600, dtype="int32") % 7]
    for x in arrays:
        values, index, inverse, counts = np.unique(x, True, True, True)
        block("unique", [x], [values, index, inverse, counts])


if __name__ == "__main__":
    fixtures.blocks.clear()
    for family in (places, masks, copies, uniques):
        family()
    with open(os.path.join(here, "nonzero_values.txt"), "w") as out:
        out.write("\n".join(fixtures.blocks) + "\n")
