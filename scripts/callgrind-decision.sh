#!/usr/bin/env bash
# Counts the instructions of one scheduling decision, for several numbers of apps.
# Runs the decision bench twice under callgrind and divides the difference of the instruction counts by the
# difference of the decisions, so that start-up cancels out.
# usage: scripts/callgrind-decision.sh [NUMBER OF APPS]...
# Environment: TAKT (the program), CALLGRIND_FEW and CALLGRIND_MANY (decisions of the two runs).
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

takt=${TAKT:-${CARGO_TARGET_DIR:-target}/release/takt}
few=${CALLGRIND_FEW:-1000}
many=${CALLGRIND_MANY:-6000}

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

# Prints the instructions that one run executed: $1 apps, $2 decisions.
instructions() {
    local log count
    log=$(mktemp)
    if ! valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file="$log" \
        "$takt" bench decision --bare --apps "$1" --iterations "$2" >/dev/null </dev/null; then
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

for apps in "${@:-1 5 20 100 1000}"; do
    for n in $apps; do
        low=$(instructions "$n" "$few")
        high=$(instructions "$n" "$many")
        echo "decision with $n apps: $(((high - low) / (many - few))) instructions"
    done
done
