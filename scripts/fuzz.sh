#!/bin/bash
# Fuzzes what clients, configurations and audits can contain:
#
#   scripts/fuzz.sh [MINUTES] [TARGET...]   for so many minutes of processor time per target (1), all targets
#                                           of fuzz/targets
#   scripts/fuzz.sh --keep [TARGET...]      makes fuzz/seeds as few inputs of its own and of fuzz/corpus as
#                                           reach the same code
#
# A nightly compiler adds checks of memory; without one, the usual compiler does without them. cargo-fuzz is
# installed beside the build folder if it is missing (minutes). What is found lies in fuzz/artifacts, with the
# command that plays it again.
set -euo pipefail
cd "$(dirname "$0")/.."
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target/fuzz}")
tools=$(dirname "$target_dir")/tools
# An input that takes so long hangs.
hang_s=60
# Inputs that are kept are short enough for people to read.
kept_bytes_max=1024

minutes=1
keep=
if [ "${1:-}" = --keep ]; then
    keep=yes
    shift
elif [[ "${1:-}" =~ ^[0-9]+$ ]]; then
    minutes=$1
    shift
fi

PATH=$PATH:$tools/bin
if ! command -v cargo-fuzz > /dev/null; then
    cargo install --locked --root "$tools" cargo-fuzz@0.13.2
fi
compiler=() sanitizer=(--sanitizer none)
if cargo +nightly --version > /dev/null 2>&1; then
    compiler=(+nightly) sanitizer=()
else
    export RUSTC_BOOTSTRAP=1
    echo 'fuzz: no nightly compiler (rustup toolchain install nightly), so memory is not checked' >&2
fi

cargo_fuzz() {
    local act=$1 name=$2
    shift 2
    CARGO_TARGET_DIR=$target_dir cargo "${compiler[@]}" fuzz "$act" "${sanitizer[@]}" "$name" "$@"
}

# Seconds of processor time that commands of this script have had so far.
spent() {
    awk -v ticks="$(getconf CLK_TCK)" '{ print int(($16 + $17) / ticks) }' "/proc/$$/stat"
}

# A fuzzer counts seconds that pass. One that shares processors with others has had less: it goes on. It is run as
# it was built in the beginning: other commits may come meanwhile. It fails if an input was found that should not be.
fuzz() {
    local name=$1 seconds=$(($2 * 60)) began now options=()
    shift 2
    mkdir -p "fuzz/artifacts/$name"
    [ ! -f "fuzz/dictionaries/$name" ] || options=("-dict=fuzz/dictionaries/$name")
    began=$(spent) now=$(spent)
    while [ $((now - began)) -lt "$seconds" ]; do
        ASAN_OPTIONS=detect_odr_violation=0 "$programs/$name" -artifact_prefix="fuzz/artifacts/$name/" -max_total_time=$((seconds - now + began)) \
            -timeout="$hang_s" -print_final_stats=1 "${options[@]}" "$@" || return 1
        now=$(spent)
    done
    echo "fuzz: $name had $((now - began)) s of a processor, and nothing was found"
}

if [ $# = 0 ]; then
    for target in fuzz/targets/*.rs; do
        set -- "$@" "$(basename "$target" .rs)"
    done
fi
programs=$target_dir/$(rustc "${compiler[@]}" -vV | sed -n 's/^host: //p')/release
for name; do
    cargo_fuzz build "$name"
done
failed=()
for name; do
    corpus=fuzz/corpus/$name seeds=fuzz/seeds/$name
    mkdir -p "$corpus"
    if [ -z "$keep" ]; then
        echo "fuzz: $name for $minutes min"
        if ! fuzz "$name" "$minutes" "$corpus" "$seeds"; then
            failed+=("$name")
            echo "fuzz: $name failed; the others go on" >&2
        fi
        continue
    fi
    # Inputs with a name of their own were written by people, and stay.
    fewest=$(mktemp -d)
    cargo_fuzz run "$name" "$fewest" "$seeds" "$corpus" -- -merge=1 -use_counters=0 -max_len="$kept_bytes_max"
    find "$seeds" -type f -regextype posix-egrep -regex '.*/[0-9a-f]{12}' -delete
    for input in "$fewest"/*; do
        cp "$input" "$seeds/$(sha256sum < "$input" | cut -c1-12)"
    done
    rm -r "$fewest"
    echo "fuzz: $seeds has $(find "$seeds" -type f | wc -l) inputs"
done
for name in "${failed[@]}"; do
    echo "fuzz: $name failed; fuzz/artifacts/$name has the input: cargo fuzz run $name FILE plays it" >&2
done
[ ${#failed[@]} = 0 ]
