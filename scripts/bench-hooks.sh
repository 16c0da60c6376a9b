#!/bin/bash
# What hooks cost per call: alone, under `takt run`, with --measure, and with a model, in turns.
# usage: scripts/bench-hooks.sh [--quick]; needs gcc, libegl-dev and libgles-dev; TAKT names the command.
# Writes a table in Markdown to standard output and to out/bench-hooks.md.
set -euo pipefail
cd "$(dirname "$0")/.."
command="scripts/bench-hooks.sh $*"
rounds=5
case ${1:-} in
    --quick) rounds=1 ;;
    '') ;;
    *) sed -n '2,4s/^# //p' "$0" >&2; exit 2 ;;
esac
. scripts/bench-common.sh
export LIBGL_ALWAYS_SOFTWARE=1 LP_NUM_THREADS=${LP_NUM_THREADS:-1}
gcc -O2 -o "$work/calls" scripts/calls.c -lEGL -lGLESv2
make_startup
for ((round = 1; round <= rounds; round++)); do
    "$work/calls" >"$work/alone.$round"
    "$takt" run -- "$work/calls" >"$work/hooked.$round"
    "$takt" run --measure "$work/m.csv" -- "$work/calls" >"$work/measured.$round"
    "$takt" run --measure "$work/m.csv" --mode bb+mars -- "$work/calls" >"$work/predicted.$round"
done
best() { cat "$work/$1".* | sort -k1,1 -k2,2g | awk '!seen[$1]++ { print $1, $2 }' | sort; }
table() {
    about "$command"
    echo "CPU time of the thread per call, the best of $((9 * rounds)) rounds; all four ways take turns."
    echo
    echo '| ns per call | alone | `takt run` | `--measure` | `--measure --mode bb+mars` |'
    echo '|---|---|---|---|---|'
    join <(best alone) <(best hooked) | join - <(best measured) | join - <(best predicted) | sort -k2,2g |
        awk '{ printf "| `%s` | %.1f | %.1f | %.1f | %.1f |\n", $1, $2, $3, $4, $5 }'
}
mkdir -p out
table | tee out/bench-hooks.md
