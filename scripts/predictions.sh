#!/bin/bash
# How good predictions are on real programs: all models side by side, and the history beside them.
# usage: scripts/predictions.sh [--quick] [--seconds S] [--fresh] [--no-doc] [NAME...]
# Runs build, shading, texture, es2gears, speedometer and all other scenes that glmark2 runs by
# default, each for S seconds (20; 2 with --quick), on llvmpipe with LP_NUM_THREADS=1 unless that is
# set. Compare files are kept in out/predictions, so an interrupted run goes on where it was; --fresh
# begins anew. Writes docs/experiments/real-programs.md and its plots; --no-doc prints the page only.
# TAKT names the command; takt-apps are looked for beside it. SIZE is that of glmark2's window.
set -euo pipefail
cd "$(dirname "$0")/.."
command="scripts/predictions.sh $*"
seconds=20 fresh='' doc=docs/experiments/real-programs.md train=() names=()
usage() { sed -n '2,9s/^# //p' "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
    case $1 in
        --quick) seconds=2 train=(--quick) ;;
        --seconds) [ $# -gt 1 ] || usage; seconds=$2; shift ;;
        --fresh) fresh=1 ;;
        --no-doc) doc='' ;;
        -*) usage ;;
        *) names+=("$1") ;;
    esac
    shift
done
export LP_NUM_THREADS=${LP_NUM_THREADS-1}
. scripts/bench-common.sh
size=${SIZE:-800x600}
need_display
make_startup

kept=out/predictions
key="$size $seconds $LP_NUM_THREADS $(git rev-parse HEAD 2>/dev/null) $(cksum <"$takt") $(cksum <"$(dirname "$takt")/libEGL_takt.so")"
mkdir -p "$kept/plots"
if [ -n "$fresh" ] || [ "$(cat "$kept/key" 2>/dev/null)" != "$key" ]; then
    rm -f "$kept"/*.csv "$kept/about"
    echo "$key" >"$kept/key"
fi
[ -s "$kept/about" ] || about "$command" >"$kept/about"

# Constants and models of this renderer; kept as long as its driver stays.
store="$PWD/$kept/store"
if ! ls "$store"/*/profile.txt >/dev/null 2>&1; then
    "$takt" profile "${train[@]}" --device surfaceless --store "$store" >"$kept/profile.txt"
fi
if ! ls "$store"/*/shaders.txt >/dev/null 2>&1; then
    "$takt" train "${train[@]}" --device surfaceless --store "$store" >"$kept/train.txt"
fi

# The five of the thesis first, then the rest of glmark2.
if [ ${#names[@]} -eq 0 ]; then
    names=(build shading texture es2gears speedometer)
    while IFS= read -r scene; do
        [[ " build shading texture " == *" $scene "* ]] || names+=("$scene")
    done < <(glmark2-es2 --size 96x72 -b :duration=0.01 |
        sed -nE 's/^\[([^]]+)\] (.*): FPS: .*/\1:\2/p' | sed 's/:<default>$//')
fi

# A name of a scene as one of a file.
file_of() { printf '%s/%s.csv' "$kept" "$(printf %s "$1" | tr -c 'A-Za-z0-9=.-' _)"; }

one() { # NAME FILE SECONDS
    local seconds=$3 run=("$takt" run --store "$store" --name "$(basename "$2" .csv)" --compare "$2" --)
    case $1 in
        es2gears) timeout --signal=TERM "$seconds" "${run[@]}" es2gears_x11 || [ $? -eq 124 ] ;;
        speedometer) "${run[@]}" "$(dirname "$takt")/takt-speedometer" --frames "$(awk -v s="$seconds" 'BEGIN { print int(60 * s) }')" ;;
        *) timeout $((${seconds%.*} + 60)) "${run[@]}" glmark2-es2 --size "$size" -b "$1:duration=$seconds" ;;
    esac
}
# Programs are noted where they run, and measured one by one, so that `profiled` is not `mars`.
if ! [ -e "$store/seen" ]; then
    for name in "${names[@]}"; do
        [ -t 2 ] && printf '\r\033[Klooking at %s' "$name" >&2
        one "$name" "$work/seen.csv" 1 >/dev/null 2>&1 || true
    done
    "$takt" profile --programs --device surfaceless --store "$store" >"$kept/programs.txt"
    touch "$store/seen"
fi
files=()
for name in "${names[@]}"; do
    file=$(file_of "$name")
    if ! [ -s "$file" ]; then
        [ -t 2 ] && printf '\r\033[K%s' "$name" >&2
        one "$name" "$work/part.csv" "$seconds" >"$work/said" 2>&1 || {
            echo "$0: $name does not run: $(tail -1 "$work/said")" >&2
            continue
        }
        mv "$work/part.csv" "$file"
    fi
    files+=("$file")
done
[ -t 2 ] && printf '\r\033[K' >&2
[ ${#files[@]} -gt 0 ] || { echo "$0: nothing ran" >&2; exit 1; }

# Plots of the thesis's programs, and the page.
for name in build shading texture es2gears speedometer; do
    file=$(file_of "$name")
    [ -s "$file" ] || continue
    # Draws that were not disturbed, as in the tables.
    python3 scripts/predictions.py --draws "$file" >"$work/real-$name.csv"
    "$takt" report --plots "$kept/plots" "$work/real-$name.csv" >/dev/null
done
python3 scripts/predictions.py --about "$kept/about" "${files[@]}" >"$kept/page.md"
if [ -n "$doc" ]; then
    cp "$kept/page.md" "$doc"
    cp "$kept"/plots/real-*.svg docs/experiments/plots/
fi
cat "$kept/page.md"
