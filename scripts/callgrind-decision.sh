#!/usr/bin/env bash
# Counts the instructions of one scheduling decision.
# Runs the decision bench twice under callgrind and divides the difference of the instruction counts by the
# difference of the iteration counts, so that start-up and warm-up cancel out.
# usage: scripts/callgrind-decision.sh [arguments for `takt bench decision`]...
# Environment: TAKT (the program), CALLGRIND_FEW and CALLGRIND_MANY (iterations of the two runs).
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

takt=${TAKT:-${CARGO_TARGET_DIR:-target}/release/takt}
few=${CALLGRIND_FEW:-1000}
many=${CALLGRIND_MANY:-11000}

for needed in valgrind "$takt"; do
    if ! command -v "$needed" >/dev/null; then
        echo "callgrind-decision: $needed is missing: run make bench" >&2
        exit 2
    fi
done
if [[ $many -le $few ]]; then
    echo "callgrind-decision: CALLGRIND_MANY must exceed CALLGRIND_FEW" >&2
    exit 2
fi

# Prints the instructions that one run executed.
instructions() {
    local iterations=$1 log count
    shift
    log=$(mktemp)
    if ! valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file="$log" \
        "$takt" bench decision --iterations "$iterations" "$@" >/dev/null </dev/null; then
        cat "$log" >&2
        rm -f -- "$log"
        return 1
    fi
    count=$(sed -n 's/.*Collected *: *\([0-9]*\).*/\1/p' "$log" | tail -n 1)
    rm -f -- "$log"
    if [[ -z "$count" ]]; then
        echo "callgrind-decision: valgrind printed no instruction count" >&2
        return 1
    fi
    echo "$count"
}

count_few=$(instructions "$few" "$@")
count_many=$(instructions "$many" "$@")
echo "decision${*:+ ($*)}: $(((count_many - count_few) / (many - few))) instructions" \
    "(callgrind: $count_few for $few iterations, $count_many for $many)"
