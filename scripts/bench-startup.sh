#!/bin/bash
# What Takt adds to the start of a program: a program that shows one frame, alone and with Takt, in turns.
# usage: scripts/bench-startup.sh [--quick] [ROUNDS]; TAKT names the command to use.
# Writes a table in Markdown to standard output and to out/bench-startup.md.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=200
command="scripts/bench-startup.sh $*"
for word in "$@"; do
    case $word in
        --quick) rounds=10 ;;
        *[!0-9]* | '') sed -n '2,4s/^# //p' "$0" >&2; exit 2 ;;
        *) rounds=$word ;;
    esac
done
. scripts/bench-common.sh
export LIBGL_ALWAYS_SOFTWARE=1 LP_NUM_THREADS=${LP_NUM_THREADS:-1}
make_startup
"$takt" serve --socket "$work/socket" 2>/dev/null &
server=$!
until [ -e "$work/socket" ]; do
    kill -0 "$server" 2>/dev/null || { echo "$0: takt serve does not start" >&2; exit 1; }
    sleep 0.1
done

ways=(true run-true alone run measure predict schedule)
declare -A does=([true]='/bin/true, alone' [run-true]='/bin/true, `takt run`' [alone]='alone' [run]='`takt run`'
    [measure]='`--measure`' [predict]='`--measure --mode bb+mars`' [schedule]='`--schedule`, with a daemon that runs')
start() {
    case $1 in
        true) /bin/true ;;
        run-true) "$takt" run -- /bin/true ;;
        alone) "$work/startup" ;;
        run) "$takt" run -- "$work/startup" ;;
        measure) "$takt" run --measure "$work/m.csv" -- "$work/startup" ;;
        predict) "$takt" run --measure "$work/m.csv" --mode bb+mars -- "$work/startup" ;;
        schedule) "$takt" run --schedule --socket "$work/socket" -- "$work/startup" 2>/dev/null ;;
    esac
}
# The first starts of all find nothing in memory.
for way in "${ways[@]}"; do start "$way"; done
for ((round = 1; round <= rounds; round++)); do
    for way in "${ways[@]}"; do
        began=$EPOCHREALTIME
        start "$way"
        ended=$EPOCHREALTIME
        # Both have six digits behind the point, whatever sign that is.
        echo "$way $((${ended/[.,]/} - ${began/[.,]/}))" >>"$work/times"
    done
    [ -t 2 ] && printf '\r%d of %d rounds ' "$round" "$rounds" >&2
done
[ -t 2 ] && echo >&2

table() {
    about "$command"
    echo "Wall time from fork to exit, $rounds rounds, all ways in turns."
    echo
    echo '| start of | median, ms | quartiles, ms | added, ms |'
    echo '|---|---|---|---|'
    for way in "${ways[@]}"; do
        base=alone
        case $way in true | run-true) base=true ;; esac
        awk -v way="$way" -v base="$base" -v does="${does[$way]}" "$quantiles"'
            $1 == way { a[++n] = $2 / 1000 }
            $1 == base { b[++m] = $2 / 1000 }
            END {
                sort(a, n); sort(b, m)
                added = way == base ? "" : sprintf("%.1f", quantile(a, n, 0.5) - quantile(b, m, 0.5))
                printf "| %s | %.1f | %.1f to %.1f | %s |\n", does, quantile(a, n, 0.5), quantile(a, n, 0.25), quantile(a, n, 0.75), added
            }' "$work/times"
    done
}
mkdir -p out
table | tee out/bench-startup.md
