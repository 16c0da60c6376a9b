#!/usr/bin/env bash
# Plays all scenarios under all policies and compares the outcome with what documents show.
# usage: scripts/policies.sh
# With UPDATE_EXPECT=1 the table and the histograms of the documents are replaced. TAKT names the
# command to run.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

takt=${TAKT:-target/release/takt}
page=docs/experiments/policies.md
plots=docs/experiments/plots
out=out/policies
mkdir -p -- "$out"
stale=0

# shows FRESH SHOWN: complains, or updates, if a document's file is not the fresh one
shows() {
    cmp --silent -- "$1" "$2" && return
    if [[ -n "${UPDATE_EXPECT:-}" ]]; then
        cp -- "$1" "$2"
    else
        echo "policies: $2 is stale; look at $1, then run this with UPDATE_EXPECT=1" >&2
        stale=1
    fi
}

"$takt" policies scenarios/*.toml --markdown --json "$out/policies.json" >"$out/table.md"
awk -v table="$out/table.md" '
    /^<!-- end of table -->$/ { skip = 0 }
    !skip { print }
    /^<!-- table -->$/ { skip = 1; while ((getline line < table) > 0) print line }
' "$page" >"$out/policies.md"
shows "$out/policies.md" "$page"

adas() { # NAME POLICY [OPTION...]
    "$takt" policies scenarios/hercules-adas.toml --policy "$2" "${@:3}" --histograms "$out/$1.svg" >/dev/null
    shows "$out/$1.svg" "$plots/$1.svg"
}
adas hercules-adas-edf-cbs edf-cbs
adas hercules-adas-interleaved runlist --set gpu.model=runlist

exit "$stale"
