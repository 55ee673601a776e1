#!/usr/bin/env python3
"""Tests run.py and peers.py without a GPU: run_test.py SCRATCH. Programs are small scripts.

With a second argument, what gpu_check wrote: whether peers.py names its rows as that does.
"""
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SCRATCH = pathlib.Path(sys.argv.pop(1)).resolve()
MEASURED = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None


def load(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.dont_write_bytecode = True
run, peers = load("run"), load("peers")


class RunTest(unittest.TestCase):
    def setUp(self):
        shutil.rmtree(SCRATCH, ignore_errors=True)
        (SCRATCH / "bin").mkdir(parents=True)
        (SCRATCH / "data/host_values").mkdir(parents=True)
        run.gpu_name = lambda: ("A GPU", "")

    def program(self, name, text):
        path = SCRATCH / "bin" / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)

    def start(self, *arguments):
        sys.argv = ["run.py", "--programs", str(SCRATCH / "bin"), "--data", str(SCRATCH / "data"),
                    "--out", str(SCRATCH / "out"), *arguments]
        return run.main()

    def states(self):
        results = json.loads((SCRATCH / "out/results.json").read_text())
        return {check["name"]: check["state"] for check in results["checks"]}, results

    def test_no_gpu_is_no_pass(self):
        run.gpu_name = lambda: (None, "none")
        self.assertEqual(self.start(), run.NO_GPU)

    def test_an_emulated_gpu_is_for_rehearsals(self):
        run.gpu_name = lambda: ("some emulator", "")
        self.assertEqual(self.start(), run.NO_GPU)

    def test_what_passes_passes(self):
        self.program("gpu_check", "echo all-reduce, sum: right\n")
        self.assertEqual(self.start("--only", "nccl"), 0)
        self.assertEqual(self.states()[0], {"one rank": "passed"})

    def test_status_output_time_and_absence_count(self):
        self.program("gpu_check", "echo no such library; exit 77\n")
        self.program("two_contexts", "exit 4\n")
        self.program("logistic_regression", "echo 113 held-out rows: 12.00 % right\n")
        self.program("mlp", "sleep 60 & sleep 60\n")
        self.assertEqual(self.start("--only", "nccl,samples,libraries", "--seconds", "4"), 1)
        states, results = self.states()
        self.assertEqual(states, {"one rank": "absent", "two_contexts": "failed",
                                  "logistic_regression": "failed", "mlp": "failed",
                                  "data_parallel_mlp": "failed",
                                  "croton devices": "failed"})
        self.assertEqual((results["passed"], results["failed"]), (0, 6 - 1))

    def test_absent_alone_is_no_pass(self):
        self.program("gpu_check", "exit 77\n")
        self.assertEqual(self.start("--only", "nccl"), 1)

    def test_each_case_counts_and_none_is_a_failure(self):
        self.program("test_ops", """case "$*" in
--list*) printf '  one, two\\n  three [x]\\n' ;;
'one\\, two -w NoTests') ;;
*) exit 1 ;;
esac
""")
        self.assertEqual(self.start("--only", "ops"), 1)
        self.assertEqual(self.states()[0], {"one, two": "passed", "three [x]": "failed"})
        self.program("test_ops", "exit 0\n")
        self.assertEqual(self.start("--only", "ops"), 1)

    def bench(self, rows):
        text = json.dumps({"rows": rows}).replace("'", "")
        self.program("gpu_check", f"echo '{text}' > $3\necho values of 1 rows checked, 0 faults\n")

    def row(self, name, passed):
        return {"section": "s", "name": name, "seconds": {"min": 1e-3, "median": 1e-3},
                "limit": {"name": "copy"}, "ratio": {"min": 0.9, "median": 0.9},
                "floor_ratio": 0.85, "passed": passed}

    def test_missed_floors_fail(self):
        self.bench([self.row("a", True), self.row("b", False)])
        self.assertEqual(self.start("--only", "benchmark"), 1)
        self.assertEqual(self.states()[1]["floors_missed"], ["b"])
        self.bench([self.row("a", True)])
        self.assertEqual(self.start("--only", "benchmark"), 0)
        self.bench([self.row("a", False)])
        self.assertEqual(self.start("--only", "benchmark", "--rehearse"), 0)


class PeersTest(unittest.TestCase):
    def test_absent_frameworks_say_so(self):
        done = subprocess.run([sys.executable, "-S", HERE / "peers.py", "torch", SCRATCH / "none"],
                              text=True, capture_output=True)
        self.assertEqual(done.returncode, peers.ABSENT)
        self.assertIn("torch is not on this machine", done.stdout)


class NamesTest(unittest.TestCase):
    def test_rows_have_the_names_of_the_benchmark(self):
        functions = types.SimpleNamespace(softmax=None, layer_norm=None, largest=None)
        names = [row[0] for row in peers.memory_rows(peers.Sizes(False), functions)]
        names += [f"{n} x {n}, {kind}{bias}" for n in peers.SIZES for kind in peers.KINDS
                  for bias in ("", ", bias")]
        names += ["MLP step, float32", "MLP step, TF32", "two kernels, graphs on",
                  "two kernels, graphs off"]
        rows = {row["name"] for row in json.loads(MEASURED.read_text())["rows"]}
        self.assertEqual(set(names) - rows, set())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(["NamesTest"] if MEASURED else ["RunTest", "PeersTest"])])
