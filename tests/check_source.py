#!/usr/bin/env python3
"""Checks what the compiler cannot: layers, getenv, private headers, names and lengths of files.

Prints one line a fault, `file:line: [rule] what; how to mend it`, and exits 1 if there is any.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES = 600

# The stages in the order in which data flows: a file may include its own layer and those before it.
LAYERS = [
    ["config"],
    ["runtime"],
    ["compiler/graph", "compiler/kernel", "compiler/include"],
    ["ops"],
    ["compiler"],
    ["frontend"],
]
ENVIRONMENT = "config/environment.cpp"
LLVM_FOLDER = "runtime/cpu/llvm/"
FMT_HEADER = "frontend/include/croton/fmt.h"
BAD_NAMES = {"util", "utils", "utility", "utilities", "helper", "helpers", "misc"}
CODE = {".cpp", ".h", ".cu", ".cuh", ".py", ".sh", ".cmake"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
GETENV = re.compile(r"\b(secure_)?getenv\s*\(")
NAMESPACE = re.compile(r"^namespace\s*([\w:]*)\s*\{")
TYPE = re.compile(r"^(?:struct|class|enum class)\s+(?:CROTON_API\s+)?(\w+)(?:\s+final)?"
                  r"\s*(?::(?!:)[^;]*)?\{")
PAGE_PATH = re.compile(r"`((?:tests|samples|docs)/[\w./-]+)`")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")

faults = []


def fault(path, line, rule, text):
    faults.append(f"{path}:{line}: [{rule}] {text}")


def layer(path):
    """The index in LAYERS of the longest folder name that holds `path`; None outside the stages."""
    found = [(len(folder), index) for index, folders in enumerate(LAYERS) for folder in folders
             if path.startswith(folder + "/")]
    return max(found)[1] if found else None


def layer_name(index):
    return LAYERS[index][-1 if index == 4 else 0] if index != 2 else "compiler/{graph,kernel}"


def is_public(path):
    return "/include/croton/" in path


def check_include(path, line, bracket, name, headers):
    if re.match(r"llvm(-c)?/", name) and not path.startswith(LLVM_FOLDER):
        fault(path, line, "llvm", f"<{name}> outside {LLVM_FOLDER}; only the plug-in sees LLVM")
    own = name.startswith("croton/") or bracket == '"'
    if is_public(path) and not own and ("/" in name or name.endswith(".h")):
        if not (path == FMT_HEADER and name.startswith("fmt/")):
            fault(path, line, "public", f"<{name}> in a public header; include only the standard "
                  "library and croton/")
    if not own:
        return
    if path.startswith("samples/") and not name.startswith("croton/"):
        if not (ROOT / path).parent.joinpath(name).is_file():
            fault(path, line, "layer", f'"{name}" in a sample; samples see only croton/')
        return
    target = headers.get(name, name)
    if target not in headers.values() and not (ROOT / target).is_file():
        fault(path, line, "include", f'"{name}" is neither a public header nor a path from the root')
        return
    if is_public(path) and not is_public(target):
        fault(path, line, "public", f'"{name}" is private, and {path} is installed')
    here, there = layer(path), layer(target)
    if here is None:
        return
    if there is None:
        fault(path, line, "layer", f'"{name}" lies outside the stages')
    elif there > here:
        fault(path, line, "layer", f'"{name}" belongs to {layer_name(there)}, which comes after '
              f"{layer_name(here)}; includes follow the flow of data")


def check_cpp(path, lines, headers):
    in_stage = layer(path) is not None or path.startswith("samples/")
    if path.endswith(".h") and "#pragma once" not in (text.strip() for text in lines):
        fault(path, 1, "pragma", "a header without #pragma once")
    for number, text in enumerate(lines, 1):
        include = INCLUDE.match(text)
        if include:
            check_include(path, number, include[1], include[2], headers)
        if in_stage and path != ENVIRONMENT and GETENV.search(text.split("//")[0]):
            fault(path, number, "getenv", f"only {ENVIRONMENT} reads the environment; declare a flag")


def public_headers(files):
    """Maps croton/x.h to its path; two stages must not own one name."""
    headers = {}
    for path in files:
        if is_public(path):
            name = path[path.index("/include/") + len("/include/"):]
            if name in headers:
                fault(path, 1, "include", f"{headers[name]} has the same public name {name}")
            headers[name] = path
    return headers


def check_name(path):
    parts = pathlib.PurePosixPath(path)
    for part in [*parts.parts[:-1], parts.stem]:
        bad = BAD_NAMES & set(re.split(r"[_\-.]", part.lower()))
        if bad:
            fault(path, 1, "name", f"'{bad.pop()}' says nothing; name the file after what it holds")
            return


def check_types(files):
    """Two types of one name in one namespace would link, and be one of the two everywhere."""
    owners = {}
    for path in files:
        if not path.endswith(".h") or layer(path) is None:
            continue
        space = ""
        for number, text in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
            if opened := NAMESPACE.match(text):
                space = opened[1]
            if not (named := TYPE.match(text)) or not space:
                continue
            first = owners.setdefault((space, named[1]), path)
            if first != path:
                fault(path, number, "type", f"{space}::{named[1]} is a type of {first}, too")


def check_page(path):
    """What a page points to is there."""
    for number, text in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
        for name in PAGE_PATH.findall(text):
            if not (ROOT / name).exists():
                fault(path, number, "page", f"there is no {name}")


def main():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True,
                            capture_output=True, check=True).stdout.splitlines()
    files = sorted(path for path in set(listed) if (ROOT / path).is_file())
    headers = public_headers(files)
    check_types(files)
    for path in files:
        check_name(path)
        code = pathlib.PurePosixPath(path)
        if code.suffix == ".md":
            check_page(path)
        if not (code.suffix in CODE or code.name in ("CMakeLists.txt", "dev")):
            continue
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        if len(lines) > MAX_LINES:
            fault(path, len(lines), "length", f"{len(lines)} lines, at most {MAX_LINES}; "
                  "it probably holds two ideas")
        for number, text in enumerate(lines, 1):
            if UNFINISHED.search(text) and path != "tests/check_source.py":
                fault(path, number, "unfinished", f"finish it or drop it: {text.strip()[:60]}")
        if code.suffix in (".cpp", ".h"):
            check_cpp(path, lines, headers)
    for text in faults:
        print(text)
    print(f"sources: {len(files)} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
