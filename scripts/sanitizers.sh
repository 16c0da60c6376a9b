#!/bin/bash
# Runs trap programs (crates/takt-cli/tests/traps) with Takt underneath while tools look for mistakes:
# gcc's address, undefined-behaviour and thread sanitizers in the programs, valgrind over programs and
# Takt, sanitizers of the Rust compiler in Takt itself, and Miri on what it can run.
# usage: scripts/sanitizers.sh [asan] [tsan] [valgrind] [rust] [miri]; without words, all of them.
# What is not installed is skipped, and said; what takes longer than LIMIT_S (1200) has failed. TAKT
# names the command to use; TOOLCHAIN the one whose sanitizers and Miri are used, nightly unless told
# otherwise. Where it is not installed, the default toolchain's address sanitizer is used.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
takt=${TAKT:-$target/release/takt}
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(asan tsan valgrind rust miri)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
limit=${LIMIT_S:-1200}
export LIBGL_ALWAYS_SOFTWARE=1 LP_NUM_THREADS=1 XDG_CACHE_HOME="$work/cache"

# Runs a command for so long at most, and says how it ended.
bounded() { # PART WHAT LOG COMMAND...
    local part=$1 what=$2 log=$3 began=$SECONDS code=0
    timeout "$limit" "${@:4}" >"$log" 2>&1 || code=$?
    if [ "$code" = 0 ]; then
        echo "$part: ok: $what: $(grep -c '^test .* ok$' "$log" || true) tests in $((SECONDS - began)) s"
        return
    fi
    [ "$code" != 124 ] || what="$what: it did not end within $limit s"
    echo "$part: FAILED: $what"
    tail -40 "$log"
    failed=1
}
skip() { echo "$1: SKIPPED, $2"; }
need_takt() {
    [ -x "$takt" ] || { echo "$0: there is no $takt; run 'make build', or name another with TAKT" >&2; exit 2; }
}
compile() { # NAME FLAG...
    gcc -g -O1 -Wno-unused-function "${@:2}" -o "$work/$1" "crates/takt-cli/tests/traps/$1.c" -lEGL -lGLESv2 -lpthread -ldl
}
# Runs a trap alone and in both ways; the tools' own exit code or words are what fails.
compare() { # PART COMMAND...
    local part=$1 way
    shift
    "$@" >"$work/alone" 2>"$work/alone.err" && alone=0 || alone=$?
    for way in vendor preload; do
        "$takt" run --hook "$way" --compare "$work/m.csv" -- "$@" >"$work/with" 2>"$work/with.err" && with=0 || with=$?
        if [ "$with" != "$alone" ] || ! cmp -s "$work/alone" "$work/with" || grep -qE 'Sanitizer|runtime error' "$work/with.err"; then
            echo "$part: FAILED: $* ($way): exit code $with, alone $alone"
            head -40 "$work/with.err"
            failed=1
        else
            echo "$part: ok: ${*##*/} ($way), exit code $with"
        fi
    done
}
can_sanitize() { # KIND
    echo 'int main(void) { return 0; }' | gcc -fsanitize="$1" -x c -o "$work/try" - 2>/dev/null && "$work/try"
}

asan() {
    need_takt
    can_sanitize address,undefined || { skip asan 'gcc cannot link its address sanitizer (libasan)'; return; }
    # Drivers leak at exit, and the preloaded library comes before the sanitizer's, which is harmless.
    export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0:exitcode=77 UBSAN_OPTIONS=halt_on_error=1
    local trap
    for trap in scene blocks deleted huge page_end errors threads forks lookup contexts swaps; do
        compile "$trap" -fsanitize=address,undefined
        case $trap in
            blocks) compare asan "$work/$trap" array; compare asan "$work/$trap" formats ;;
            contexts) compare asan "$work/$trap" 100 ;;
            lookup) compare asan "$work/$trap" 2 ;;
            swaps) compare asan "$work/$trap" only; compare asan "$work/$trap" never ;;
            *) compare asan "$work/$trap" ;;
        esac
    done
}

tsan() {
    need_takt
    can_sanitize thread || { skip tsan 'gcc cannot link its thread sanitizer (libtsan)'; return; }
    # Only what was compiled with it can be judged.
    export TSAN_OPTIONS=ignore_noninstrumented_modules=1:exitcode=77
    compile threads -fsanitize=thread
    compare tsan "$work/threads"
}

valgrind_part() {
    need_takt
    command -v valgrind >/dev/null || { skip valgrind 'it is not installed'; return; }
    # Code that a driver compiles at run time and what it leaves uninitialised are its own business.
    local trap
    for trap in deleted page_end; do
        compile "$trap"
        "$takt" run --hook vendor --compare "$work/m.csv" -- valgrind --quiet --error-exitcode=0 --undef-value-errors=no \
            --smc-check=all-non-file --log-file="$work/valgrind.log" "$work/$trap" >"$work/with" || true
        "$work/$trap" >"$work/alone" || true
        # Mistakes count where our library is among the callers.
        if ! [ -e "$work/valgrind.log" ] || grep -q 'libEGL_takt' "$work/valgrind.log" || ! cmp -s "$work/alone" "$work/with"; then
            echo "valgrind: FAILED: $trap"
            head -60 "$work/valgrind.log"
            failed=1
        else
            echo "valgrind: ok: $trap"
        fi
    done
}

toolchain=${TOOLCHAIN:-nightly}
has_toolchain() { cargo "+$toolchain" --version >/dev/null 2>&1; }

# Tests of the hooks with every access of ours checked.
instrumented() { # KIND WHAT... : cargo and its arguments
    local kind=$1
    shift
    bounded rust "$kind" "$work/rust.log" \
        env RUSTFLAGS=-Zsanitizer="$kind" ASAN_OPTIONS=detect_leaks=0 CARGO_TARGET_DIR="$target/sanitizers-$kind" "$@"
}

rust() {
    local host tests=(--package takt-gl --test passing --test null_driver)
    host=$(rustc --print host-tuple)
    if ! has_toolchain; then
        # A stable compiler has the sanitizer, too, but not its standard library's sources.
        instrumented address env RUSTC_BOOTSTRAP=1 cargo test --locked --target "$host" "${tests[@]}"
        skip 'rust: thread' "there is no toolchain '$toolchain' (rustup toolchain install $toolchain)"
        return
    fi
    instrumented address cargo "+$toolchain" test --locked --target "$host" "${tests[@]}"
    # What the standard library does counts as well, where threads meet.
    if [ ! -d "$(rustc "+$toolchain" --print sysroot)/lib/rustlib/src/rust/library" ]; then
        skip 'rust: thread' "rust-src is not installed (rustup +$toolchain component add rust-src)"
        return
    fi
    instrumented thread cargo "+$toolchain" test --locked -Zbuild-std --target "$host" --package takt-gl --test passing
}

miri() {
    cargo "+$toolchain" miri --version >/dev/null 2>&1 ||
        { skip miri "it is not installed (rustup +$toolchain component add miri)"; return; }
    # Miri runs a thousand times slower and knows no shared memory between processes, nor how one reads
    # the memory of a program that may have gone; so tests of what is plain code, and none that roll dice
    # for long. Loom takes threads apart in all ways, here they go one way, with every access looked at.
    export MIRIFLAGS=-Zmiri-disable-isolation CARGO_TARGET_DIR="$target/miri" PROPTEST_CASES=2
    local tests
    for tests in 'takt-ipc --lib -- ring::tests record::tests message::tests' \
        'takt-core --lib -- time::tests refresh::tests' \
        'takt-gl --lib -- slice:: client:: shadow:: --skip shadow::client_memory --skip shadow::inputs'; do
        # shellcheck disable=SC2086 # words of their own
        bounded miri "$tests" "$work/miri.log" cargo "+$toolchain" miri test --locked --package $tests
    done
}

for part in "${parts[@]}"; do
    case $part in
        asan | tsan | rust | miri) (set +u; "$part"; exit "$failed") || failed=1 ;;
        valgrind) (valgrind_part; exit "$failed") || failed=1 ;;
        *) sed -n '2,9s/^# //p' "$0" >&2; exit 2 ;;
    esac
done
exit "$failed"
