#!/usr/bin/env python3
"""The rows of array_rows.cpp in NumPy, PyTorch and JAX, whichever there are: array_peers.py THREADS
[--quick]. Prints {row: {peer: [seconds of each repeat]}}.
"""

import importlib
import json
import os
import sys
import time

threads, quick = int(sys.argv[1]), "--quick" in sys.argv
if threads == 1:
    os.environ["XLA_FLAGS"] = ("--xla_cpu_multi_thread_eigen=false "
                               "intra_op_parallelism_threads=1")


def found(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


np = found("numpy")
if np is None:
    print("{}")
    sys.exit()

few, many = 100_000, 1_000_000
random = np.random.default_rng(1)
normal = lambda *shape: random.normal(size=shape).astype("float32")
table, vector, wide = normal(few, 16), normal(many), normal(10_000, 100)
doubles, square, column = vector.astype("float64"), normal(1000, 1000), normal(4 * many)
places, image = random.integers(0, few, many), normal(2048, 2048)


def times(action):
    action()
    result = []
    for _ in range(5 if quick else 21):
        start = time.perf_counter()
        action()
        result.append(time.perf_counter() - start)
    return result


def numpy_rows():
    def added(x, at, v):
        x = x.copy()
        np.add.at(x, at, v)
        return x

    def topk(x, k):
        part = np.take_along_axis(x, np.argpartition(x, -k)[:, -k:], 1)
        return np.sort(part)[:, ::-1]

    return {
        "gather": lambda: table[places],
        "scatter": lambda: added(np.zeros(few, "float32"), places, vector),
        "sort": lambda: np.sort(vector),
        "sort doubles": lambda: np.sort(doubles),
        "sort rows": lambda: np.sort(wide),
        "sort columns": lambda: np.sort(square, 0),
        "argsort": lambda: np.argsort(vector, kind="stable"),
        "argsort rows": lambda: np.argsort(wide, kind="stable"),
        "topk": lambda: topk(square, 10),
        "cumsum": lambda: np.cumsum(column),
        "cumsum columns": lambda: np.cumsum(image, 0),
        "strided": lambda: image[:, ::2] * 2 + image[:, 1::2],
    }


def torch_rows(torch):
    torch.set_num_threads(threads)
    t = {name: torch.from_numpy(value) for name, value in globals().items()
         if isinstance(value, np.ndarray)}
    return {
        "gather": lambda: t["table"][t["places"]],
        "scatter": lambda: torch.zeros(few).index_add_(0, t["places"], t["vector"]),
        "sort": lambda: torch.sort(t["vector"]),
        "sort doubles": lambda: torch.sort(t["doubles"]),
        "sort rows": lambda: torch.sort(t["wide"]),
        "sort columns": lambda: torch.sort(t["square"], 0),
        "argsort": lambda: torch.argsort(t["vector"], stable=True),
        "argsort rows": lambda: torch.argsort(t["wide"], stable=True),
        "topk": lambda: torch.topk(t["square"], 10),
        "cumsum": lambda: torch.cumsum(t["column"], 0),
        "cumsum columns": lambda: torch.cumsum(t["image"], 0),
        "strided": lambda: t["image"][:, ::2] * 2 + t["image"][:, 1::2],
    }


def jax_rows(jax):
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    rows = {
        "gather": (lambda x, at: x[at], table, places),
        "scatter": (lambda at, v: jnp.zeros(few, v.dtype).at[at].add(v), places, vector),
        "sort": (jnp.sort, vector),
        "sort doubles": (jnp.sort, doubles),
        "sort rows": (jnp.sort, wide),
        "sort columns": (lambda x: jnp.sort(x, 0), square),
        "argsort": (jnp.argsort, vector),
        "argsort rows": (jnp.argsort, wide),
        "topk": (lambda x: jax.lax.top_k(x, 10), square),
        "cumsum": (jnp.cumsum, column),
        "cumsum columns": (lambda x: jnp.cumsum(x, 0), image),
        "strided": (lambda x: x[:, ::2] * 2 + x[:, 1::2], image),
    }

    def action(function, *arguments):
        compiled = jax.jit(function)
        there = [jax.device_put(a) for a in arguments]
        return lambda: jax.block_until_ready(compiled(*there))

    return {row: action(*parts) for row, parts in rows.items()}


torch, jax = found("torch"), found("jax")
peers = {"NumPy": numpy_rows()}
if torch is not None:
    peers["PyTorch"] = torch_rows(torch)
if jax is not None:
    peers["JAX"] = jax_rows(jax)
result = {}
for row in peers["NumPy"]:
    result[row] = {peer: times(rows[row]) for peer, rows in peers.items()}
print(json.dumps(result))
