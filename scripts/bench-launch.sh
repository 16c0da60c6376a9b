#!/usr/bin/env bash
# Measures what Takt adds to a CUDA launch that finds credit, in the thread that makes it.
# The driver is one without a GPU whose launches do nothing, so what is left is the call and Takt. Times are least and
# median of batches of 500, the best of five runs: other work of the machine can only add.
# usage: scripts/bench-launch.sh [LAUNCHES]
# Environment: TAKT (the program), DRIVER (folder with libcuda.so.1; default: the driver without a GPU).
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

takt=${TAKT:-${CARGO_TARGET_DIR:-target}/release/takt}
launches=${1:-1000000}
work=$(mktemp -d)
daemon=
trap '[[ -z $daemon ]] || kill "$daemon" 2>/dev/null || true; rm -rf -- "$work"' EXIT

for needed in gcc "$takt"; do
    if ! command -v "$needed" >/dev/null; then
        echo "bench-launch: $needed is missing: run make bench" >&2
        exit 2
    fi
done
driver=${DRIVER:-}
if [[ -z $driver ]]; then
    fake=$(dirname -- "$takt")/libtakt_cuda_fake.so
    if [[ ! -e $fake ]]; then
        echo "bench-launch: $fake is missing: cargo build --release -p takt-cuda-fake" >&2
        exit 2
    fi
    driver=$work/driver
    mkdir -- "$driver"
    ln -s "$(realpath -- "$fake")" "$driver/libcuda.so.1"
fi
gcc -O2 -Wall -o "$work/compute" eval/native/compute.c -ldl
export LD_LIBRARY_PATH=$driver TAKT_FAKE_NULL=1 XDG_CACHE_HOME=$work/cache

"$takt" serve --socket "$work/socket" 2>"$work/daemon.log" &
daemon=$!
for _ in $(seq 200); do
    [[ -S $work/socket ]] && break
    sleep 0.05
done

# Best of several runs: what else the machine does can only add.
least() {
    local best='' ns
    for _ in 1 2 3 4 5; do
        ns=$("$@" "$work/compute" launches --count "$launches" 2>>"$work/said" |
            sed -n 's/.*"least_ns": \([0-9.]*\), "p50_ns": \([0-9.]*\).*/\1 \2/p')
        if [[ -z $ns ]]; then
            cat -- "$work/said" >&2
            echo "bench-launch: $* gives no times" >&2
            return 1
        fi
        best=$(printf '%s\n%s\n' "$best" "$ns" | awk 'NF { if (!n++ || $1 < a) a = $1; if (n == 1 || $2 < b) b = $2 }
            END { print a, b }')
    done
    echo "$best"
}

run=("$takt" run --schedule --no-daemon --socket "$work/socket" --)
native=$(least env)
hooked=$(least "$takt" run --)
scheduled=$(least "${run[@]}")
if ! grep -q 'scheduled as' "$work/said"; then
    cat -- "$work/said" "$work/daemon.log" >&2
    echo "bench-launch: the program was not scheduled" >&2
    exit 1
fi
printf '%s\n%s\n%s\n' "native $native" "hooked $hooked" "scheduled $scheduled" | awk '
    NR == 1 { a = $2; b = $3 }
    { printf "launch, %s: least %.1f ns, median batch %.1f ns, added %.1f and %.1f ns\n", $1, $2, $3, $2 - a, $3 - b }'
