#!/usr/bin/env bash
# An app of 11 ms per frame at 30 FPS beside five floods of 50 ms draws, on llvmpipe with one
# thread each: without and with Takt in turn, in one run. Needs a quiet machine.
#
# usage: scripts/bench-floods.sh [further options of `takt demo`, e.g. --config takt.toml]
# ROUNDS (3), SECONDS_EACH (20) and OUT (out/floods) change it.
set -euo pipefail
cd "$(dirname "$0")/.."

target="${CARGO_TARGET_DIR:-target}"
out="${OUT:-out/floods}"
cargo build --locked --release --package takt-cli --package takt-hook --package takt-hook-glx --package takt-apps

mkdir -p "$out"
{
	echo "commit:  $(git describe --always --dirty)"
	echo "machine: $(nproc) x $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1), $(uname -sr)"
	echo "load:    $(cut -d ' ' -f 1-3 /proc/loadavg) before the run"
} | tee "$out/machine.txt"
"$target/release/takt" demo --experiment floods --rounds "${ROUNDS:-3}" --seconds "${SECONDS_EACH:-20}" \
	--out "$out" "$@" | tee "$out/table.txt"
