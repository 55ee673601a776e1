"""Writes array_gradients.txt: derivatives of functions on arrays by JAX, in float64. Run with JAX
0.10 on a CPU.

The format is that of make_shape_fixtures.py, the titles those of tests/ops/array_derivatives.cpp.
The operands x_k of a function y go in. Out come numbers u of the shape of y, and v_k of the shapes
of those x_k that are floats; then the gradients of <u, y> by the x_k, and those of the sum of
<v_k, gradient by x_k>. Operands avoid ties and kinks, where conventions differ.
"""

import os

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import numpy as np
from jax import nn

jax.config.update("jax_enable_x64", True)
here = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(17)
blocks = []


def reals(*shape, low=-3.0, high=3.0):
    """Different numbers with few digits, none of them 0."""
    count = int(np.prod(shape))
    steps = rng.choice(np.arange(1, 129), count, replace=False)
    return (low + (high - low) * (steps - 0.40625) / 128).reshape(shape)


def is_real(x):
    return x.dtype.kind == "f"


def line(kind, array):
    array = np.asarray(array)
    form = "%.16g" if is_real(array) else "%d"
    elements = [form % (v + 0 if v == 0 else v) for v in array.ravel().tolist()]
    return " ".join([kind, str(array.dtype), *map(str, array.shape), "|", *elements])


def case(title, f, *operands):
    operands = [np.asarray(x) for x in operands]
    places = [k for k, x in enumerate(operands) if is_real(x)]
    xs = [jnp.asarray(operands[k]) for k in places]

    def of_reals(xs):
        full = list(operands)
        for k, x in zip(places, xs):
            full[k] = x
        return f(*full)

    u = reals(*of_reals(xs).shape)
    vs = [reals(*x.shape) for x in xs]
    slopes = jax.grad(lambda xs: jnp.sum(u * of_reals(xs)))
    second = jax.grad(lambda xs: sum(jnp.sum(v * g) for v, g in zip(vs, slopes(xs))))
    results = [u, *vs, *jax.jit(slopes)(xs), *jax.jit(second)(xs)]
    assert all(np.isfinite(r).all() for r in results), title
    blocks.append("\n".join([f"@ {title}"] + [line("in", x) for x in operands]
                            + [line("out", r) for r in results]))


def product(x, axis):
    """Without a special case at 0."""
    y = jnp.ones(())
    for part in jnp.moveaxis(x, axis, 0):
        y = y * part
    return y


def reductions():
    x = reals(3, 4)
    case("sum", lambda x: x.sum(), x)
    case("sum 0", lambda x: x.sum(0), x)
    case("sum 1 keepdims", lambda x: x.sum(1, keepdims=True), x)
    case("mean 1", lambda x: x.mean(1), x)
    case("prod", lambda x: x.prod(), reals(2, 3))
    zeros = reals(3, 4)
    zeros[0, 1] = zeros[1, 0] = zeros[1, 3] = 0
    case("prod 1", lambda x: product(x, 1), zeros)
    case("max", lambda x: x.max(), x)
    case("max 0", lambda x: x.max(0), x)
    case("min 1", lambda x: x.min(1), x)
    case("var", lambda x: x.var(), x)
    case("var 0 ddof 1", lambda x: x.var(0, ddof=1), x)
    case("std 1", lambda x: x.std(1), x)
    mask = np.array([True, False, True, True])
    case("sum where", lambda x: jnp.sum(x, 1, where=mask), x)
    case("mean where", lambda x: jnp.mean(x, 1, where=mask), x)
    case("ptp 1", lambda x: jnp.ptp(x, 1), x)
    case("average 0", lambda x, w: jnp.average(x, 0, w), reals(3, 2), reals(3, low=0.5, high=2.0))
    case("norm", lambda x: jnp.sqrt(jnp.sum(x * x)), x)
    for order in (1, 2, 3, 0.5):
        case(f"norm {order} 1", lambda x: jnp.sum(jnp.abs(x) ** order, 1) ** (1 / order), x)
    case("norm inf 0", lambda x: jnp.abs(x).max(0), x)
    case("norm -inf 0", lambda x: jnp.abs(x).min(0), x)
    case("norm fro", lambda x: jnp.linalg.norm(x, "fro"), x)
    case("norm 1 of matrices", lambda x: jnp.abs(x).sum(0).max(), x)
    case("logsumexp", lambda x: special.logsumexp(x), x)
    case("logsumexp 1 keepdims", lambda x: special.logsumexp(x, 1, keepdims=True), 300 * x)
    holes = reals(2, 3)
    holes[0, 1] = holes[1, 0] = holes[1, 2] = -np.inf
    case("logsumexp of -inf", lambda x: special.logsumexp(x, 1), holes)
    gaps = reals(3, 4)
    gaps[0, 1] = gaps[2, 0] = gaps[2, 3] = np.nan
    for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"):
        f = getattr(jnp, name)
        case(f"{name} 1", lambda x: f(x, 1), gaps)


def shapes():
    x = reals(2, 3)
    case("broadcast_to", lambda x: jnp.broadcast_to(x, (4, 2, 3)), reals(2, 1))
    case("transpose", lambda x: x.transpose(2, 0, 1), reals(2, 3, 2))
    case("expand_dims", lambda x: x[:, None], x)
    case("reshape", lambda x: x.reshape(3, 2), x)
    case("concatenate 1", lambda *x: jnp.concatenate(x, 1), x, reals(2, 1), reals(2, 2))
    case("stack 1", lambda a, b: jnp.stack([a, b], 1), x, reals(2, 3))
    case("split 1", lambda x: jnp.split(x, [1], 1)[1], x)
    case("tile 2,1", lambda x: jnp.tile(x, (2, 1)), x)
    case("repeat", lambda x: jnp.repeat(x, np.array([2, 0, 3]), 1), x)
    case("roll", lambda x: jnp.roll(x, 2, 1), x)
    case("flip 0", lambda x: jnp.flip(x, 0), x)
    case("rot90", lambda x: jnp.rot90(x), x)
    for mode in ("constant", "edge", "linear_ramp", "maximum", "mean", "minimum", "reflect",
                 "symmetric", "wrap"):
        case(f"pad {mode}", lambda x: jnp.pad(x, ((2, 3), (1, 0)), mode), x)
    case("diagonal", lambda x: jnp.diagonal(x, 1), reals(3, 4))
    case("diag", lambda x: jnp.diag(x, -1), reals(3))
    case("trace", lambda x: jnp.trace(x), reals(3, 3))
    case("tril", lambda x: jnp.tril(x, -1), reals(3, 3))
    case("triu", lambda x: jnp.triu(x, 1), reals(2, 3, 3))
    case("fill_diagonal", lambda x, v: jnp.where(np.eye(3, dtype=bool), v, x), reals(3, 3), reals())
    case("linspace", lambda a, b: jnp.linspace(a, b, 5), reals(), reals())
    case("meshgrid", lambda a, b: a[None, :] * b[:, None], reals(3), reals(2))
    case("trapezoid", lambda y, x: jnp.trapezoid(y, x), reals(4), np.sort(reals(4)))
    case("interp", lambda x, xp, fp: jnp.interp(x, xp, fp), reals(5, low=-2.5, high=2.5),
         np.array([-2.75, -1.0, 0.5, 2.0, 2.75]), reals(5))


def reads():
    x = reals(5)
    i = np.array([2, -1, 2, 0])
    case("slice", lambda x: x[4:0:-2], x)
    case("slices", lambda x: x[1:, None, ::2], reals(3, 4))
    case("take", lambda x, i: x[i], x, i)
    case("take 1", lambda x, i: x[:, i], reals(2, 3), i)
    case("take 0,1", lambda x, i, j: x[i, j], reals(3, 2), i, np.array([0, 1, 0, 1]))
    case("take 0,2", lambda x, i, j: x[i, :, j], reals(3, 2, 2), i, np.array([0, 1, 0, 1]))
    case("take of a row", lambda x, i: x[i], reals(3, 2), np.array(-1))
    case("mask", lambda x: x[np.array([True, False, True])], reals(3, 2))
    case("take_along_axis 1", lambda x, i: jnp.take_along_axis(x, i, 1), reals(2, 4),
         np.array([[0, 3, 3], [1, 0, 2]]))
    case("gather_nd", lambda x, i: x[i[:, 0], i[:, 1]], reals(2, 3, 2),
         np.array([[1, 2], [0, 0], [1, 2]]))
    case("choose", lambda a, b, c: jnp.choose(a, [b, c], mode="clip"),
         np.array([0, 1, 1]), reals(3), reals(3))
    case("permute_row_elements", lambda x, p: jnp.take_along_axis(x, p, -1), reals(2, 3),
         np.array([[2, 0, 1], [0, 2, 1]]))


HOW = {"set": lambda a, b: b, "inc": jnp.add, "mul": jnp.multiply, "max": jnp.maximum,
       "min": jnp.minimum}


def written(how, index_of):
    """Values written one after the other, to the places that an index of an array names."""
    def function(x, *rest):
        *indices, v = rest
        places = np.arange(x.size).reshape(x.shape)[index_of(*indices)]
        v = jnp.broadcast_to(v, places.shape).ravel()
        y = jnp.ravel(x)
        for k, place in enumerate(places.ravel().tolist()):
            y = y.at[place].set(HOW[how](y[place], v[k]))
        return y.reshape(x.shape)
    return function


def writes():
    rows = np.array([2, 0, 2])
    columns = np.array([1, 0, 1])
    along = np.array([[1, 2, 1], [0, 1, 0]])
    nd = np.array([[1, 2], [0, 0], [1, 2]])
    for how in HOW:
        case(f"{how} slice", written(how, lambda: slice(None, 0, -2)), reals(5), reals(2))
        case(f"{how} rows", written(how, lambda i: i), reals(3, 2), rows, reals(3, 2))
        case(f"{how} cells", written(how, lambda i, j: (i, j)), reals(3, 2), rows, columns,
             reals(3))
        case(f"{how} along 0", written(how, lambda i: (i, np.broadcast_to(np.arange(3), i.shape))),
             reals(3, 3), along, reals(2, 3))
        case(f"{how} nd", written(how, lambda i: (i[:, 0], i[:, 1])), reals(2, 3, 2), nd,
             reals(3, 2))
        if how != "inc":
            case(f"{how} mask", written(how, lambda m: m), reals(3, 2),
                 np.array([True, False, True]), reals(2))
    zeros = np.array([0.0, 2.0, 3.0, 0.0])
    case("mul zeros", written("mul", lambda i: i), zeros, np.array([0, 1, 1, 1, 2, 3]),
         np.array([3.0, 0.0, 5.0, 2.0, 0.0, 0.0]))


def products():
    m = reals(2, 3)
    case("dot", jnp.dot, reals(3), reals(3))
    case("matmul", jnp.matmul, m, reals(3, 4))
    case("matmul of the right transposed", lambda a, b: a @ b.T, m, reals(4, 3))
    case("matmul of the left transposed", lambda a, b: a.T @ b, m, reals(2, 2))
    case("matmul of batches", jnp.matmul, reals(2, 1, 2, 3), reals(2, 3, 2))
    case("matmul by a vector", jnp.matmul, m, reals(3))
    case("outer", jnp.outer, reals(2), reals(3))
    case("vecdot", lambda a, b: (a * b).sum(-1), m, reals(2, 3))
    case("tensordot 2", lambda a, b: jnp.tensordot(a, b, 2), reals(2, 2, 3), reals(2, 3, 2))
    case("batched_dot", lambda a, b: jnp.einsum("bij,bjk->bik", a, b), reals(2, 2, 2),
         reals(2, 2, 1))
    for subscripts, *sizes in (("ij,jk,kl->il", (2, 3), (3, 2), (2, 2)), ("ii->i", (3, 3)),
                               ("ij->", (2, 3)), ("ijk,ikl->ijl", (2, 2, 3), (2, 3, 2)),
                               ("i,j->ij", (2,), (3,)), ("...i,i->...", (2, 2, 3), (3,)),
                               ("ij,ij->i", (2, 3), (2, 3))):
        case(f"einsum {subscripts}", lambda *x: jnp.einsum(subscripts, *x),
             *(reals(*s) for s in sizes))


def layer_norm(x, gamma, beta):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma + beta


def picked(x, labels):
    return jnp.take_along_axis(x, labels[:, None], -1)[:, 0]


def networks():
    x = reals(2, 4)
    case("softmax", lambda x: nn.softmax(x, -1), x)
    case("softmax 0", lambda x: nn.softmax(x, 0), x)
    case("log_softmax", lambda x: nn.log_softmax(x, -1), 40 * x)
    case("log_softmax 0", lambda x: nn.log_softmax(x, 0), x)
    case("log of softmax", lambda x: nn.log_softmax(x, -1), x)
    case("layer_norm", layer_norm, x, reals(4), reals(4))
    labels = np.array([3, 0])
    odds = np.array([[0.125, 0.5, 0.25, 0.125], [0.0625, 0.1875, 0.5, 0.25]])
    case("pick", picked, x, labels)
    case("cross_entropy_from_logits", lambda x, i: -picked(nn.log_softmax(x), i), x, labels)
    case("categorical_crossentropy", lambda p, t: -(t * jnp.log(p)).sum(-1), odds, odds[::-1])
    case("crossentropy of softmax", lambda x, t: -(t * nn.log_softmax(x)).sum(-1), x, odds)
    case("binary_crossentropy", lambda p, t: -(t * jnp.log(p) + (1 - t) * jnp.log(1 - p)), odds,
         odds[::-1])
    case("binary_cross_entropy_from_logits",
         lambda z, t: t * nn.softplus(-z) + (1 - t) * nn.softplus(z), x, odds)
    case("remat", jax.checkpoint(lambda x: jnp.tanh(x * x) / 2), x)


def elementwise():
    x = np.array([-7.25, -3.5, -2.25, -0.75, -0.0625, 0.125, 0.5, 1.75, 2.625, 3.25, 6.5])
    for name in ("log_sigmoid", "elu", "selu", "celu", "silu", "mish", "relu6"):
        case(name, getattr(nn, name), x)
    case("hard_sigmoid", lambda x: jnp.clip(0.2 * x + 0.5, 0, 1), x)
    case("softsign", nn.soft_sign, x)
    case("gelu", lambda x: nn.gelu(x, approximate=False), x)
    case("gelu tanh", lambda x: nn.gelu(x, approximate=True), x[1:-1])
    positive = np.array([0.0625, 0.5, 0.875, 1.25, 7.5])
    case("xlogx", lambda x: x * jnp.log(x), positive)
    case("xlogy", special.xlogy, np.array([-2.5, -1.0, 0.25, 2.0, 3.0]), positive)
    case("xlog1py", special.xlog1py, np.array([-2.5, -1.0, 0.25, 2.0, 3.0]), positive - 0.5)
    case("ndtri", special.ndtri, np.array([0.0625, 0.25, 0.625, 0.96875]))
    case("rad2deg", jnp.rad2deg, x)
    case("masked branch", lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1)), 0), x)


def running(step, x, axis, reverse=False):
    """Without a special case at 0."""
    parts = list(jnp.moveaxis(x, axis, 0))
    if reverse:
        parts.reverse()
    for k in range(1, len(parts)):
        parts[k] = step(parts[k - 1], parts[k])
    if reverse:
        parts.reverse()
    return jnp.stack(parts, axis)


def cumulative():
    x = reals(3, 4)
    zeros = reals(3, 4)
    zeros[0, 1] = zeros[1, 0] = zeros[1, 2] = zeros[2, 3] = 0
    case("cumsum 1", lambda x: jnp.cumsum(x, 1), x)
    case("cumsum 0 reverse", lambda x: running(jnp.add, x, 0, True), x)
    case("cumsum 1 exclusive", lambda x: jnp.cumsum(x, 1) - x, x)
    case("cumprod 1", lambda x: running(jnp.multiply, x, 1), zeros)
    case("cumprod 0 reverse", lambda x: running(jnp.multiply, x, 0, True), zeros)
    case("cummax 1", lambda x: running(jnp.maximum, x, 1), x)
    case("cummin 0 reverse", lambda x: running(jnp.minimum, x, 0, True), x)
    case("logcumsumexp 1", lambda x: running(jnp.logaddexp, x, 1), 100 * x)
    case("logcumsumexp 0 reverse", lambda x: running(jnp.logaddexp, x, 0, True), x)
    case("diff 2", lambda x: jnp.diff(x, 2), x)


def sorting():
    x = reals(2, 5)
    case("sort", lambda x: jnp.sort(x, -1), x)
    case("sort 0 descending", lambda x: jnp.sort(x, 0)[::-1], x)
    case("topk 3", lambda x: jnp.sort(x, -1)[:, :1:-1], x)
    case("topk 1 smallest", lambda x: jnp.sort(x, -1)[:, :1], x)
    case("median 1", lambda x: jnp.median(x, 1), x)
    case("median 0", lambda x: jnp.median(x, 0), x)
    for method in ("linear", "lower", "midpoint"):
        case(f"quantile {method}",
             lambda x: jnp.quantile(x, np.array([0.3125, 0.75]), 1, method=method), x)
    gaps = reals(2, 5)
    gaps[0, 1] = gaps[1, 0] = gaps[1, 3] = np.nan
    case("nanmedian 1", lambda x: jnp.nanmedian(x, 1), gaps)
    case("bincount with weights", lambda i, w: jnp.zeros(4).at[i].add(w), np.array([2, 0, 2, 3]),
         reals(4))


def selections():
    case("mask of the graph", lambda x, m: x[m], reals(4, 2), np.array([True, False, False, True]))
    case("repeat by the graph", lambda x, n: jnp.repeat(x, n), reals(3), np.array([2, 0, 3]))


def main():
    for part in (reductions, shapes, reads, writes, products, networks, elementwise, cumulative,
                 sorting, selections):
        part()
    with open(os.path.join(here, "array_gradients.txt"), "w") as out:
        out.write("\n".join(blocks) + "\n")


if __name__ == "__main__":
    main()
