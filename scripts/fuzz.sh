#!/bin/bash
# Fuzzes what clients can send, for so many seconds per target (60 unless told otherwise). Needs
# cargo-fuzz and a nightly compiler; what is found lies in fuzz/artifacts, with the command that
# plays it again.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}

if ! cargo fuzz --version > /dev/null 2>&1; then
    echo 'make fuzz: cargo-fuzz is missing; install it with: cargo install cargo-fuzz' >&2
    exit 1
fi
if ! cargo +nightly --version > /dev/null 2>&1; then
    echo 'make fuzz: a nightly compiler is missing; install it with: rustup toolchain install nightly' >&2
    exit 1
fi
for target in fuzz/targets/*.rs; do
    name=$(basename "$target" .rs)
    echo "make fuzz: $name for $seconds s"
    mkdir -p "fuzz/corpus/$name"
    cargo +nightly fuzz run "$name" "fuzz/corpus/$name" "fuzz/seeds/$name" -- -max_total_time="$seconds" -print_final_stats=1
done
