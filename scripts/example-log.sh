#!/bin/sh
# Records examples/dial.jsonl: an instrument and a map for a moment, on a daemon of their own.
#
# `takt replay` compares each decision with those of its own build, so a change of what the core decides needs a new
# log. Run it from the top of the repository with `takt` and the apps in PATH.
set -eu

folder=$(mktemp -d)
trap 'takt serve --stop >"$folder/stop" 2>&1 || true; rm -rf "$folder"' EXIT
chmod 700 "$folder"
unset TAKT_SOCKET
export XDG_RUNTIME_DIR="$folder" HOME="$folder"

takt serve --no-measure --record "$folder/log.jsonl" --background
takt run --name dial --priority 80 --fps 60 --etpf-ms 3 -- \
    takt-speedometer --platform off-screen --frames 20 >"$folder/dial" &
dial=$!
takt run --name map --schedule -- takt-map --platform off-screen --size 160x120 --frames 6 >"$folder/map" &
map=$!
wait "$dial"
wait "$map"
takt serve --stop
takt replay "$folder/log.jsonl"
mv "$folder/log.jsonl" examples/dial.jsonl
