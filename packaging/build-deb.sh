#!/usr/bin/env bash
# Makes Debian packages of what was built: takt, libtakt0, libtakt-dev, and takt-cockpit if it was built. Needs
# dpkg-deb, no network and no rights.
#
# usage: packaging/build-deb.sh FROM OUT
#   FROM  folder of the built programs and libraries, such as target/release
#   OUT   folder that gets the packages
set -euo pipefail
export LC_ALL=C
umask 022

if [[ $# -ne 2 ]]; then
	sed -n 's/^# \{0,1\}//; 2,7p' "$0" >&2
	exit 2
fi
from=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
cd "$(dirname "$0")/.."
here=packaging

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
architecture=$(dpkg --print-architecture)
multiarch=$(gcc -print-multiarch 2>/dev/null || true)
multiarch=${multiarch:-$(uname -m)-linux-gnu}
maintainer=${DEB_MAINTAINER:-The Takt maintainers <maintainers@users.noreply.takt.invalid>}
# For tests, which need no small packages.
compression=${DEB_COMPRESSION:-xz}
# The same tree gives the same packages.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What `takt run` puts under programs.
libraries=(libEGL_takt.so libGLX_takt.so libcuda_takt.so libtakt_ioctl.so)
apps=(takt-speedometer takt-tachometer takt-map takt-menu takt-scene takt-flood)
for file in takt takt-web "${libraries[@]}" libtakt.so libtakt.a libtakt_cuda_capi.so "${apps[@]}"; do
	if [[ ! -f $from/$file ]]; then
		echo "build-deb.sh: $from/$file is missing; make deb builds it" >&2
		exit 2
	fi
done

# put MODE FILE TARGET...
put() {
	local mode=$1 file=$2 target
	shift 2
	for target in "$@"; do
		install -D -m "$mode" "$file" "$root$target"
	done
}

# Programs and libraries without what only debuggers need.
put_stripped() {
	put "$@"
	shift 2
	local target
	for target in "$@"; do
		strip --strip-unneeded "$root$target" 2>/dev/null || true
	done
}

put_doc() {
	local package=$1
	sed -e '/^@MIT@$/{r LICENSE-MIT' -e 'd}' "$here/deb/copyright" |
		awk '/^License: Expat$/ { text = 1; print; next }
		     text { print ($0 == "" ? " ." : " " $0); next } { print }' >"$work/copyright"
	put 644 "$work/copyright" "/usr/share/doc/$package/copyright"
	gzip -9 -n <CHANGELOG.md >"$work/changelog.gz"
	put 644 "$work/changelog.gz" "/usr/share/doc/$package/changelog.gz"
}

# The newest version of the C library that a file asks for.
libc_of() {
	local newest
	newest=$(cat "$@" | grep -aoE 'GLIBC_2\.[0-9]+(\.[0-9]+)?' | sort -uV | tail -n 1)
	echo "libc6 (>= ${newest#GLIBC_})"
}

# package NAME SECTION "FIELDS" "DESCRIPTION"
package() {
	local name=$1 section=$2 fields=$3 description=$4
	mkdir -p "$root/DEBIAN"
	{
		echo "Package: $name"
		echo "Source: takt"
		echo "Version: $version"
		echo "Architecture: $architecture"
		echo "Maintainer: $maintainer"
		echo "Section: $section"
		echo "Priority: optional"
		echo "Installed-Size: $(du -k -s --exclude=DEBIAN "$root" | cut -f 1)"
		printf '%s\n' "$fields"
		printf '%s\n' "$description"
	} >"$root/DEBIAN/control"
	(cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) \
		>"$root/DEBIAN/md5sums"
	find "$root" -newermt "@$SOURCE_DATE_EPOCH" -print0 | xargs -0r touch --no-dereference --date="@$SOURCE_DATE_EPOCH"
	dpkg-deb --root-owner-group "-Z$compression" --build "$root" "$out/${name}_${version}_${architecture}.deb"
}

# takt: the command, the library that programs load, the daemon's surroundings, apps to show it.
root=$work/takt
put_stripped 755 "$from/takt" /usr/bin/takt
put_stripped 755 "$from/takt-web" /usr/bin/takt-web
for library in "${libraries[@]}"; do
	put_stripped 644 "$from/$library" "/usr/lib/takt/$library"
done
for app in "${apps[@]}"; do
	put_stripped 755 "$from/$app" "/usr/lib/takt/$app"
done
put 644 $here/systemd/takt.service /usr/lib/systemd/system/takt.service
put 644 $here/systemd/takt-measure.service /usr/lib/systemd/system/takt-measure.service
put 644 $here/systemd/takt-user.service /usr/lib/systemd/user/takt.service
put 644 $here/systemd/takt-web-user.service /usr/lib/systemd/user/takt-web.service
put 644 $here/systemd/takt.rules /usr/lib/udev/rules.d/60-takt.rules
put 644 $here/systemd/takt.sysusers /usr/lib/sysusers.d/takt.conf
put 644 $here/takt.toml /etc/takt/takt.toml
mkdir -p "$work/man"
"$from/takt" man "$work/man"
gzip -9 -n "$work"/man/*.1
for page in "$work"/man/*.1.gz; do
	put 644 "$page" "/usr/share/man/man1/$(basename "$page")"
done
for shell in bash zsh fish; do
	"$from/takt" completions $shell >"$work/completions.$shell"
done
put 644 "$work/completions.bash" /usr/share/bash-completion/completions/takt
put 644 "$work/completions.zsh" /usr/share/zsh/vendor-completions/_takt
put 644 "$work/completions.fish" /usr/share/fish/vendor_completions.d/takt.fish
put_doc takt
put 644 README.md /usr/share/doc/takt/README.md
put 644 packaging/grafana/takt.json /usr/share/doc/takt/grafana/takt.json
put 644 examples/python/console.py /usr/share/doc/takt/examples/console.py
for page in docs/*.md; do
	put 644 "$page" "/usr/share/doc/takt/$page"
done
for scenario in scenarios/*.toml; do
	put 644 "$scenario" "/usr/share/doc/takt/examples/$scenario"
done
for example in examples/*.{toml,csv,spec,jsonl}; do
	put 644 "$example" "/usr/share/doc/takt/$example"
done
for script in postinst prerm postrm; do
	put 755 "$here/deb/takt.$script" "/DEBIAN/$script"
done
echo /etc/takt/takt.toml >"$work/conffiles"
put 644 "$work/conffiles" /DEBIAN/conffiles
package takt utils "Depends: $(libc_of "$from/takt" "$from/libEGL_takt.so"), libgcc-s1
Recommends: libegl1, libgles2
Suggests: libgl1-mesa-dri" \
	"Description: real-time scheduler for GPUs
 Several apps draw on one GPU; some of them must be on time for every frame.
 Takt decides whose work the GPU gets next, so that the important ones meet
 their deadlines whatever the others do.
 .
 This package contains the takt command with its daemon and its console for
 browsers, the library that GL ES programs run on, and a few small apps that takt demo plays."

# takt-cockpit: windows and input of several domains, where its program was built.
if [[ -f $from/takt-compositor ]]; then
	root=$work/takt-cockpit
	put_stripped 755 "$from/takt-compositor" /usr/bin/takt-compositor
	put 644 $here/systemd/takt-cockpit.service /usr/lib/systemd/system/takt-cockpit.service
	put 644 $here/systemd/takt-cockpit.sysusers /usr/lib/sysusers.d/takt-cockpit.conf
	put 644 examples/cockpit.toml /etc/takt/cockpit.toml
	mkdir -p "$work/man-cockpit"
	"$from/takt-compositor" --man "$work/man-cockpit"
	gzip -9 -n "$work"/man-cockpit/*.1
	put 644 "$work/man-cockpit/takt-compositor.1.gz" /usr/share/man/man1/takt-compositor.1.gz
	put_doc takt-cockpit
	echo /etc/takt/cockpit.toml >"$work/conffiles"
	put 644 "$work/conffiles" /DEBIAN/conffiles
	package takt-cockpit utils "Depends: $(libc_of "$from/takt-compositor"), libgcc-s1, libxkbcommon0, xkb-data
Recommends: takt (= $version), libegl1, libgles2" \
		"Description: windows and input of several domains on one scheduled GPU
 A Wayland compositor whose displays are shared by domains that do not trust
 each other: instruments, a head unit, apps of others. Rules of a file say
 which windows are shown where and what input reaches them."
fi

# libtakt0: for programs that ask by themselves.
root=$work/libtakt0
put_stripped 644 "$from/libtakt.so" "/usr/lib/$multiarch/libtakt.so.0"
put_stripped 644 "$from/libtakt_cuda_capi.so" "/usr/lib/$multiarch/libtakt-cuda.so.0"
put_doc libtakt0
printf '%s\n' 'libtakt 0 libtakt0' 'libtakt-cuda 0 libtakt0' >"$work/shlibs"
put 644 "$work/shlibs" /DEBIAN/shlibs
echo 'activate-noawait ldconfig' >"$work/triggers"
put 644 "$work/triggers" /DEBIAN/triggers
package libtakt0 libs "Depends: $(libc_of "$from/libtakt.so"), libgcc-s1
Suggests: takt
Multi-Arch: same" \
	"Description: GPU time for programs that ask for it themselves
 Programs that use libtakt are scheduled by the daemon of Takt, a real-time
 scheduler for GPUs, and run on as they are where there is none."

# libtakt-dev: to build such programs.
root=$work/libtakt-dev
put 644 crates/takt-capi/include/takt.h /usr/include/takt.h
put 644 crates/takt-cuda-capi/include/takt-cuda.h /usr/include/takt-cuda.h
put 644 "$from/libtakt.a" "/usr/lib/$multiarch/libtakt.a"
strip --strip-debug "$root/usr/lib/$multiarch/libtakt.a" 2>/dev/null || true
for name in takt takt-cuda; do
	ln -s "lib$name.so.0" "$root/usr/lib/$multiarch/lib$name.so"
	sed "s/@VERSION@/$version/; s/@MULTIARCH@/$multiarch/" "$here/$name.pc.in" >"$work/$name.pc"
	put 644 "$work/$name.pc" "/usr/lib/$multiarch/pkgconfig/$name.pc"
done
put_doc libtakt-dev
put 644 examples/c/frames.c /usr/share/doc/libtakt-dev/examples/frames.c
put 644 examples/c/deadlines.c /usr/share/doc/libtakt-dev/examples/deadlines.c
put 644 examples/python/deadlines.py /usr/share/doc/libtakt-dev/examples/deadlines.py
put 644 examples/c/jobs.c /usr/share/doc/libtakt-dev/examples/jobs.c
put 644 examples/c/compose.c /usr/share/doc/libtakt-dev/examples/compose.c
package libtakt-dev libdevel "Depends: libtakt0 (= $version)
Multi-Arch: same" \
	"Description: GPU time for programs that ask for it themselves (development)
 Header, static library and pkg-config file of libtakt, the C interface of
 Takt, a real-time scheduler for GPUs."
