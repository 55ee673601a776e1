#!/usr/bin/env python3
"""Packs what ./dev gpu-check needs on a machine with a GPU: pack.py BUILD FOLDER.

FOLDER/croton-gpu-check holds programs, the libraries that they need (but those of the C library,
of NVIDIA, and LLVM), fixtures, and run.py; FOLDER/croton-gpu-check.tar.xz is the same.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

SOURCES = pathlib.Path(__file__).resolve().parents[2]
NAME = "croton-gpu-check"
MOST_BYTES = 50 << 20
# What every Linux with glibc has, in the version that its loader goes with.
OF_THE_SYSTEM = re.compile(r"linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|resolv|util)\.so")
# The test cases that compare with the CPU.
CASES = {"test_cuda": "[values],[products]~products with rounded*,a training step*",
         "test_ops": "[on_device]"}


def fail(text):
    sys.exit(f"gpu-check: {text}")


def needed_libraries(binary):
    """{soname: file} of all that the loader finds for it."""
    listed = subprocess.run(["ldd", binary], text=True, capture_output=True, check=True).stdout
    found = {}
    for line in listed.splitlines():
        match = re.match(r"\s*(\S+)(?: => (.*?))? \(0x", line)
        if "not found" in line:
            fail(f"{binary} needs a library that is not here: {line.strip()}")
        if match and not OF_THE_SYSTEM.search(match[1]):
            found[pathlib.Path(match[1]).name] = match[2] or match[1]
    return found


def install(build, folder):
    subprocess.run(["cmake", "--install", build, "--component", "gpu_check", "--strip", "--prefix",
                    folder], check=True, stdout=subprocess.DEVNULL)
    for binary in sorted((folder / "bin").iterdir()):
        for name, path in needed_libraries(binary).items():
            if not (folder / "lib" / name).exists():
                shutil.copy(os.path.realpath(path), folder / "lib" / name)
    for file in folder.glob("lib/*"):
        if "LLVM" in file.name or file.name.startswith("libcroton_llvm"):
            fail(f"{file} must not be needed")


def check_paths(folder):
    """Fails where a program or library looks for others outside the folder."""
    for file in [*folder.glob("bin/*"), *folder.glob("lib/*")]:
        text = subprocess.run(["readelf", "-d", file], text=True, capture_output=True,
                              check=True).stdout
        for path in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", text):
            for part in path.split(":"):
                if not part.startswith("$ORIGIN"):
                    fail(f"{file} looks for libraries in {part}")
    for binary in folder.glob("bin/*"):
        for name, path in needed_libraries(binary).items():
            if folder not in pathlib.Path(os.path.normpath(path)).parents:
                fail(f"{binary} takes {name} from {path}")


def newest_glibc(folder):
    """The version of the C library that the programs ask for."""
    versions = [(0, 0)]
    for file in [*folder.glob("bin/*"), *folder.glob("lib/*")]:
        text = subprocess.run(["readelf", "-V", file], text=True, capture_output=True,
                              check=True).stdout
        versions += [tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+)", text)]
    return "%d.%d" % max(versions)


def keep_host_values(build, folder):
    """What the CPU gives in the tests of GPUs: the GPU's machine cannot compile for its CPU."""
    folder.mkdir(parents=True)
    variables = {**os.environ, "CROTON_TEST_KEEP_HOST_VALUES": str(folder), "CROTONRC": "",
                 "CROTON_FLAGS": "contexts=dev0->cpu;dev1->cpu;again->cpu;host->cpu"}
    kept = 0
    for program, cases in CASES.items():
        done = subprocess.run([build / "bin" / program, cases, "-w", "NoTests"], env=variables,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        before, kept = kept, len(list(folder.iterdir()))
        if done.returncode != 0 or kept == before:
            fail(f"{program} did not keep the values of the CPU:\n{done.stdout[-4000:]}")
    return kept


def add_files(folder):
    for source, target in (("tests/data", "data/tests"), ("samples/data", "data/samples")):
        shutil.copytree(SOURCES / source, folder / target, ignore=shutil.ignore_patterns("*.py"))
    (folder / "docs").mkdir()
    shutil.copy(SOURCES / "docs/gradients.md", folder / "docs")  # a test reads its table
    for name in ("run.py", "peers.py"):
        shutil.copy(pathlib.Path(__file__).parent / name, folder)
    shutil.copy(SOURCES / "LICENSE", folder)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build, target = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    folder = target / NAME
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    install(build, folder)
    add_files(folder)
    values = keep_host_values(build, folder / "data/host_values")
    check_paths(folder)
    archive = target / f"{NAME}.tar.xz"
    with tarfile.open(archive, "w:xz", preset=2) as tar:
        tar.add(folder, NAME)
    size = archive.stat().st_size
    print(f"{archive}: {size / 2**20:.1f} MiB; {values} files of the CPU's values; "
          f"needs glibc {newest_glibc(folder)} or newer")
    if size > MOST_BYTES:
        fail(f"{archive} has more than {MOST_BYTES >> 20} MiB")


if __name__ == "__main__":
    main()
