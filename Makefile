# Takt's chores; `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

START := $(shell date +%s)
TARGET := $(or $(CARGO_TARGET_DIR),target)
TAKT := $(TARGET)/release/takt
# Versions are those of Cargo.lock, everywhere.
CARGO_FLAGS := --locked
# The command with its console, and the libraries that it puts under programs.
PROGRAMS := takt-cli takt-web takt-hook takt-hook-glx takt-cuda-hook takt-slices-hook
# `takt --version` and logs tell which build it was.
ifeq ($(origin TAKT_COMMIT),undefined)
TAKT_COMMIT := $(shell git describe --always --dirty --abbrev=12 2>/dev/null)
endif
export TAKT_COMMIT
# Only benches, sanitizers and slow tests need these, so nothing else asks for them.
RARE_PACKAGES := valgrind prometheus
SETUP := scripts/setup.sh $(RARE_PACKAGES:%=--without %)

# No colours and no progress bars in logs.
ifeq ($(MAKE_TERMOUT),)
export CARGO_TERM_COLOR ?= never
export CARGO_TERM_PROGRESS_WHEN ?= never
endif

HAVE_NEXTEST = command -v cargo-nextest >/dev/null
HAVE_DENY = command -v cargo-deny >/dev/null
# The installed one, or the one that `make docs` installs.
MDBOOK = $(or $(shell command -v mdbook),$(wildcard $(TARGET)/tools/bin/mdbook))
# Tests load libraries and start programs of other packages. Built here with everything else, they share all crates;
# each test program would build them with the features of these packages alone, which compiles most crates once more.
BUILD_TESTS = cargo build $(CARGO_FLAGS) --workspace --all-targets
# The command among them. It also notices numbers that overflow, and needs no second build of everything.
CHECKED_TAKT := $(TARGET)/debug/takt
RUN_TESTS = $(BUILD_TESTS); export TAKT_BUILT=1; \
	if $(HAVE_NEXTEST); then cargo nextest run $(CARGO_FLAGS) --workspace $(NEXTEST_FLAGS); \
	else cargo test $(CARGO_FLAGS) --workspace --all-targets; fi

.PHONY: help setup build apps capi cockpit deb eval-bundle demo test test-long sanitizers fuzz studies bench lint clean
.PHONY: setup-build setup-all checks unit-tests interleavings slow-tests docs rustdoc book pictures licences prove short-studies deny

help:
	@echo 'make demo       build Takt and show what it does, simulated and with real programs'
	@echo 'make build      build the takt command in $(TAKT)'
	@echo 'make apps       build the apps to schedule (docs/apps.md) in $(TARGET)/release'
	@echo 'make eval-bundle  collect what experiments on another machine need in out/eval-bundle'
	@echo 'make capi       build libtakt, the C interface (docs/capi.md), in $(TARGET)/release'
	@echo 'make deb        build Debian packages (docs/packaging.md) in $(TARGET)/deb'
	@echo 'make test       everything that must hold before a change goes in'
	@echo 'make test-long  the same, then slow tests and a long search for counterexamples'
	@echo 'make sanitizers run trap programs and tests under sanitizers, valgrind and Miri, as far as installed'
	@echo 'make fuzz       fuzz what clients can send, MINUTES (1) per target; better with a nightly compiler'
	@echo 'make studies    run all studies, and compare their plots with those of the documents'
	@echo 'make bench      measure: time and instructions per decision, simulation speed'
	@echo 'make docs       build the documents as a book in $(TARGET)/book; installs mdbook if it is missing (minutes)'
	@echo 'make pictures   draw the moving picture of README.md again'
	@echo 'make lint       format, lints, tidy checks, documentation of the source'
	@echo 'make setup      install the system packages of packages.txt'
	@echo 'make deny       install cargo-deny, which make test uses where it is present (minutes)'
	@echo 'make clean      remove everything that was built'

setup: setup-all

setup-build:
	@$(SETUP)

setup-all:
	@scripts/setup.sh

build: setup-build
	cargo build $(CARGO_FLAGS) --release $(PROGRAMS:%=--package %)

apps: setup-build
	cargo build $(CARGO_FLAGS) --release --package takt-apps

eval-bundle: setup-build
	cargo build $(CARGO_FLAGS) --release $(PROGRAMS:%=--package %) --package takt-apps
	eval/bundle.sh out/eval-bundle

cockpit: setup-build
	cargo build $(CARGO_FLAGS) --release --package takt-compositor

capi: setup-build
	cargo build $(CARGO_FLAGS) --release --package takt-capi --package takt-cuda-capi

deb: build apps capi cockpit
	packaging/build-deb.sh "$(TARGET)/release" "$(TARGET)/deb"

demo: build apps
	"$(TAKT)" demo

test: setup-build checks unit-tests interleavings rustdoc book licences prove short-studies
	@echo "make test: passed in $$(( $$(date +%s) - $(START) )) s"

test-long: test slow-tests sanitizers studies
	cargo clippy $(CARGO_FLAGS) --package takt-cli --all-targets --all-features -- -D warnings
	"$(TAKT)" prove --sets 100000
	"$(TAKT)" prove --sets 100000 --gpu time-shared
	"$(TAKT)" prove --sets 100000 --mixed
	"$(TAKT)" prove --sets 100000 --mixed --gpu time-shared
	"$(TAKT)" prove --sets 100000 --mixed --gpu time-shared --switch-us 222
	"$(TAKT)" prove --sets 100000 --divisible
	@echo "make test-long: passed in $$(( $$(date +%s) - $(START) )) s"

bench: setup-all
	cargo build $(CARGO_FLAGS) --release --package takt-cli --features opponents
	"$(TAKT)" bench
	TAKT="$(TAKT)" scripts/callgrind-decision.sh
	cargo build $(CARGO_FLAGS) --release --package takt-cuda-hook --package takt-cuda-fake
	TAKT="$(TAKT)" scripts/bench-launch.sh

lint: setup-build checks rustdoc

# Without the feature `opponents`: its crates ask more of syn, so all derive macros, and serde, clap, smithay and others
# that use them, would be compiled once more than for tests and documentation.
checks: setup-build
	cargo fmt --all --check
	cargo clippy $(CARGO_FLAGS) --workspace --all-targets -- -D warnings
	cargo xtask tidy
	cargo xtask bare

unit-tests: setup-build
	$(RUN_TESTS)
	cargo test $(CARGO_FLAGS) --workspace --doc

# Model checking needs other atomics everywhere, hence a build folder of its own. The models take a second.
interleavings: setup-build
	RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR="$(TARGET)/loom" \
		cargo test $(CARGO_FLAGS) --profile models --package takt-ipc --test interleavings

slow-tests: NEXTEST_FLAGS := --profile slow
slow-tests: setup-all
	export TAKT_SLOW_TESTS=1; $(RUN_TESTS)

# Says what it skips where a tool is missing.
sanitizers: setup-all build
	TAKT="$(TAKT)" CARGO_TARGET_DIR="$(TARGET)" scripts/sanitizers.sh

# Minutes per target.
MINUTES ?= 1
fuzz:
	CARGO_TARGET_DIR="$(TARGET)/fuzz" scripts/fuzz.sh $(MINUTES)

rustdoc: setup-build
	RUSTDOCFLAGS='-D warnings' cargo doc $(CARGO_FLAGS) --workspace --no-deps

docs: setup-build
	@if [ -z '$(MDBOOK)' ]; then \
		cargo install --locked --root "$(TARGET)/tools" mdbook@0.5.4; \
	fi
	$(MAKE) --no-print-directory book

# Tidy checks links and the table of contents without it.
book:
	@if [ -n '$(MDBOOK)' ]; then \
		set -x; scripts/book.py --mdbook '$(MDBOOK)' --out "$(TARGET)/book"; \
	else \
		echo 'book: SKIPPED, mdbook is not installed (make docs installs it)'; \
	fi

pictures: build
	scripts/timeline_picture.py --takt "$(TAKT)"

licences:
	@if $(HAVE_DENY); then \
		set -x; cargo deny --locked check bans licenses sources; \
	else \
		echo 'licences: SKIPPED, cargo-deny is not installed (make deny installs it)'; \
	fi

prove: setup-build
	$(BUILD_TESTS)
	"$(CHECKED_TAKT)" prove --sets 3000 --seed 1
	"$(CHECKED_TAKT)" prove --sets 2000 --seed 1 --gpu time-shared
	"$(CHECKED_TAKT)" prove --sets 1000 --seed 1 --mixed
	"$(CHECKED_TAKT)" prove --sets 500 --seed 1 --mixed --gpu time-shared
	"$(CHECKED_TAKT)" prove --sets 500 --seed 1 --mixed --gpu time-shared --switch-us 222
	"$(CHECKED_TAKT)" prove --sets 1000 --seed 1 --divisible
	"$(CHECKED_TAKT)" sim scenarios/drive-cycle.toml --misses 0 --expect-hash $$(cat scenarios/drive-cycle.hash)

# Seconds; the others are for `make studies`.
short-studies: setup-build
	$(BUILD_TESTS)
	TAKT="$(CHECKED_TAKT)" scripts/studies.sh hercules-fig8

studies: build
	TAKT="$(TAKT)" scripts/studies.sh
	TAKT="$(TAKT)" scripts/policies.sh
	scripts/timeline_picture.py --takt "$(TAKT)" --check

deny: setup-build
	cargo install --locked cargo-deny@0.20.2

clean:
	@if command -v cargo >/dev/null; then cargo clean; else rm -rf target; fi
	rm -rf out callgrind.out.*
