#!/usr/bin/env bash
# usage: test_install.sh BUILD_FOLDER CMAKE COMPILER GENERATOR
# Installs BUILD_FOLDER, moves the prefix, and builds and runs consumer/ against it.
set -euo pipefail
build=$1 cmake=$2 compiler=$3 generator=$4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/moved

fail() {
  echo "packaging: $*" >&2
  exit 1
}

"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log" ||
  { cat "$work/install.log" >&2; fail "cmake --install failed; was everything built?"; }
mv "$work/first" "$prefix"

# No dependency of ours may show in what other projects read.
private='fmt|spdlog|LLVM|dnnl|openblas|OpenMP|libzip|xxhash|nlohmann|xsmm'
package=$(dirname "$(find "$prefix" -name croton-config.cmake)")
grep -nE "$private" "$package"/croton-targets*.cmake && fail "the link interface shows a private library"
grep -rlF -e "$work/first" -e "$build" "$package" && fail "the package files hold the place of the build"
# The consumer finds no header of ours but those that were installed.
[[ -f $prefix/include/croton/croton.h ]] || fail "croton/croton.h was not installed"
libraries=$(dirname "$(find "$prefix" -name libcroton.so)")
[[ -f $libraries/libcroton_llvm.so ]] || fail "the code generator is not beside the library"

# The README's first program is a part of the consumer.
awk '/^```/ {on = /^```cpp/ && !seen++; next} on' "$here/../../README.md" >"$work/readme.cpp"

"$cmake" -S "$here/consumer" -B "$work/build" -G "$generator" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" \
  -DREADME_PROGRAM="$work/readme.cpp" >"$work/configure.log" ||
  { cat "$work/configure.log" >&2; fail "the consumer does not configure"; }
"$cmake" --build "$work/build" || fail "the consumer does not build"

# Each installed header but the one that says so does without them.
for header in "$prefix"/include/croton/*.h; do
  [[ $header == */fmt.h ]] || echo "#include <croton/$(basename "$header")>"
done >"$work/all.cpp"
"$compiler" -std=c++20 -I "$prefix/include" -M "$work/all.cpp" >"$work/headers" ||
  fail "an installed header does not compile"
grep -E '/(fmt|spdlog|llvm|llvm-c|nlohmann|oneapi|CLI)/|dnnl|cblas|omp\.h' "$work/headers" &&
  fail "a public header includes a private one"

export HOME=$work XDG_CACHE_HOME=$work/cache CROTONRC=/dev/null
unset CROTON_FLAGS LD_LIBRARY_PATH
# The build folder holds the same libraries: none of them may be what the consumer loads.
output=$(LD_DEBUG=files LD_DEBUG_OUTPUT=$work/loaded "$work/build/consumer") || fail "the consumer fails"
grep -hF "$build/" "$work"/loaded.* && fail "the consumer loads files of the build folder"
grep -qF "$libraries/libcroton_llvm.so" "$work"/loaded.* || fail "no kernel was compiled"
[[ $output == $'6.5 12.5\ncall error' ]] || fail "the consumer printed: $output"
output=$(CROTON_FLAGS='contexts=dev0->cpu;dev1->cpu' "$work/build/readme") ||
  fail "the program in README.md fails"
[[ $(grep -c '^\[\[' <<<"$output") == 2 ]] || fail "the program in README.md printed: $output"

# The tool that was installed with it finds the library too.
"$prefix/bin/croton" flags >/dev/null || fail "the installed croton does not run"
echo "packaging: installed, moved, found, built and ran"
