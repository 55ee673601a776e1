"""Writes nn_values.txt: values of functions for neural networks by NumPy and SciPy. Run with NumPy
2.4.

A block is a line "@ function axis" and then a line for each operand and the result: the sizes, "|",
the elements.
"""

import os

import numpy as np
import scipy.special as special

here = os.path.dirname(os.path.abspath(__file__))


def line(out, array):
    array = np.asarray(array)
    sizes = " ".join(map(str, array.shape))
    out.write(f"{sizes} | {' '.join(repr(v) for v in array.ravel().tolist())}\n")


def block(out, name, axis, operands, result):
    out.write(f"@ {name} {axis}\n")
    for operand in operands:
        line(out, operand)
    line(out, result)


def layer_norm(x, gamma, beta, axis, eps=1e-5):
    mean = x.mean(axis, keepdims=True)
    variance = x.var(axis, keepdims=True)
    shape = [1] * x.ndim
    shape[axis] = -1
    return (x - mean) / np.sqrt(variance + eps) * gamma.reshape(shape) + beta.reshape(shape)


def picked(p, labels):
    return np.take_along_axis(p, labels[..., None], -1)[..., 0]


def main():
    rng = np.random.default_rng(3)

    def reals(*shape, scale=3.0):
        return (rng.standard_normal(shape) * scale).astype(np.float32).astype(np.float64)

    inf = np.inf
    rows = [reals(3, 4), reals(2, 3, 4), reals(5), reals(2, 3) + 1000, reals(2, 3) - 1000,
            np.array([[-inf, 0.0, 1.0], [2.0, -inf, -inf]])]
    with open(os.path.join(here, "nn_values.txt"), "w") as out:
        for x in rows:
            for axis in range(-1, x.ndim if np.isfinite(x).all() else 0):
                block(out, "softmax", axis, [x], special.softmax(x, axis))
                block(out, "log_softmax", axis, [x], special.log_softmax(x, axis))
                block(out, "logsumexp", axis, [x], special.logsumexp(x, axis))
                block(out, "logsumexp_keepdims", axis, [x], special.logsumexp(x, axis, keepdims=True))
        edge = np.array([[-inf, -inf], [inf, 1.0], [np.nan, 1.0]])
        block(out, "logsumexp", -1, [edge], np.array([-inf, inf, np.nan]))

        for shape in ((4, 5), (2, 3, 5), (5,)):
            logits = reals(*shape)
            labels = rng.integers(0, 5, shape[:-1])
            target = special.softmax(reals(*shape), -1)
            p = special.softmax(logits, -1)
            log_p = special.log_softmax(logits, -1)
            block(out, "pick", -1, [logits, labels], picked(logits, labels))
            block(out, "cross_entropy_from_logits", -1, [logits, labels], -picked(log_p, labels))
            block(out, "categorical_crossentropy", -1, [p, labels], -picked(np.log(p), labels))
            block(out, "categorical_crossentropy", -1, [p, target], -(target * np.log(p)).sum(-1))
            block(out, "crossentropy_of_softmax", -1, [logits, labels], -picked(log_p, labels))
            block(out, "crossentropy_of_softmax", -1, [logits, target], -(target * log_p).sum(-1))
        logits = np.array([[900.0, -900.0, 0.0], [-3.0, 200.0, 1.0]])
        labels = np.array([1, 1])
        log_p = special.log_softmax(logits, -1)
        block(out, "crossentropy_of_softmax", -1, [logits, labels], -picked(log_p, labels))

        p = rng.uniform(0.05, 0.95, (3, 4))
        t = rng.uniform(0, 1, (3, 4))
        z = np.concatenate([reals(3, 3), np.array([[200.0], [-200.0], [40.0]])], 1)
        block(out, "binary_crossentropy", 0, [p, t], -(t * np.log(p) + (1 - t) * np.log(1 - p)))
        loss = t * np.logaddexp(0, -z) + (1 - t) * np.logaddexp(0, z)
        block(out, "crossentropy_of_sigmoid", 0, [z, t], loss)
        block(out, "binary_cross_entropy_from_logits", 0, [z, t], loss)

        for shape, axis in (((3, 6), -1), ((3, 6), 0), ((2, 5, 4), 1)):
            x, gamma, beta = reals(*shape) + 5, reals(shape[axis]), reals(shape[axis])
            block(out, "layer_norm", axis, [x, gamma, beta], layer_norm(x, gamma, beta, axis))


main()
