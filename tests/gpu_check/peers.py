#!/usr/bin/env python3
"""The rows of the benchmark in PyTorch or JAX: peers.py torch|jax FILE [--rehearse].

Writes {row: {"torch eager": seconds, ...}}, after each row, so that what was measured stays when
time runs out. Ends with status 77 where the framework is not on this machine or sees no GPU.
"""
import json
import math
import os
import pathlib
import sys
import time

ABSENT = 77
SIZES = (512, 1024, 2048, 4096, 8192)
KINDS = ("float32", "TF32", "float16", "bfloat16")


def seconds_of(run, wait, rehearse):
    """The fastest time of one run, of so many at once that waiting for them does not show."""
    for _ in range(3):
        run()
    wait()
    began = time.perf_counter()
    run()
    wait()
    once = max(time.perf_counter() - began, 1e-6)
    count = 1 if rehearse else max(1, min(2000, int(10e-3 / once)))
    times = []
    for _ in range(1 if rehearse else 7):
        began = time.perf_counter()
        for _ in range(count):
            run()
        wait()
        times.append((time.perf_counter() - began) / count)
    return min(times)


class Sizes:
    def __init__(self, rehearse):
        self.elements = 1 << 15 if rehearse else 1 << 26
        self.square = (lambda n: n // 64) if rehearse else (lambda n: n)
        self.batch, self.width = (20, 32) if rehearse else (4096, 4096)
        self.rows = 128 if rehearse else 8192


def memory_rows(sizes, m):
    """(row, shape, dtype, function): `m` holds the functions of the framework."""
    n = sizes.elements
    chain = lambda x: m.exp(-x * x) * 0.5 + m.tanh(x) * x
    yield "elementwise chain, float32", (n // 4096, 4096), "float32", chain
    yield "elementwise chain, float16", (n // 2048, 4096), "float16", chain
    for columns in (1024, 4096, 16384):
        shape = (n // columns, columns)
        yield f"softmax, rows of {columns}", shape, "float32", m.softmax
        yield f"layer norm, rows of {columns}", shape, "float32", m.layer_norm
    shape = (n // 1024, 1024)
    yield "sum of all", shape, "float32", lambda x: m.sum(x * x, None)
    yield "sums of rows of 1024", shape, "float32", lambda x: m.sum(x, 1)
    yield "sums of columns, 1024 of them", shape, "float32", lambda x: m.sum(x, 0)
    yield "largest of each row of 1024", shape, "float32", m.largest
    for dtype, factor in (("float32", 1), ("float16", 2)):
        yield (f"transpose, {dtype}", (n * factor // sizes.rows, sizes.rows), dtype,
               lambda x: m.transpose(x) * 1.5)


class Torch:
    """One row at a time: eager, then compiled."""

    def __init__(self, torch, rehearse, keep):
        self.torch, self.rehearse, self.keep = torch, rehearse, keep
        self.sizes = Sizes(rehearse)
        nn = torch.nn.functional
        self.exp, self.tanh = torch.exp, torch.tanh
        self.softmax = lambda x: torch.softmax(x, -1)
        self.layer_norm = lambda x: nn.layer_norm(x, x.shape[-1:])
        self.sum = lambda x, axis: x.sum() if axis is None else x.sum(axis)
        self.largest = lambda x: x.amax(1)
        self.transpose = lambda x: x.t().contiguous()

    def both(self, row, function, *arguments):
        wait = self.torch.cuda.synchronize
        self.keep(row, "torch eager",
                  seconds_of(lambda: function(*arguments), wait, self.rehearse))
        self.torch._dynamo.reset()
        compiled = self.torch.compile(function, dynamic=False)
        self.keep(row, "torch compiled",
                  seconds_of(lambda: compiled(*arguments), wait, self.rehearse))

    def operand(self, shape, dtype):
        torch = self.torch
        count = math.prod(shape)
        values = (torch.arange(count, device="cuda") * 7 % 251 - 125).to(torch.float32) / 64
        return values.reshape(shape).to(getattr(torch, dtype))

    def memory(self):
        for row, shape, dtype, function in memory_rows(self.sizes, self):
            self.both(row, function, self.operand(shape, dtype))

    def products(self):
        torch = self.torch
        for kind in KINDS:
            torch.backends.cuda.matmul.allow_tf32 = kind == "TF32"
            dtype = torch.float32 if kind == "TF32" else getattr(torch, kind)
            for size in SIZES:
                n = self.sizes.square(size)
                a = torch.randint(-1, 2, (n, n), device="cuda").to(dtype)
                b = torch.randint(-2, 3, (n, n), device="cuda").to(dtype)
                bias = torch.randint(0, 4, (n,), device="cuda").to(dtype)
                wait = torch.cuda.synchronize
                # There is nothing to compile in one product.
                for suffix, run in (("", lambda: a @ b),
                                    (", bias", lambda: torch.addmm(bias, a, b))):
                    self.keep(f"{size} x {size}, {kind}{suffix}", "torch eager",
                              seconds_of(run, wait, self.rehearse))

    def steps(self):
        torch, nn = self.torch, self.torch.nn
        batch, width = self.sizes.batch, self.sizes.width
        x = torch.rand(batch, 784, device="cuda")
        y = torch.arange(batch, device="cuda") % 10
        for tf32 in (False, True):
            torch.backends.cuda.matmul.allow_tf32 = tf32
            model = nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width),
                                  nn.ReLU(), nn.Linear(width, 10)).cuda()

            def step(forward, model=model):
                cost = nn.functional.cross_entropy(forward(x), y)
                cost.backward()
                with torch.no_grad():
                    for p in model.parameters():
                        p -= 0.01 * p.grad
                        p.grad = None

            row = f"MLP step, {'TF32' if tf32 else 'float32'}"
            wait = torch.cuda.synchronize
            self.keep(row, "torch eager", seconds_of(lambda: step(model), wait, self.rehearse))
            torch._dynamo.reset()
            compiled = torch.compile(model, dynamic=False)
            self.keep(row, "torch compiled",
                      seconds_of(lambda: step(compiled), wait, self.rehearse))

    def calls(self):
        torch = self.torch
        w, v = torch.zeros(1000, device="cuda"), torch.ones(1000, device="cuda")
        z, y = torch.zeros(300, device="cuda"), torch.ones(300, device="cuda")

        def step():
            w.add_(v)
            z.add_(y)

        wait = torch.cuda.synchronize
        self.keep("two kernels, graphs off", "torch eager",
                  seconds_of(step, wait, self.rehearse))
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            step()
        wait()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        self.keep("two kernels, graphs on", "torch eager",
                  seconds_of(graph.replay, wait, self.rehearse))

    def run(self):
        for part in (self.calls, self.products, self.steps, self.memory):
            part()


class Jax:
    def __init__(self, jax, rehearse, keep):
        self.jax, self.rehearse, self.keep = jax, rehearse, keep
        self.sizes = Sizes(rehearse)
        np = self.np = jax.numpy
        self.exp, self.tanh, self.sum = np.exp, np.tanh, np.sum
        self.softmax = lambda x: jax.nn.softmax(x, -1)
        self.largest = lambda x: np.max(x, 1)
        self.transpose = np.transpose

    def layer_norm(self, x):
        np = self.np
        return (x - np.mean(x, -1, keepdims=True)) / np.sqrt(np.var(x, -1, keepdims=True) + 1e-5)

    def measure(self, row, function, *arguments):
        compiled = self.jax.jit(function)
        last = [None]

        def run():
            last[0] = compiled(*arguments)

        self.keep(row, "jax", seconds_of(run, lambda: self.jax.block_until_ready(last[0]),
                                         self.rehearse))

    def memory(self):
        np = self.np
        for row, shape, dtype, function in memory_rows(self.sizes, self):
            values = (np.arange(math.prod(shape)) % 251 * 7 % 251 - 125).astype(np.float32) / 64
            self.measure(row, function, values.reshape(shape).astype(dtype))

    def products(self):
        np = self.np
        for kind in KINDS:
            precision = "highest" if kind == "float32" else "default"
            dtype = "float32" if kind == "TF32" else kind
            for size in SIZES:
                n = self.sizes.square(size)
                flat = np.arange(n * n) % 8191
                a = (flat % 3 - 1).reshape(n, n).astype(dtype)
                b = (flat % 5 - 2).reshape(n, n).astype(dtype)
                bias = (np.arange(n) % 4).astype(dtype)
                product = lambda a, b: np.matmul(a, b, precision=precision)
                self.measure(f"{size} x {size}, {kind}", product, a, b)
                self.measure(f"{size} x {size}, {kind}, bias",
                             lambda a, b, bias: product(a, b) + bias, a, b, bias)

    def steps(self):
        jax, np = self.jax, self.np
        batch, width = self.sizes.batch, self.sizes.width
        keys = jax.random.split(jax.random.PRNGKey(0), 4)
        x, y = jax.random.uniform(keys[3], (batch, 784)), np.arange(batch) % 10
        sizes = (784, width, width, 10)
        for tf32 in (False, True):
            precision = "default" if tf32 else "highest"
            parameters = [(jax.random.normal(keys[i], sizes[i:i + 2]) * math.sqrt(2 / sizes[i]),
                           np.zeros(sizes[i + 1])) for i in range(3)]

            def cost(parameters, precision=precision):
                hidden = x
                for i, (w, b) in enumerate(parameters):
                    hidden = np.matmul(hidden, w, precision=precision) + b
                    hidden = jax.nn.relu(hidden) if i < 2 else hidden
                return -np.mean(jax.nn.log_softmax(hidden)[np.arange(batch), y])

            @jax.jit
            def step(parameters, cost=cost):
                return jax.tree_util.tree_map(lambda p, g: p - 0.01 * g, parameters,
                                              jax.grad(cost)(parameters))

            state = [parameters]

            def run():
                state[0] = step(state[0])

            self.keep(f"MLP step, {'TF32' if tf32 else 'float32'}", "jax",
                      seconds_of(run, lambda: jax.block_until_ready(state[0]), self.rehearse))

    def run(self):
        for part in (self.products, self.steps, self.memory):
            part()


def open_framework(name):
    """The module, or None and why it is of no use here."""
    # A gigabyte is taken when it is needed, as others measure on the same GPU.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        module = __import__(name)
    except ImportError as error:
        return None, f"{name} is not on this machine ({error})"
    if name == "torch" and not module.cuda.is_available():
        return None, "torch sees no GPU"
    if name == "jax" and module.default_backend() != "gpu":
        return None, f"jax sees no GPU: its backend is {module.default_backend()}"
    return module, ""


def main():
    framework, path = sys.argv[1], pathlib.Path(sys.argv[2])
    module, why = open_framework(framework)
    if module is None:
        print(why)
        return ABSENT
    rows = {}

    def keep(row, column, seconds):
        rows.setdefault(row, {})[column] = seconds
        path.write_text(json.dumps(rows, indent=1) + "\n")
        print(f"{row}: {column} {seconds:.3e} s", flush=True)

    print(f"{framework} {module.__version__}")
    (Torch if framework == "torch" else Jax)(module, "--rehearse" in sys.argv[3:], keep).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
