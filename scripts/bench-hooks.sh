#!/bin/bash
# What hooks cost per call: alone, under `takt run`, with --measure, and with a model.
# Needs gcc and the packages libegl-dev and libgles-dev; TAKT names the command to use.
set -euo pipefail
cd "$(dirname "$0")/.."
takt=${TAKT:-target/release/takt}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -O2 -o "$work/calls" scripts/calls.c -lEGL -lGLESv2
export LIBGL_ALWAYS_SOFTWARE=1 LP_NUM_THREADS=1
for round in 1 2 3; do
    "$work/calls" >"$work/alone.$round"
    "$takt" run -- "$work/calls" >"$work/hooked.$round"
    "$takt" run --measure "$work/m.csv" -- "$work/calls" >"$work/measured.$round"
    "$takt" run --measure "$work/m.csv" --mode bb+mars -- "$work/calls" >"$work/predicted.$round"
done
best() { cat "$work/$1".* | sort -k1,1 -k2,2g | awk '!seen[$1]++ { print $1, $2 }' | sort; }
printf '%-24s %10s %10s %10s %10s\n' 'ns per call' alone run measure bb+mars
join <(best alone) <(best hooked) | join - <(best measured) | join - <(best predicted) |
    awk '{ printf "%-24s %10.1f %10.1f %10.1f %10.1f\n", $1, $2, $3, $4, $5 }'
