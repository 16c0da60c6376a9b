#!/bin/bash
# Frame rates of glmark2 alone and with Takt measuring and predicting, in turns; medians per scene.
# usage: scripts/bench-glmark2.sh [ROUNDS [SCENE...]]; needs glmark2-es2 and an X server (DISPLAY).
# TAKT names the command to use, SECONDS_EACH the length of a run.
set -euo pipefail
takt=${TAKT:-target/release/takt}
rounds=${1:-5}
shift || true
scenes=("$@")
[ ${#scenes[@]} -gt 0 ] || scenes=(build:use-vbo=true texture:texture-filter=linear shading:shading=phong
    bump:bump-render=normals effect2d pulsar desktop buffer ideas jellyfish terrain shadow refract
    conditionals function loop:fragment-steps=5)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rate() { grep -o 'FPS: [0-9]*' | cut -d' ' -f2; }
median() { sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
printf '%-32s %8s %8s %8s %14s\n' scene alone takt share 'spread (alone)'
for scene in "${scenes[@]}"; do
    job="$scene:duration=${SECONDS_EACH:-1}"
    for round in $(seq "$rounds"); do
        glmark2-es2 --size 400x300 -b "$job" | rate >>"$work/alone"
        "$takt" run --measure "$work/m.csv" --mode bb+mars -- glmark2-es2 --size 400x300 -b "$job" | rate >>"$work/takt"
    done
    alone=$(median <"$work/alone") with=$(median <"$work/takt")
    spread="$(sort -n "$work/alone" | head -1)-$(sort -n "$work/alone" | tail -1)"
    awk -v s="$scene" -v a="$alone" -v w="$with" -v r="$spread" \
        'BEGIN { printf "%-32s %8d %8d %7.1f%% %14s\n", s, a, w, 100 * w / a, r }'
    rm -f "$work/alone" "$work/takt"
done
