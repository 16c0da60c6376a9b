#!/bin/bash
# Collects everything that the experiments need into one folder, to be run on a machine that has
# nothing but a driver: make eval-bundle, or eval/bundle.sh [--binaries DIR] FOLDER.
set -euo pipefail
cd "$(dirname "$0")/.."

binaries=${CARGO_TARGET_DIR:-target}/release
if [ "${1:-}" = --binaries ]; then
    binaries=$2
    shift 2
fi
[ $# = 1 ] || { echo "usage: eval/bundle.sh [--binaries DIR] FOLDER" >&2; exit 2; }
folder=$1
limit_kib=$((60 * 1024))

# What every machine has, and must not be brought along: all parts of the C library.
at_home='^(linux-vdso|ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libresolv|libutil|libnss_[a-z]*)\.so'

rm -rf "$folder"
mkdir -p "$folder"/{bin,lib,native,share,scenarios,vendor/nvidia,vendor/mesa}

for program in takt takt-speedometer takt-tachometer takt-map takt-menu takt-scene takt-flood libEGL_takt.so libGLX_takt.so libcuda_takt.so libtakt_ioctl.so; do
    [ -e "$binaries/$program" ] || { echo "eval/bundle.sh: $binaries/$program is not built" >&2; exit 1; }
    strip -o "$folder/bin/$program" "$binaries/$program"
done
for program in glmark2-es2 es2gears_x11; do
    cp "$(command -v $program)" "$folder/bin/" || { echo "eval/bundle.sh: $program is missing: make setup" >&2; exit 1; }
done
cp -r /usr/share/glmark2 "$folder/share/"
gcc -O2 -Wall -Wextra -shared -fPIC -o "$folder/native/libEGL.so" eval/native/pbuffer.c -Wl,--no-as-needed -lEGL
gcc -O2 -Wall -Wextra -pthread -o "$folder/native/awake" eval/native/awake.c
gcc -O2 -Wall -Wextra -o "$folder/native/compute" eval/native/compute.c -ldl

# Programs that print what they compute, which cut work must not change.
for trap in compute slices samples; do
    gcc -O1 -Wall -Wno-unused-function -o "$folder/bin/trap-$trap" "crates/takt-cli/tests/traps/$trap.c" \
        -lEGL -lGLESv2 -lpthread
done

# Libraries that programs name, or load by name while they run.
libraries() {
    ldd "$folder"/bin/* "$folder/native/libEGL.so" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
    for name in libEGL.so.1 libGLESv2.so.2 libGLdispatch.so.0; do
        ldconfig -p | awk -v name=$name '$1 == name && /x86-64/ { print $NF; exit }'
    done
}
for library in $(libraries | sort -u); do
    name=$(basename "$library")
    [[ $name =~ $at_home ]] || cp -L "$library" "$folder/lib/$name"
done
# glmark2 asks for names without versions.
cp "$folder/lib/libEGL.so.1" "$folder/lib/libEGL.so"
cp "$folder/lib/libGLESv2.so.2" "$folder/lib/libGLESv2.so"

vendor() {
    printf '{"file_format_version":"1.0.0","ICD":{"library_path":"libEGL_%s.so.0"}}\n' "$1" \
        >"$folder/vendor/$1/10_$1.json"
}
vendor nvidia
vendor mesa

cp -r eval "$folder/"
find "$folder/eval" -name __pycache__ -prune -exec rm -rf {} +
# Constants and models of GPUs that were measured before.
mv "$folder/eval/store" "$folder/"
cp scenarios/thesis-mixed.toml "$folder/scenarios/"
git describe --always --dirty --abbrev=12 >"$folder/COMMIT"

size_kib=$(du -sk "$folder" | cut -f 1)
echo "$folder: $((size_kib / 1024)) MiB of $((limit_kib / 1024)), commit $(cat "$folder/COMMIT")"
if [ "$size_kib" -gt "$limit_kib" ]; then
    du -ak "$folder" | sort -n | tail >&2
    echo "eval/bundle.sh: too large" >&2
    exit 1
fi
