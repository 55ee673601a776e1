#!/usr/bin/env bash
# Asserts instructions, not times: per call of a compiled x + y, per compiled node, and how the
# latter grow with the graph. Usage: count_instructions.sh CROTON_BENCH
set -euo pipefail

bench=$1
if ! command -v valgrind >/dev/null; then
  echo 'SKIP: no valgrind to count instructions with'
  exit 77
fi
export CROTON_FLAGS= CROTONRC=/dev/null
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0

# count WHAT NUMBER: starts a process that does WHAT so many times.
declare -A process
count() {
  valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null \
    "$bench" --counted "$1" --count "$2" >"$folder/$1-$2" 2>&1 &
  process[$1-$2]=$!
}

# instructions WHAT NUMBER: of that process.
instructions() {
  local found
  found=$(sed -n 's/.*I *refs: *\([0-9,]*\).*/\1/p' "$folder/$1-$2")
  if [[ -z $found ]]; then
    cat "$folder/$1-$2" >&2
    exit 1
  fi
  echo "${found//,/}"
}

# within NAME VALUE BOUND: from 1 to BOUND; nothing takes no instructions at all.
within() {
  local verdict=ok
  (($2 <= $3)) || { verdict='TOO MANY' status=1; }
  (($2 >= 1)) || { verdict='NOT COUNTED' status=1; }
  printf '%-58s %8d  at most %8d  %s\n' "$1" "$2" "$3" "$verdict"
}

count nodes 50000
for what in scalars vectors; do count $what 1000; count $what 3000; done
count nodes 4
count nodes 5000
for which in "${!process[@]}"; do
  wait "${process[$which]}" || { cat "$folder/$which" >&2; exit 1; }
done
for what in scalars vectors; do
  few=$(instructions $what 1000)
  many=$(instructions $what 3000)
  within "instructions a call of x + y, $what" $(((many - few) / 2000)) 1500
done
none=$(instructions nodes 4)
small=$(instructions nodes 5000)
large=$(instructions nodes 50000)
within 'instructions a node, of 5,000' $(((small - none) / 5000)) 140000
within 'instructions a node, of 50,000' $(((large - none) / 50000)) 140000
within 'growth from 5,000 to 50,000 nodes, in per cent of tenfold' \
  $(((large - none) * 10 / (small - none))) 115
exit $status
