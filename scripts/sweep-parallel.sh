#!/usr/bin/env bash
# Spreads a study over processes with a job runner and puts the parts together.
# usage: scripts/sweep-parallel.sh FILE OUT PARTS [PROCESSES]
# Runs GNU parallel where it is installed (with PARALLEL_SSH_HOSTS=a,b on these hosts, which need
# the same folder), else xargs. TAKT names the command to run.
set -euo pipefail

file=${1:?the study file}
out=${2:?the folder for results, which all processes share}
parts=${3:?the number of parts}
processes=${4:-$(nproc)}
takt=${TAKT:-takt}

# One thread each: the runner decides how many run at once.
if command -v parallel >/dev/null; then
    hosts=()
    [[ -n "${PARALLEL_SSH_HOSTS:-}" ]] && hosts=(--sshlogin "$PARALLEL_SSH_HOSTS" --workdir .)
    seq "$parts" | parallel --will-cite --halt now,fail=1 --jobs "$processes" "${hosts[@]}" \
        "$takt" sweep "$file" --out "$out" --threads 1 --shard "{}/$parts"
else
    seq "$parts" | xargs -P "$processes" -I '{}' \
        "$takt" sweep "$file" --out "$out" --threads 1 --shard "{}/$parts"
fi
"$takt" sweep "$file" --out "$out" --merge
