"""Writes index_values.txt: what NumPy gives for reading and writing parts of arrays. Run with NumPy
2.4. The format is that of make_shape_fixtures.py."""

import os

import numpy as np

import make_shape_fixtures as fixtures
from make_shape_fixtures import block, numbers

here = os.path.dirname(os.path.abspath(__file__))
both = ("float64", "int32")


def reads():
    steps = [(a, b, s) for a in (None, -9, -2, 0, 1, 3, 9) for b in (None, -9, -1, 0, 2, 9)
             for s in (-3, -1, 1, 2)]
    x = numbers(5)
    for start, stop, step in steps:
        inputs = [x] + [np.array(v) for v in (start, stop, step) if v is not None]
        title = "step" + ("" if start is None else " start") + ("" if stop is None else " stop")
        block(title, inputs, x[start:stop:step])
    x = numbers(3, 4)
    block("step in the middle", [x, np.array(-2)], x[1:, None, ::-2])
    block("step and array", [x, np.array(2)], x[::2, [3, 0, 3]])
    mask = np.array([True, False, True])
    for dtype in ("float64", "int32", "bool"):
        x = numbers(3, 4, dtype=dtype)
        block("mask of rows", [x], x[mask])
        block("mask of columns", [x], x[:, [False, True, True, False]])
        block("mask of all", [x], x[np.arange(12).reshape(3, 4) % 3 == 1])
        block("mask and array", [x], x[mask, [3, 0]])
        block("no place of a mask", [x], x[np.zeros(3, bool)])
    for index in ([0, -1, 2], [7, -8, 5]):
        i = np.array(index)
        for mode in ("wrap", "clip"):
            block("take " + mode, [numbers(4), i], np.take(numbers(4), i, mode=mode))
            block(f"take {mode} along 1", [numbers(2, 4), i], np.take(numbers(2, 4), i, 1, mode=mode))
    i = np.array([[0, -1], [5, 2]])
    block("take", [numbers(2, 3), i], np.take(numbers(2, 3), i))
    block("take", [numbers(3, 3, dtype="int32"), i], np.take(numbers(3, 3, dtype="int32"), i))
    x, i = numbers(3, 4), np.array([[0, 3, 1]])
    block("gather along 1", [x, i], np.take_along_axis(x[:1], i, 1))
    i = np.array([[2, 0]])
    block("gather along 0", [x, i], np.take_along_axis(x[:, :2], i, 0))
    x = numbers(2, 3, 4)
    i = np.array([[1, 2], [0, -1], [1, 2]])
    block("gather_nd", [x, i], x[i[:, 0], i[:, 1]])
    i = np.array([[[2, 3], [0, 0]], [[1, 1], [-1, -2]]])
    block("gather_nd of batches", [x, i], np.stack([x[b][i[b, :, 0], i[b, :, 1]] for b in (0, 1)]))
    x = numbers(3, 4)
    block("compress along 1", [x], np.compress([True, False, True], x, 1))
    block("compress", [x], np.compress([False, True, True, False, True], x))
    a = np.array([[0, 1], [2, 1]])
    choices = [numbers(2, 2, seed=s) for s in range(3)]
    block("choose", [a, *choices], np.choose(a, choices))
    a = np.array([0, 4, -1])
    for mode in ("wrap", "clip"):
        block("choose " + mode, [a, numbers(2, 1), numbers(), numbers(3)],
              np.choose(a, [numbers(2, 1), numbers(), numbers(3)], mode=mode))


def places():
    block("nonzero", [], list(np.nonzero(np.array([[0, 2, 0], [3, 0, 4]]))))
    block("flatnonzero", [], np.flatnonzero(np.array([[0, 2, 0], [3, 0, 4]])))
    i = np.array([[0, 23], [7, 12]])
    block("unravel_index 2,3,4", [i], list(np.unravel_index(i, (2, 3, 4))))
    a, b = np.array([[0, 1], [1, 0]]), np.array([2, 0])
    block("ravel_multi_index 2,3", [a, b], np.ravel_multi_index((a, b), (2, 3)))
    a, b = np.array([-1, 5, 1]), np.array([7, -7, 2])
    for mode in ("wrap", "clip"):
        block(f"ravel_multi_index {mode}", [a, b], np.ravel_multi_index((a, b), (2, 3), mode=mode))
    p = np.array([[2, 0, 1], [0, 2, 1]])
    block("inverse_permutation", [p], np.argsort(p, -1))
    block("inverse_permutation", [p[0]], np.argsort(p[0]))
    x = numbers(2, 3)
    block("permute_row_elements", [x, p], np.take_along_axis(x, p, -1))
    block("permute_row_elements back", [x, p], np.take_along_axis(x, np.argsort(p, -1), -1))
    i = np.array([2, 0, 1])
    block("one_hot 3 in front", [i], np.eye(3)[i].T)


def written(x, index, value, how):
    y = x.copy()
    if how == "set":
        y[index] = value
    else:
        f = {"inc": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[how]
        f.at(y, index, value)
    return y


def writes():
    rows = np.array([2, 0, 2, -1])
    for dtype in ("float64", "int32", "uint8", "bool"):
        for how in ("set", "inc", "mul", "max", "min"):
            if dtype == "bool" and how in ("inc", "mul"):
                continue
            x, v = numbers(3, 2, dtype=dtype), numbers(4, 2, dtype=dtype, seed=3)
            block(how + " rows", [x, rows, v], written(x, rows, v, how))
            x, v = numbers(2, 3, dtype=dtype), numbers(2, 4, dtype=dtype, seed=3)
            block(how + " columns", [x, rows, v], written(x, (slice(None), rows), v, how))
            x, v = numbers(3, 3, dtype=dtype), numbers(4, dtype=dtype, seed=3)
            cells = (rows, np.array([0, 1, 0, 2]))
            block(how + " cells", [x, rows, v], written(x, cells, v, how))
            x, v = numbers(5, dtype=dtype), numbers(2, dtype=dtype, seed=3)
            block(how + " slice", [x, v], written(x, slice(None, 0, -2), v, how))
            if how != "inc":
                x = numbers(3, 2, dtype=dtype)
                mask = np.array([True, False, True])
                block(how + " mask", [x, mask, v], written(x, mask, v, how))
            x, v = numbers(6, dtype=dtype), numbers(2, dtype=dtype, seed=3)
            block(how + " step", [x, np.array(-2), v], written(x, slice(4, 0, -2), v, how))
    special = np.array([0.0, np.nan, 1.0, -0.0])
    i, v = np.array([0, 0, 1, 2, 3]), np.array([2.0, np.nan, 1.0, np.inf, -1.0])
    for how in ("max", "min"):
        block(how + " NaN", [special, i, v], written(special, i, v, how))
    zeros = np.array([0.0, 2.0, 3.0, 0.0])
    i, v = np.array([0, 1, 1, 1, 2, 3]), np.array([3.0, 0.0, 5.0, 2.0, 0.0, 0.0])
    block("mul zeros", [zeros, i, v], written(zeros, i, v, "mul"))


def scatters():
    index = np.array([[1, 2, 1], [0, 1, 0]])
    for dtype in both:
        for how in ("set", "inc", "mul", "max", "min"):
            x, v = numbers(3, 3, dtype=dtype), numbers(2, 3, dtype=dtype, seed=2)
            place = (index, np.broadcast_to(np.arange(3), (2, 3)))
            block(f"scatter {how} along 0", [x, index, v], written(x, place, v, how))
            x, v = numbers(4, 5, dtype=dtype), numbers(2, 3, dtype=dtype, seed=2)
            place = (np.broadcast_to(np.arange(2)[:, None], (2, 3)), index)
            block(f"scatter {how} along 1", [x, index, v], written(x, place, v, how))
            x, v = numbers(2, 3, 2, dtype=dtype), numbers(3, 2, dtype=dtype, seed=2)
            i = np.array([[1, 2], [0, -1], [1, 2]])
            block(f"scatter_nd {how}", [x, i, v], written(x, (i[:, 0], i[:, 1]), v, how))
    x, i, v = numbers(3, 4), np.array([[2], [0], [-1]]), numbers(3, 1, seed=4)
    y = x.copy()
    np.put_along_axis(y, i, v, 1)
    block("put_along_axis", [x, i, v], y)
    i = np.array([[2, 0, 1, 1]])
    y = x.copy()
    np.put_along_axis(y, i, 7, 0)
    block("put_along_axis 7 along 0", [x, i], y)


def samples():
    for x in (numbers(4), numbers(2, 3), numbers(2, 3, dtype="float32")):
        block("trapezoid", [x], np.trapezoid(x))
        block("trapezoid 0.5 along 0", [x], np.trapezoid(x, dx=0.5, axis=0))
    x, y = np.array([0.0, 1.0, 4.0]), numbers(2, 3)
    block("trapezoid at", [y, x], np.trapezoid(y, x))
    at, values = np.array([-1.0, 0.5, 2.0, 2.5]), np.array([1.0, -2.0, 3.0, 0.0])
    x = np.array([[-2.0, -1.0, 0.0, 0.5], [2.25, 2.5, 3.0, np.nan]])
    block("interp", [x, at, values], np.interp(x, at, values))
    block("interp 7,8", [x, at, values], np.interp(x, at, values, 7, 8))
    x = np.array([-2.0, -1.0, 3.0])
    block("interp", [x, at[:1], values[:1]], np.interp(x, at[:1], values[:1]))


if __name__ == "__main__":
    for family in (reads, places, writes, scatters, samples):
        family()
    with open(os.path.join(here, "index_values.txt"), "w") as out:
        out.write("\n".join(fixtures.blocks) + "\n")
