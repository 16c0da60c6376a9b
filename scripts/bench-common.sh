# What the scripts that measure programs have in common; to be sourced from the repository's root.
# TAKT names the command to measure.
takt=${TAKT:-target/release/takt}
[ -x "$takt" ] || { echo "$0: there is no $takt; run 'make build', or name another with TAKT" >&2; exit 2; }

# Says what was measured, where, and on how quiet a machine.
about() { # COMMAND
    local commit dirty cpu
    commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
    dirty=$(git status --porcelain --untracked-files=no 2>/dev/null | head -1)
    cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1)
    printf '`%s` at commit %s%s, %s.\n' "$1" "$commit" "${dirty:+ with changes}" "$(date -u +%F)"
    printf '%s, %s cores, Linux %s, %s; LP_NUM_THREADS=%s; load average before: %s.\n' \
        "${cpu:-unknown CPU}" "$(nproc)" "$(uname -r)" "$(renderer)" "${LP_NUM_THREADS:-unset}" "$load_before"
}
load_before=$(cut -d' ' -f1-3 /proc/loadavg)

# What renders, as a program sees it.
renderer() {
    "$takt" doctor --seconds 5 -- "$work/startup" 2>/dev/null | sed -n 's/^ok *renderer *//p' | head -1
}

# The smallest program that shows a frame.
make_startup() {
    gcc -O2 -o "$work/startup" scripts/startup.c -lEGL -lGLESv2
}

# An X server of our own, where there is none.
need_display() {
    [ -z "${DISPLAY:-}" ] || return 0
    Xvfb -displayfd 1 -screen 0 1280x1024x24 -nolisten tcp >"$work/display" 2>/dev/null &
    server=$!
    while ! [ -s "$work/display" ]; do
        kill -0 "$server" 2>/dev/null || { echo "$0: Xvfb does not start, and DISPLAY is not set" >&2; exit 2; }
        sleep 0.1
    done
    export DISPLAY=":$(tr -d '[:space:]' <"$work/display")"
}

work=$(mktemp -d)
trap '[ -z "${server:-}" ] || kill "$server"; rm -rf "$work"' EXIT

# For awk: quantiles of numbers v[1..n], which are sorted in place.
quantiles='
function sort(v, n,   i, j, x) { for (i = 2; i <= n; i++) { x = v[i]; for (j = i - 1; j > 0 && v[j] > x; j--) v[j + 1] = v[j]; v[j + 1] = x } }
function quantile(v, n, q,   at, low) { at = 1 + (n - 1) * q; low = int(at); return low >= n ? v[n] : v[low] + (at - low) * (v[low + 1] - v[low]) }'
