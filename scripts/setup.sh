#!/usr/bin/env bash
# Makes sure that what Takt needs is there: a recent enough cargo, and the packages of packages.txt.
# usage: scripts/setup.sh [--without PACKAGE]...
# Exit status 2: something is missing that this script cannot provide; the message says what to do.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

without=" "
while [[ $# -gt 0 ]]; do
    case "$1" in
    --without)
        without+="${2:?--without needs the name of a package} "
        shift 2
        ;;
    *)
        echo "setup: unknown argument $1" >&2
        exit 2
        ;;
    esac
done

check_cargo() {
    local wanted found
    wanted=$(sed -n 's/^rust-version *= *"\(.*\)".*/\1/p' Cargo.toml)
    if ! command -v cargo >/dev/null; then
        local hint="install it with rustup (rustup toolchain install stable)"
        if [[ -x "${HOME:-/}/.cargo/bin/cargo" ]]; then
            hint="it is in ~/.cargo/bin, so add that to PATH"
        fi
        echo "setup: cargo is missing, Rust $wanted or newer is needed: $hint, then run make again." >&2
        exit 2
    fi
    found=$(cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9][0-9.]*\).*/\1/p')
    if [[ -z "$found" || "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]]; then
        echo "setup: cargo ${found:-of unknown version} is too old, Rust $wanted or newer is needed:" \
            "update it with rustup (rustup update stable), then run make again." >&2
        exit 2
    fi
}

missing_packages() {
    local package status
    while read -r package _; do
        [[ -z "$package" || "$package" == \#* || "$without" == *" $package "* ]] && continue
        status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [[ "$status" == installed ]] || echo "$package"
    done <packages.txt
}

install_packages() {
    local -a command=(apt-get install -y --no-install-recommends "$@")
    local -a root=()
    if [[ $(id -u) -ne 0 ]]; then
        if ! sudo -n true 2>/dev/null; then
            echo "setup: packages are missing; run this, then make again: sudo ${command[*]}" >&2
            exit 2
        fi
        root=(sudo -n)
    fi
    root+=(env DEBIAN_FRONTEND=noninteractive)
    # The package lists of a fresh machine may be absent or stale, hence the second try.
    "${root[@]}" "${command[@]}" </dev/null && return
    "${root[@]}" apt-get update </dev/null
    "${root[@]}" "${command[@]}" </dev/null
}

check_cargo
if ! command -v dpkg-query >/dev/null; then
    if ! command -v cc >/dev/null; then
        echo "setup: this is no Debian system and there is no C compiler: install what packages.txt lists." >&2
        exit 2
    fi
    exit 0
fi
mapfile -t missing < <(missing_packages)
if [[ ${#missing[@]} -gt 0 ]]; then
    install_packages "${missing[@]}"
fi
