"""Writes optimizers.npz: what ten steps of each optimizer make of the parameters of a small problem,
in float64. Run with NumPy 2.4 and optax 0.2.8.

"RULE.w.K" and "RULE.b.K" are the parameters after K steps. The formulas are written out here; where
optax has the same one, both must agree.
"""

import os

import jax
import numpy as np
import optax

jax.config.update("jax_enable_x64", True)
here = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(11)
x = np.round(rng.standard_normal((5, 3)), 3)
y = np.round(rng.standard_normal((5, 2)), 3)
start = {"w": np.round(rng.standard_normal((3, 2)), 3), "b": np.array([0.25, -0.5])}
arrays = {"x": x, "y": y, "w": start["w"], "b": start["b"]}


def gradients(p):
    """Of mean((tanh(x w) + b - y)^2)."""
    h = np.tanh(x @ p["w"])
    d = 2 * (h + p["b"] - y) / y.size
    return {"w": x.T @ (d * (1 - h * h)), "b": d.sum(0)}


def sgd(p, g, s, k, lr=0.01):
    return p - lr * g


def momentum(p, g, s, k, lr=0.01, mu=0.9):
    s["v"] = mu * s.get("v", 0) - lr * g
    return p + s["v"]


def nesterov(p, g, s, k, lr=0.01, mu=0.9):
    s["v"] = mu * s.get("v", 0) - lr * g
    return p + mu * s["v"] - lr * g


def adagrad(p, g, s, k, lr=0.001, start=0.1, eps=1e-7):
    s["s"] = s.get("s", start) + g * g
    return p - lr * g / np.sqrt(s["s"] + eps)


def rmsprop(p, g, s, k, lr=0.001, rho=0.9, eps=1e-7):
    s["s"] = rho * s.get("s", 0) + (1 - rho) * g * g
    return p - lr * g / np.sqrt(s["s"] + eps)


def adadelta(p, g, s, k, lr=1.0, rho=0.95, eps=1e-6):
    s["s"] = rho * s.get("s", 0) + (1 - rho) * g * g
    t = s.get("t", 0)
    d = g * np.sqrt(t + eps) / np.sqrt(s["s"] + eps)
    s["t"] = rho * t + (1 - rho) * d * d
    return p - lr * d


def adam(p, g, s, k, lr=0.001, b1=0.9, b2=0.999, eps=1e-8, decay=0.0):
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
    step = s["m"] / (1 - b1**k) / (np.sqrt(s["v"] / (1 - b2**k)) + eps)
    return p - lr * (step + decay * p)


def adamax(p, g, s, k, lr=0.002, b1=0.9, b2=0.999, eps=1e-8):
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["u"] = np.maximum(b2 * s.get("u", 0), abs(g))
    return p - lr / (1 - b1**k) * s["m"] / (s["u"] + eps)


def run(title, rule, other=None, **options):
    p, state = dict(start), {name: {} for name in start}
    q, other_state = dict(start), other.init(start) if other else None
    for k in range(1, 11):
        g = gradients(p)
        p = {name: rule(p[name], g[name], state[name], k, **options) for name in p}
        if other:
            moves, other_state = other.update(gradients(q), other_state, q)
            q = {name: np.asarray(q[name] + moves[name]) for name in q}
            for name in p:
                np.testing.assert_allclose(p[name], q[name], rtol=1e-9, err_msg=title)
        if k in (1, 2, 10):
            for name in p:
                arrays[f"{title}.{name}.{k}"] = p[name]


run("sgd", sgd, optax.sgd(0.01))
run("sgd at 0.5", sgd, optax.sgd(0.5), lr=0.5)
run("momentum", momentum, optax.sgd(0.01, momentum=0.9))
run("momentum at 0.2", momentum, optax.sgd(0.2, momentum=0.5), lr=0.2, mu=0.5)
run("nesterov_momentum", nesterov, optax.sgd(0.01, momentum=0.9, nesterov=True))
run("nesterov_momentum at 0.2", nesterov, optax.sgd(0.2, momentum=0.5, nesterov=True), lr=0.2,
    mu=0.5)
run("adagrad", adagrad, optax.adagrad(0.001))
run("adagrad at 0.3", adagrad, optax.adagrad(0.3, 0.0, 1e-3), lr=0.3, start=0.0, eps=1e-3)
run("rmsprop", rmsprop, optax.rmsprop(0.001, eps=1e-7))
run("rmsprop at 0.05", rmsprop, optax.rmsprop(0.05, 0.7, 1e-4), lr=0.05, rho=0.7, eps=1e-4)
run("adadelta", adadelta, optax.adadelta(1.0, 0.95, 1e-6))
run("adadelta at 0.5", adadelta, optax.adadelta(0.5, 0.8, 1e-3), lr=0.5, rho=0.8, eps=1e-3)
run("adam", adam, optax.adam(0.001))
run("adam at 0.1", adam, optax.adam(0.1, 0.5, 0.8, 1e-3), lr=0.1, b1=0.5, b2=0.8, eps=1e-3)
run("adam without means", adam, None, b1=0.0, b2=0.0)
run("adamax", adamax)
run("adamax at 0.1", adamax, lr=0.1, b1=0.5, b2=0.8, eps=1e-3)
run("adamw", adam, optax.adamw(0.001, weight_decay=0.01), decay=0.01)
run("adamw at 0.1", adam, optax.adamw(0.1, 0.5, 0.8, 1e-3, weight_decay=0.3), lr=0.1, b1=0.5, b2=0.8,
    eps=1e-3, decay=0.3)
np.savez_compressed(os.path.join(here, "optimizers.npz"), **arrays)
