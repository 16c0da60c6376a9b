#!/bin/bash
# Frame rates of glmark2 alone and with Takt measuring and predicting, in turns; medians per scene.
# usage: scripts/bench-glmark2.sh [--quick] [--rounds N] [--seconds S] [--fresh] [--scheduled] [--cpu] [SCENE...]
# With --scheduled, Takt schedules instead. With --cpu, processor time per frame as well, of all threads of the
# program: it depends less on what else runs. Without scenes, all that glmark2 runs by default. What was measured
# is kept in out/bench-glmark2, so an interrupted run goes on where it was; --fresh begins anew. TAKT names the
# command, SIZE the window.
# Writes a table in Markdown to standard output and to out/bench-glmark2/table.md.
set -euo pipefail
cd "$(dirname "$0")/.."
command="${SIZE:+SIZE=$SIZE }${LP_NUM_THREADS:+LP_NUM_THREADS=$LP_NUM_THREADS }scripts/bench-glmark2.sh $*"
rounds=7 seconds=2 fresh= cpu=
under=(--measure /dev/null --mode bb+mars)
scenes=()
usage() { sed -n '2,8s/^# //p' "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
    case $1 in
        --quick) rounds=1 seconds=0.1 ;;
        --rounds) rounds=${2:?$(usage)}; shift ;;
        --seconds) seconds=${2:?$(usage)}; shift ;;
        --fresh) fresh=1 ;;
        --scheduled) under=(--schedule) ;;
        --cpu) cpu=1 ;;
        -*) usage ;;
        *) scenes+=("$1") ;;
    esac
    shift
done
. scripts/bench-common.sh
size=${SIZE:-400x300}
need_display
make_startup

# Runs of other settings or of another library are no runs of this.
kept=out/bench-glmark2
key="$size $seconds ${under[*]} $cpu ${LP_NUM_THREADS:-} $(git rev-parse HEAD 2>/dev/null) $(cksum <"$takt") $(cksum <"$(dirname "$takt")/libEGL_takt.so")"
mkdir -p "$kept"
if [ -n "$fresh" ] || [ "$(cat "$kept/key" 2>/dev/null)" != "$key" ]; then
    rm -f "$kept/rates" "$kept/about"
    echo "$key" >"$kept/key"
fi
[ -s "$kept/about" ] || about "$command" >"$kept/about"
touch "$kept/rates"

# Prints "SCENE<tab>RATE" for each scene that a run of glmark2 reports. Slow scenes are told by the
# time per frame, fast ones by frames per second: each has three digits at least.
rates() {
    sed -nE 's/^\[([^]]+)\] (.*): FPS: ([0-9]+) FrameTime: ([0-9.]+) ms.*/\1\t\2\t\3\t\4/p' |
        awk -F'\t' -v OFS='\t' '{ scene = $2 == "<default>" ? $1 : $1 ":" $2; print scene, ($3 >= 1000 || $4 == 0) ? $3 : 1000 / $4 }'
}
if [ ${#scenes[@]} -eq 0 ]; then
    mapfile -t scenes < <(glmark2-es2 --size 96x72 -b :duration=0.01 | rates | cut -f1)
fi
[ ${#scenes[@]} -gt 0 ] || { echo "$0: glmark2-es2 reports no scenes" >&2; exit 1; }

# Nanoseconds of processor time that the threads of a process have had.
used() { cat /proc/"$1"/task/*/schedstat | awk '{ ns += $1 } END { printf "%d", ns }'; }

# Prints frames per second, and with --cpu microseconds of processor time per frame.
once() { # WAY SCENE
    local begin=() before after from to
    [ "$1" = alone ] || begin=("$takt" run "${under[@]}" --)
    if [ -z "$cpu" ]; then
        "${begin[@]}" glmark2-es2 --size "$size" -b "$2:duration=$seconds" | rates | head -1 | cut -f2
        return
    fi
    # Time to start, and some to spare, so that only frames count.
    "${begin[@]}" glmark2-es2 --size "$size" -b "$2:duration=$(awk "BEGIN { print $seconds + 1.6 }")" >"$work/out" &
    sleep 1.2
    before=$(used $!) from=$EPOCHREALTIME
    sleep "$seconds"
    after=$(used $!) to=$EPOCHREALTIME
    wait $!
    rates <"$work/out" | head -1 | awk -F'\t' -v ns=$((after - before)) -v from="$from" -v to="$to" \
        '{ printf "%s\t%.0f\n", $2, ns / 1000 / (to - from) / $2 }'
}
for ((round = 1; round <= rounds; round++)); do
    for scene in "${scenes[@]}"; do
        # Which goes first changes, so that a drift of the machine favours neither.
        ways=(alone takt)
        ((round % 2)) || ways=(takt alone)
        for way in "${ways[@]}"; do
            done_as="$scene"$'\t'"$way"$'\t'"$round"
            grep -qF -- "$done_as"$'\t' "$kept/rates" && continue
            rate=$(once "$way" "$scene")
            [ -n "$rate" ] || { echo "$0: $scene does not run ($way)" >&2; exit 1; }
            printf '%s\t%s\n' "$done_as" "$rate" >>"$kept/rates"
            [ -t 2 ] && printf '\r\033[Kround %d of %d, %s, %s: %s' "$round" "$rounds" "$scene" "$way" "$rate" >&2
        done
    done
done
[ -t 2 ] && printf '\r\033[K' >&2

table() {
    cat "$kept/about"
    echo "glmark2 $size, $seconds s each, $rounds rounds in turns; medians. Noise is half the distance of the quartiles of the runs alone."
    echo
    echo "| scene | alone, frames/s | with Takt | share | noise |${cpu:+ alone, µs per frame | with Takt | noise |}"
    echo "|---|---|---|---|---|${cpu:+---|---|---|}"
    printf '%s\n' "${scenes[@]}" | awk -F'\t' -v rates="$kept/rates" -v cpu="$cpu" "$quantiles"'
        BEGIN {
            while ((getline line < rates) > 0) {
                split(line, f, "\t"); key = f[1] SUBSEP f[2]; count[key]++
                value[key, count[key]] = f[4]; used[key, count[key]] = f[5]
            }
        }
        {
            for (i = 1; i <= (n = count[$0, "alone"]); i++) a[i] = value[$0, "alone", i]
            for (i = 1; i <= (m = count[$0, "takt"]); i++) b[i] = value[$0, "takt", i]
            sort(a, n); sort(b, m)
            alone = quantile(a, n, 0.5); with = quantile(b, m, 0.5)
            share = with / alone; noise = (quantile(a, n, 0.75) - quantile(a, n, 0.25)) / 2 / alone
            printf "| `%s` | %.1f | %.1f | %.1f %% | ± %.1f %% |", $0, alone, with, 100 * share, 100 * noise
            if (cpu) {
                for (i = 1; i <= n; i++) a[i] = used[$0, "alone", i]
                for (i = 1; i <= m; i++) b[i] = used[$0, "takt", i]
                sort(a, n); sort(b, m)
                alone = quantile(a, n, 0.5); spread = (quantile(a, n, 0.75) - quantile(a, n, 0.25)) / 2 / alone
                printf " %.0f | %.0f | ± %.1f %% |", alone, quantile(b, m, 0.5), 100 * spread
            }
            print ""
            shares[NR] = share; logs += log(share); good += share >= 0.98; near += share + noise >= 0.98
        }
        END {
            sort(shares, NR)
            printf "\n%d of %d scenes reach 98 %% of the rate alone, %d within their noise; median %.1f %%, geometric mean %.1f %%, lowest %.1f %%.\n",
                good, NR, near, 100 * quantile(shares, NR, 0.5), 100 * exp(logs / NR), 100 * shares[1]
        }'
}
table | tee "$kept/table.md"
