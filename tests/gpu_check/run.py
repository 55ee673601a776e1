#!/usr/bin/env python3
"""Checks Croton on the GPU of this machine, from the folder that this file lies in.

Needs Python and NVIDIA's libraries (the driver, NVRTC, cuBLASLt; NCCL, compute-sanitizer, PyTorch
and JAX where they are). Ends with a table, `N passed, N failed`, and status 0 if nothing failed; a
row below its floor counts as failed;
with status 3 where there is no GPU: then nothing was checked. Numbers go to results.json.
"""
import argparse
import concurrent.futures
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
NO_GPU = 3
ABSENT = 77  # what programs end with that lack a library which may be absent

TWO_NAMES = "contexts=dev0->cuda0;dev1->cuda0;again->cuda0;host->cpu,device=cuda0"
EIGHT_NAMES = ("contexts=" + ";".join(f"dev{i}->cuda0" for i in range(8)) + ",device=cuda0")
# Enough of the op tests for a rehearsal on an emulated GPU.
REHEARSED_OPS = "slices with bounds known in the call"
SANITIZED = ["softmax, layer norm and cross-entropy", "gathers and scatters"]


def gpu_name():
    """The name of GPU 0, or None and why there is none."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return None, str(error)
    count, device, name = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(256)
    status = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    if status or not count.value:
        return None, f"the driver finds no GPU (status {status})"
    status = cuda.cuDeviceGet(ctypes.byref(device), 0) or cuda.cuDeviceGetName(name, 256, device)
    return (None, f"GPU 0 cannot be used (status {status})") if status else (name.value.decode(), "")


def outcome(command, seconds, variables, folder):
    """The status of a command (None where it took longer, then all that it started is ended too)
    and what it printed."""
    process = subprocess.Popen(command, text=True, errors="replace", stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=variables,
                               cwd=folder, start_new_session=True)
    try:
        text, _ = process.communicate(timeout=seconds)
        return process.returncode, text
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
        return None, text


class Check:
    """Runs steps, each within its time, and keeps what came of them."""

    def __init__(self, options):
        self.options = options
        self.out = options.out
        self.end = time.monotonic() + options.seconds
        self.results = []  # of (step, name, "passed" | "failed" | "absent", seconds, note)

    def environment(self, flags):
        variables = dict(os.environ)
        variables["CROTON_FLAGS"] = f"cache_dir={self.out / 'kernels'},{flags}"
        variables["CROTONRC"] = ""
        variables.setdefault("CROTON_TEST_DATA", str(self.options.data / "tests"))
        return variables

    def run(self, step, name, command, seconds, flags="device=cuda0", more=None, wanted=()):
        """One command. It fails by its status, by its time, or where its output lacks a pattern."""
        began = time.monotonic()
        seconds = min(seconds, self.end - began)
        log = self.out / "logs" / (re.sub(r"\W+", "_", f"{step} {name}")[:120] + ".log")
        log.parent.mkdir(parents=True, exist_ok=True)
        if seconds < 1:
            return self.keep(step, name, "failed", 0, "no time was left")
        try:
            status, text = outcome([str(word) for word in command], seconds,
                                   {**self.environment(flags), **(more or {})}, self.out)
        except OSError as error:
            status, text = 127, str(error)
        log.write_text(text)
        note, state = "", "passed"
        missing = [pattern for pattern in wanted if not re.search(pattern, text)]
        lines = [line for line in text.splitlines() if line.strip()]
        if status == ABSENT:
            state, note = "absent", lines[0] if lines else ""
        elif status is None:
            state, note = "failed", f"took more than {seconds:.0f} s; {log}"
        elif status != 0:
            state, note = "failed", f"status {status}; {log}"
        elif missing:
            state, note = "failed", f"nothing in the output matches {missing[0]!r}; {log}"
        return self.keep(step, name, state, time.monotonic() - began, note, text)

    def keep(self, step, name, state, seconds, note="", text=""):
        """A result; what failed is told at once, with the end of what it printed."""
        self.results.append((step, name, state, seconds, note))
        if state != "passed" or self.options.verbose:
            print(f"   {state}: {name}  {note}", flush=True)
        if state == "failed":
            for line in text.splitlines()[-12:]:
                print(f"      {line}")
        return state == "passed"

    def absent(self, step, why):
        return self.keep(step, step, "absent", 0, why)

    def program(self, name):
        return self.options.programs / name


def case_names(check, program, filters=""):
    """The test cases of a Catch2 program, whose status is their number."""
    command = [str(check.program(program)), "--list-test-names-only"] + ([filters] if filters else [])
    listed = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=check.environment(""), timeout=60)
    return [line.strip() for line in listed.stdout.splitlines() if line.strip()]


def case_filter(name):
    """The argument that selects one test case."""
    return re.sub(r"([,\[\]\\\"])", r"\\\1", name)


def libraries(check):
    check.run("libraries", "croton devices", [check.program("croton"), "devices"], 30,
              wanted=[r"cuda0"])


def run_cases(check, step, program, names, seconds, flags, more=None):
    """Each case in a process of its own, several at once. None is no pass."""
    if not names:
        check.keep(step, program, "failed", 0, "it has no such test case")
    with concurrent.futures.ThreadPoolExecutor(check.options.jobs) as pool:
        runs = [pool.submit(check.run, step, name,
                            [check.program(program), case_filter(name), "-w", "NoTests"], seconds,
                            flags, more) for name in names]
    for run in runs:
        run.result()


def op_tests(check):
    names = case_names(check, "test_ops")
    if check.options.rehearse:
        names = [name for name in names if name == REHEARSED_OPS]
    # The longest first.
    names.sort(key=lambda name: not name.startswith("compiled"))
    run_cases(check, "op tests", "test_ops", names, 180, "device=cuda0",
              {"CROTON_TEST_HOST_VALUES": str(check.options.data / "host_values"),
               "CROTON_TEST_LAYOUTS": "one"})


def gpu_tests(check):
    kept = check.options.data / "host_values"
    if not kept.is_dir():
        check.keep("tests on two names", "test_cuda", "failed", 0, f"{kept} is missing")
        return
    filters = "[values]" if check.options.rehearse else "[values]~[host],[products]~[host],[programs]~[host]"
    names = case_names(check, "test_cuda", filters)
    run_cases(check, "tests on two names", "test_cuda", names, 90, TWO_NAMES,
              {"CROTON_TEST_HOST_VALUES": str(kept)})


def parallel_tests(check):
    names = case_names(check, "test_parallel", "~[exhaustive]")
    run_cases(check, "functions on many contexts", "test_parallel", names, 60, EIGHT_NAMES)


def samples(check):
    data = check.options.data / "samples"
    check.run("samples", "two_contexts", [check.program("two_contexts")], 60, TWO_NAMES,
              wanted=[r"product 0 ran on dev0 \(cuda0\)", r"product 1 ran on dev1 \(cuda0\)"])
    check.run("samples", "logistic_regression", [check.program("logistic_regression"), data], 60,
              wanted=[r"113 held-out rows: (9[5-9]|100)\.\d+ % right"])
    check.run("samples", "data_parallel_mlp", [check.program("data_parallel_mlp"), data], 60,
              "contexts=dev0->cuda0;dev1->cuda0,device=cuda0", wanted=[r"the first step is that of one device\n",
                                 r"359 held-out images: (9[5-9]|100)\.\d+ % right"])
    if not check.options.rehearse:
        check.run("samples", "mlp", [check.program("mlp"), data], 60,
                  wanted=[r"359 held-out images: (9[6-9]|100)\.\d+ % right"])


def nccl(check):
    check.run("NCCL", "one rank", [check.program("gpu_check"), "nccl"], 60, "",
              wanted=["all-reduce, sum: right"])


def sanitizer(check):
    places = [os.environ.get(name, "") + "/bin" for name in ("CUDA_HOME", "CUDA_PATH")]
    tool = shutil.which("compute-sanitizer", path=os.pathsep.join(
        [os.environ.get("PATH", ""), *places, "/usr/local/cuda/bin",
         "/usr/local/cuda/compute-sanitizer", "/opt/cuda/bin"]))
    if not tool:
        check.absent("compute-sanitizer", "no compute-sanitizer in PATH, CUDA_HOME, /usr/local/cuda")
        return
    more = {"CROTON_TEST_HOST_VALUES": str(check.options.data / "host_values")}
    for kind in ("memcheck", "racecheck"):
        for name in SANITIZED:
            check.run("compute-sanitizer", f"{kind}: {name}",
                      [tool, "--tool", kind, "--error-exitcode", "9", check.program("test_cuda"),
                       case_filter(name), "-w", "NoTests"], 40, TWO_NAMES, more,
                      wanted=["All tests passed"])


def benchmark(check):
    command = [check.program("gpu_check"), "bench", "--json", check.out / "benchmark.json"]
    check.run("benchmark", "values", command + (["--rehearse"] if check.options.rehearse else []),
              180, "device=cuda0", wanted=[r"values of [1-9]\d* rows checked, 0 faults"])


def peers(check):
    for framework in ("torch", "jax"):
        command = [sys.executable, HERE / "peers.py", framework, check.out / f"{framework}.json"]
        check.run("peers", framework,
                  command + (["--rehearse"] if check.options.rehearse else []), 75)


STEPS = {"libraries": libraries, "nccl": nccl, "samples": samples, "tests": gpu_tests,
         "parallel": parallel_tests, "benchmark": benchmark, "ops": op_tests, "peers": peers,
         "sanitizer": sanitizer}


def read_json(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def readable(seconds):
    for unit, factor in (("us", 1e6), ("ms", 1e3)):
        if seconds * factor < 1000:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds:.2f} s"


def print_table(rows, others):
    """One line a row of the benchmark: the fastest times, those of other frameworks beside them."""
    columns = sorted({column for times in others.values() for column in times})
    print(f"\n{'':<42} {'Croton':>10} {'against':<16} {'ratio':>6}  {'floor':<16}"
          + "".join(f" {column:>15}" for column in columns))
    section = None
    for row in rows:
        if row["section"] != section:
            section = row["section"]
            print(section)
        ratio = row.get("ratio", {}).get("min")
        floor = ""
        if "passed" in row:
            least = row.get("floor_ratio")
            floor = f">= {least:.2f}" if least else f"<= {readable(row['floor_seconds'])}"
            floor += "  pass" if row["passed"] else "  MISS"
        times = others.get(row["name"], {})
        print(f"  {row['name']:<40} {readable(row['seconds']['min']):>10} "
              f"{row.get('limit', {}).get('name', ''):<16} {'' if ratio is None else f'{ratio:.3f}':>6}"
              f"  {floor:<16}"
              + "".join(f" {readable(times[c]) if c in times else '-':>15}" for c in columns))


def finish(check, name, began):
    bench = read_json(check.out / "benchmark.json")
    others = {}
    for framework in ("torch", "jax"):
        for row, times in read_json(check.out / f"{framework}.json").items():
            others.setdefault(row, {}).update(times)
    rows = bench.get("rows", [])
    if rows:
        print_table(rows, others)
    with_floor = [row for row in rows if "passed" in row]
    missed = [] if check.options.rehearse else [row for row in with_floor if not row["passed"]]
    print(f"\n{'step':<22} {'passed':>7} {'failed':>7} {'absent':>7} {'seconds':>8}")
    for step in dict.fromkeys(result[0] for result in check.results):
        mine = [result for result in check.results if result[0] == step]
        counts = [sum(result[2] == state for result in mine)
                  for state in ("passed", "failed", "absent")]
        print(f"{step:<22} {counts[0]:>7} {counts[1]:>7} {counts[2]:>7} "
              f"{sum(result[3] for result in mine):>8.1f}")
    passed = sum(result[2] == "passed" for result in check.results)
    failed = sum(result[2] == "failed" for result in check.results) + len(missed)
    for row in rows:
        row["peers"] = others.get(row["name"], {})
    results = {"gpu": name, "rehearsal": check.options.rehearse, "passed": passed, "failed": failed,
               "floors_missed": [row["name"] for row in missed], "rows": rows,
               "seconds": time.monotonic() - began,
               "checks": [dict(zip(("step", "name", "state", "seconds", "note"), result))
                          for result in check.results]}
    (check.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    if check.options.rehearse:
        print("\nA rehearsal: nothing is said about speed.")
    elif with_floor:
        print(f"\n{len(with_floor) - len(missed)} of {len(with_floor)} rows with a floor reach it")
    print(f"{name}; numbers in {check.out / 'results.json'}")
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rehearse", action="store_true",
                        help="on an emulated GPU: small sizes, and nothing is said about speed")
    parser.add_argument("--only", default=",".join(STEPS),
                        help="steps between commas: " + ", ".join(STEPS))
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results",
                        help="folder for logs and numbers")
    parser.add_argument("--programs", type=pathlib.Path, default=HERE / "bin")
    parser.add_argument("--data", type=pathlib.Path, default=HERE / "data")
    parser.add_argument("--seconds", type=float, default=465, help="time for all steps together")
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1))
    parser.add_argument("--verbose", action="store_true", help="name what passes too")
    options = parser.parse_args()
    unknown = [step for step in options.only.split(",") if step not in STEPS]
    if unknown:
        parser.error(f"no step is called {unknown[0]}; there are {', '.join(STEPS)}")
    for path in ("out", "programs", "data"):
        setattr(options, path, getattr(options, path).resolve())
    name, why = gpu_name()
    if name is None:
        print(f"gpu-check: no GPU here: {why}. Nothing was checked.")
        return NO_GPU
    if "emulator" in name and not options.rehearse:
        print(f"gpu-check: {name}: only --rehearse makes sense on it. Nothing was checked.")
        return NO_GPU
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    began = time.monotonic()
    check = Check(options)
    for step in options.only.split(","):
        print(f"== {step}", flush=True)
        try:
            STEPS[step](check)
        except Exception as error:  # whatever it is, the other steps go on
            check.keep(step, step, "failed", 0, repr(error))
    return finish(check, name, began)


if __name__ == "__main__":
    sys.exit(main())
