"""Writes shape_values.txt: what NumPy gives for functions of shapes, creation and products. Run with
NumPy 2.4.

A block is a line "@ title", a line "in dtype sizes | elements" for each operand, and a line "out
dtype sizes | elements" for each result. The titles are those of tests/ops/shape_fixtures.cpp.
"""

import os

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
blocks = []


def line(kind, array):
    array = np.asarray(array)
    if array.dtype.kind == "f":
        elements = [repr(float(v)) for v in array.ravel()]
    else:
        elements = [str(int(v)) for v in array.ravel()]
    return " ".join([kind, str(array.dtype), *map(str, array.shape), "|", *elements])


def block(title, inputs, outputs):
    if not isinstance(outputs, (list, tuple)):
        outputs = [outputs]
    blocks.append("\n".join([f"@ {title}"] + [line("in", x) for x in inputs]
                            + [line("out", y) for y in outputs]))


def numbers(*shape, dtype="float64", seed=0):
    """Small numbers in no order, some of them equal; halves where the dtype has them."""
    k = np.arange(int(np.prod(shape)) if shape else 1) + seed
    values = (k * 7 + k * k) % 13 - 5
    if dtype.startswith("float"):
        values = values / 2
    elif dtype.startswith("u"):
        values = abs(values)
    elif dtype == "bool":
        values = values > 0
    return values.astype(dtype).reshape(shape)


def case(title, f, *shapes, dtypes=("float64", "int32"), seed=0):
    for dtype in dtypes:
        inputs = [numbers(*s, dtype=dtype, seed=seed + i) for i, s in enumerate(shapes)]
        block(title, inputs, f(*inputs))


def arrangements():
    case("flip", lambda x: np.flip(x), (2, 3), dtypes=("float64", "uint8", "bool"))
    case("flip -1", lambda x: np.flip(x, -1), (2, 3))
    case("flip 0,2", lambda x: np.flip(x, (0, 2)), (2, 3, 4))
    case("fliplr", np.fliplr, (2, 3))
    case("flipud", np.flipud, (0, 3))
    case("flipud", np.flipud, (3,))
    for k in (-1, 0, 1, 2, 3, 5):
        case(f"rot90 {k}", lambda x: np.rot90(x, k), (2, 3))
    case("rot90 1,2", lambda x: np.rot90(x, 1, (1, 2)), (2, 3, 4))
    case("rot90 -1,0", lambda x: np.rot90(x, 1, (-1, 0)), (2, 3, 4))
    for shift in (0, 1, -1, 3, 17, -17):
        case(f"roll {shift}", lambda x: np.roll(x, shift), (2, 3))
        case(f"roll {shift} along 1", lambda x: np.roll(x, shift, 1), (2, 3))
    case("roll 1", lambda x: np.roll(x, 1), (0,))
    case("roll 1 along 1", lambda x: np.roll(x, 1, 1), (0, 3))
    case("roll 1,-2", lambda x: np.roll(x, (1, -2), (0, 1)), (3, 4))
    case("roll 2 along 0,1", lambda x: np.roll(x, 2, (0, 1)), (3, 4))
    case("roll 1,1 along 0,0", lambda x: np.roll(x, (1, 1), (0, 0)), (3, 4))
    case("moveaxis 0,1", lambda x: np.moveaxis(x, (0, 1), (-1, 0)), (2, 3, 4))
    case("moveaxis -1,0", lambda x: np.moveaxis(x, (-1, 0), (0, 1)), (2, 3, 4))
    for shape in ((), (3,), (2, 3), (2, 3, 2)):
        case("atleast", lambda x: [np.atleast_1d(x), np.atleast_2d(x), np.atleast_3d(x)], shape)
    for shape in ((), (3,), (2, 3)):
        case("shape_padleft", lambda x: [x[None], x[None, None], x], shape)
        case("shape_padright", lambda x: [x[..., None], x[..., None, None], x], shape)
    case("shape_padaxis", lambda x: [x[:, None], x[..., None], x[None]], (2, 3))
    for n in (1, 2, 3):
        case(f"flatten {n}", lambda x: x.reshape(x.shape[:n - 1] + (-1,)), (2, 3, 4))
    case("flatten 1", lambda x: x.reshape(1), ())
    case("flatten 2", lambda x: x.reshape(0, 0), (0, 3, 0))
    case("broadcast_arrays", lambda *x: list(np.broadcast_arrays(*x)), (3, 1), (4,), ())


def copies():
    case("tile 2", lambda x: np.tile(x, 2), (2, 3), dtypes=("float64", "int32", "bool"))
    case("tile 2,1", lambda x: np.tile(x, (2, 1)), (2, 3))
    case("tile 2,1", lambda x: np.tile(x, (2, 1)), (3,))
    case("tile 2,3,2", lambda x: np.tile(x, (2, 3, 2)), (2, 2))
    case("tile 3,2 of more", lambda x: np.tile(x, (3, 2)), (2, 1, 3))
    case("tile 0", lambda x: np.tile(x, (0, 2)), (2, 3))
    case("tile 2", lambda x: np.tile(x, 2), ())
    case("repeat 2", lambda x: np.repeat(x, 2), (2, 3), dtypes=("float64", "int32", "bool"))
    case("repeat 2 along 1", lambda x: np.repeat(x, 2, 1), (2, 3))
    case("repeat 0 along 0", lambda x: np.repeat(x, 0, 0), (2, 3))
    case("repeat 2,0,1 along 1", lambda x: np.repeat(x, [2, 0, 1], 1), (2, 3))
    case("repeat 2,0,1 along 0", lambda x: np.repeat(x, [2, 0, 1], 0), (3,))
    case("repeat 2", lambda x: np.repeat(x, 2), ())
    case("split 2,0,3", lambda x: np.split(x, [2, 2], 1), (2, 5))
    case("split in 3", lambda x: np.split(x, 3, 1), (2, 6))
    case("split in 3", lambda x: np.split(x, 3, 1), (2, 0))
    case("array_split in 3", lambda x: np.array_split(x, 3), (7,))
    case("array_split in 3", lambda x: np.array_split(x, 3), (2, 2))
    case("hstack", lambda *x: np.hstack(x), (2, 3), (2, 1))
    case("hstack", lambda *x: np.hstack(x), (2,), (3,))
    case("hstack", lambda *x: np.hstack(x), (), ())
    case("vstack", lambda *x: np.vstack(x), (3,), (2, 3))
    case("dstack", lambda *x: np.dstack(x), (3,), (3,))
    case("dstack", lambda *x: np.dstack(x), (2, 3), (2, 3))
    case("column_stack", lambda *x: np.column_stack(x), (3,), (3, 2))


def borders():
    modes = ("edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric",
             "wrap")
    case("pad 2", lambda x: np.pad(x, 2), (2, 3), dtypes=("float64", "int32", "bool"))
    case("pad 1,2 values", lambda x: np.pad(x, [(1, 2), (0, 1)], constant_values=[(3, 4), (5, 6)]),
         (2, 3))
    for mode in modes:
        case(f"pad {mode}", lambda x: np.pad(x, [(2, 3), (1, 0)], mode=mode), (3, 4))
        case(f"pad {mode} far", lambda x: np.pad(x, (7, 8), mode=mode), (3,))
        case(f"pad {mode} far", lambda x: np.pad(x, (7, 8), mode=mode), (1,), dtypes=("float64",))
    for mode in ("maximum", "mean", "median", "minimum"):
        case(f"pad {mode} of 2,1", lambda x: np.pad(x, 2, mode=mode, stat_length=(2, 1)), (4, 3))
    case("pad linear_ramp to 3,-2",
         lambda x: np.pad(x, (3, 4), mode="linear_ramp", end_values=(3, -2)), (3,))


def creation():
    block("eye 2,4,1", [], np.eye(2, 4, 1))
    block("eye 4,2,-1", [], np.eye(4, 2, -1))
    block("tri 3,4,1", [], np.tri(3, 4, 1))
    block("tri 3,4,-2", [], np.tri(3, 4, -2))
    for k in (-3, -1, 0, 1, 4):
        case(f"tril {k}", lambda x: np.tril(x, k), (3, 4), dtypes=("float64", "bool"))
        case(f"triu {k}", lambda x: np.triu(x, k), (2, 3, 3), dtypes=("float64", "uint8"))
    special = np.array([[np.nan, np.inf], [-np.inf, np.nan]])
    block("tril -1", [special], np.tril(special, -1))
    for count in (0, 1, 2, 5):
        block(f"linspace {count}", [], [np.linspace(1, 3, count), np.linspace(1, 3, count, False)])
    block("linspace int", [], np.linspace(-3, 3, 5, dtype="int64"))
    first, last = np.array([1.0, -2.0]), np.array([[4.0], [0.5]])
    block("linspace of arrays", [first, last], np.linspace(first, last, 4))
    block("logspace", [], [np.logspace(0, 2, 5), np.logspace(1, -1, 4, False, 2)])
    block("geomspace", [], [np.geomspace(1, 1000, 4), np.geomspace(-8, -1, 4),
                            np.geomspace(2, 32, 4, False), np.geomspace(5, 7, 1)])
    block("linspace narrow", [], [np.linspace(0, 1, 7, dtype="float16"),
                                  np.linspace(-3, 2045, 12, dtype="float16"),
                                  np.linspace(0.1, 0.7, 9, dtype="float32")])
    half = np.array([1.0, -2.5], "float16"), np.array([4.0, 2049.0], "float16")
    block("linspace of arrays", half,
          np.linspace(half[0].astype(float), half[1].astype(float), 4).astype("float16"))
    single = np.array([0.1, -2.5], "float32"), np.array([4.5, 1000.1], "float64")
    block("linspace of arrays", single, np.linspace(*single, 4))
    block("linspace from float64", [single[1]], np.linspace(0, single[1], 3, dtype="float32"))
    block("logspace narrow", [], [np.logspace(0, 4, 6, dtype="float16"),
                                  np.logspace(-2, 2, 7, dtype="float32"),
                                  np.logspace(0, 2, 5, dtype="int64")])
    block("geomspace narrow", [], [np.geomspace(1, 1e4, 6, dtype="float16"),
                                   np.geomspace(3, 1e30, 7, dtype="float32"),
                                   np.geomspace(1, 1000, 4, dtype="int64"),
                                   np.geomspace(1, 10 ** 15, 16, dtype="int64"),
                                   np.geomspace(-1e6, -1, 7, dtype="int64"),
                                   np.geomspace(-200, -3, 6, dtype="int64")])
    case("identity_like", lambda x: np.eye(*x.shape, dtype=x.dtype), (3, 4),
         dtypes=("float64", "int32", "bool"))
    case("identity_like", lambda x: np.eye(*x.shape, dtype=x.dtype), (4, 2))
    case("meshgrid", lambda *x: list(np.meshgrid(*x)), (3,), (2,), (4,))
    case("meshgrid ij", lambda *x: list(np.meshgrid(*x, indexing="ij")), (3,), (2,))
    case("meshgrid sparse", lambda *x: list(np.meshgrid(*x, sparse=True)), (3,), (2,))
    block("mgrid", [], list(np.mgrid[0:3, 5:1:-2]))
    block("ogrid", [], list(np.ogrid[0:3, 5:1:-2]))


def diagonals():
    for k in (-4, -2, -1, 0, 1, 2, 5):
        case(f"diag {k}", lambda x: np.diag(x, k), (3, 4), dtypes=("float64",))
    for k in (-2, 0, 1):
        case(f"diag {k}", lambda x: np.diag(x, k), (3,))
        case(f"diagonal {k}", lambda x: np.diagonal(x, k), (3, 4, 2))
        case(f"diagonal {k} of 2,0", lambda x: np.diagonal(x, k, 2, 0), (3, 2, 4))
        case(f"trace {k}", lambda x: np.trace(x, k), (3, 4), dtypes=("float64", "int64"))
    case("diag 1", lambda x: np.diag(x, 1), (0, 0), dtypes=("float64",))
    case("diag 0", lambda x: np.diag(x), (0,), dtypes=("float64",))

    def filled(x):
        y = x.copy()
        np.fill_diagonal(y, 3)
        return y

    case("fill_diagonal", filled, (3, 4))
    case("fill_diagonal", filled, (2, 4))
    case("fill_diagonal", filled, (3, 3, 3))

    def diagonal_made(x, k, first, second):
        y = np.zeros(x.shape[:-1] + (x.shape[-1] + abs(k),) * 2, x.dtype)
        for index in np.ndindex(x.shape[:-1]):
            y[index] = np.diag(x[index], k)
        return np.moveaxis(y, (-2, -1), (first, second))

    for k in (-2, 0, 1):
        case(f"alloc_diag {k}", lambda x: diagonal_made(x, k, -2, -1), (3,))
        case(f"alloc_diag {k}", lambda x: diagonal_made(x, k, -2, -1), (2, 3))
        case(f"alloc_diag {k} at 0,1", lambda x: diagonal_made(x, k, 0, 1), (2, 3))
        case(f"alloc_diag {k} at 2,0", lambda x: diagonal_made(x, k, 2, 0), (2, 3))
    for k in (-3, -1, 0, 2, 5):
        case(f"fill_diagonal_offset {k}", lambda x: np.where(np.eye(*x.shape, k=k) != 0, 7, x)
             .astype(x.dtype), (3, 4))
        case(f"fill_diagonal_offset {k}", lambda x: np.where(np.eye(*x.shape, k=k) != 0, 7, x)
             .astype(x.dtype), (4, 2))


if __name__ == "__main__":
    for family in (arrangements, copies, borders, creation, diagonals):
        family()
    with open(os.path.join(here, "shape_values.txt"), "w") as out:
        out.write("\n".join(blocks) + "\n")
