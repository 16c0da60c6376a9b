#!/usr/bin/env bash
# Runs studies and compares their plots with those that documents show.
# usage: scripts/studies.sh [PREFIX]     all studies, or those whose names begin so
# Results go to out/studies. With UPDATE_EXPECT=1 the documents' plots are replaced. TAKT names the
# command to run.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

takt=${TAKT:-target/release/takt}
stale=0
for file in studies/"${1:-}"*.toml; do
    name=$(basename -- "$file" .toml)
    out=out/studies/$name
    # Begin anew: a journal of an older version of takt would be refused.
    rm -rf -- "$out"
    "$takt" sweep "$file" --out "$out" --json "$out/results.json" | head -n 1
    for plot in "$out"/plot-*.svg; do
        number=${plot##*/plot-}
        shown=docs/experiments/plots/$name-$number
        [[ -f "$shown" ]] || continue
        if [[ -n "${UPDATE_EXPECT:-}" ]]; then
            cp -- "$plot" "$shown"
        elif ! cmp --silent -- "$plot" "$shown"; then
            echo "studies: $shown is stale; look at $plot, then run this with UPDATE_EXPECT=1" >&2
            stale=1
        fi
    done
done
exit "$stale"
