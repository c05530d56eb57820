# `make serve` and `make test` set everything up; `make help` lists the rest.
SHELL := /bin/bash
# A table that is cut out of a test's output does not hide that the test failed.
.SHELLFLAGS := -o pipefail -c
CARGO ?= cargo
BENCH ?= --all

.PHONY: help setup serve build release install deb deb-trixie rpm image dist dist-twice test-packages test-packages-trixie test-install test-containers test-systemd test-guides arm64 lint-packages test first-hour repeat ci check check-all bench nginx-http3 results test-asan test-php-asan analyze test-php test-php-src lighthouse loom miri coverage hostile flooders upstreams certificates memory escape-suite connections fuzz deny clean

help: ## This list.
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

setup: ## Install the Debian packages that tests need and that are missing.
	@ci/setup build tests

build: ## Build the server and the lab, optimised.
	@ci/setup build
	$(CARGO) build --release -p outboard -p outboard-php -p outboard-lab

release: ## As `build`, the server optimised by a profile of typical requests; 12 minutes on two cores.
	@ci/setup build release
	ci/release

install: release ## Install into PREFIX (/usr/local): programs, PHP package, units, manual, completions.
	dist/install --prefix $(or $(PREFIX),/usr/local)

deb: release ## Debian packages of the release build, in target/packages, checked by lintian.
	@ci/setup packages
	packaging/deb

deb-trixie: build ## The same for Debian 13 and its PHP 8.4, in target/packages/trixie. Needs root.
	@ci/setup packages
	packaging/deb-release trixie 8.4

rpm: release ## RPM packages, likewise.
	@ci/setup packages
	packaging/rpm

image: deb ## Container images of the Debian packages, as OCI archives; each is run once. Needs root.
	packaging/image --check
	packaging/image --check --slim

dist: ## Everything that a release publishes, in target/dist: packages, images, an apt repository, checksums. Needs root.
	@ci/setup build release packages
	packaging/dist

dist-twice: ## `dist` in two clones, the results compared byte by byte; an hour on two cores. Needs root.
	@ci/setup build release packages
	packaging/dist-twice

test-packages: ## Installs packages on a fresh Debian 12 and serves a domain with a certificate. Needs root.
	ci/all deb-bookworm

test-packages-trixie: ## The same on a fresh Debian 13.
	ci/all deb-trixie

test-install: ## install.sh on fresh Debian 12 and 13, from a signed repository on this machine, to the first page. Needs root.
	ci/all install

test-containers: ## The files of examples/containers, built by buildah and run with a database and a cache. Needs root.
	ci/all containers

test-systemd: ## Their units under a real systemd, with upgrades, hardening and control groups, in a virtual machine. Needs root.
	ci/all deb-systemd

test-guides: ## The commands of the guide as written, on a fresh Debian with the packages alone. Needs root.
	ci/all guides

lint-packages: ## What linters say of the packages, the container's files and the scripts, as far as they are installed.
	packaging/lint

serve: ## Build the server alone, and serve examples/guestbook on http://127.0.0.1:8080/
	@ci/setup build serve
	$(CARGO) build --release -p outboard -p outboard-php
	@printf '\nThe guestbook is about to be served. Try next:\n'
	@printf '  a page         http://127.0.0.1:8080/\n'
	@printf '  who serves it  http://127.0.0.1:8080/about\n'
	@printf '  its JSON       curl http://127.0.0.1:8080/api/entries\n'
	@printf '  the server     target/release/outboard status\n'
	@printf '  your own app   target/release/outboard serve DIR\n\n'
	target/release/outboard serve --user "$$(id -un)" examples/guestbook

check: ## Words, format, lints, and unit tests of the server: before each commit. Needs six packages, and no root.
	@ci/check

test: ## Every test: units, the PHP host, documentation, end to end, loom, a short fuzz; CRATE=http2: one crate.
	$(if $(CRATE),@ci/test-crate $(CRATE),ci/test)

first-hour: ## `make check` and `make serve` on a fresh Debian with the packages of CONTRIBUTING.md alone. Needs root.
	@ci/setup packages
	@ci/first-hour

repeat: setup ## End-to-end tests that once failed without a fault of the server, 20 times; REPEAT='--times 5 files' others.
	ci/repeat $(REPEAT)

ci: ## What decides whether a change lands: `test`, `miri`, the PHP host under ASan, `deny`.
	ci/all

check-all: ## `ci`, and what takes longer: `test-php`, `arm64`, the packages, end to end under ASan, `coverage`; before a release.
	ci/all --full

bench: setup build ## Measure against nginx + php-fpm and Apache side by side; BENCH='NAME --quick' a part.
	target/release/outboard lab run $(BENCH) --out target/lab --gate

nginx-http3: ## An nginx with HTTP/3, from Debian 13's source package, for `lab run tls --nginx-http3`.
	ci/nginx-http3

results: ## RESULTS.md from the newest run of `make bench`.
	target/release/outboard lab report --md target/lab/report.json > RESULTS.md

test-asan: setup ## What meets PHP, with checks of memory and undefined behaviour in the host's C; and hardened.
	ci/test-asan

test-php-asan: setup ## The PHP host's tests with a PHP that is built with AddressSanitizer too; half an hour.
	ci/test-php-asan

analyze: ## What gcc's analyser and clang-tidy find in the host's C.
	@ci/setup build analysers
	ci/analyze

test-php: ## The PHP host and a smoke set end to end with other versions of PHP; PHP='8.4 8.5' for some. Needs root.
	@ci/setup build packages
	ci/test-php $(PHP)

arm64: ## The programs for 64-bit ARM, their unit tests and a server on an emulated processor. Needs root.
	ci/setup machines
	ci/arm64

test-php-src: setup build ## PHP's own tests, a sample of them served in every mode; PHP_SRC='--all' for each.
	ci/php-src-tests $(PHP_SRC)

loom: ## Model-check the ring's memory orderings.
	RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/loom $(CARGO) test --release -p outboard-ring --lib spsc

miri: ## Run the ring's and the codecs' unit tests under Miri (needs the nightly component).
	ci/miri

coverage: setup ## Which lines the unit tests and the end-to-end tests run, as a table by crate.
	ci/coverage

lighthouse: build ## The dashboard's accessibility, as Lighthouse sees it: at least 95 of 100 (needs npm).
	ci/lighthouse

hostile: ## An app whose host breaks every rule, HOSTILE_SECONDS long (an hour), next to one that is well.
	OUTBOARD_HOSTILE_SECONDS=$(or $(HOSTILE_SECONDS),3600) \
		$(CARGO) test -p outboard-e2e --test hostile -- --nocapture

flooders: setup build ## What a flood from within PHP or from outside costs another app, as a table.
	OUTBOARD_BIN=$(CURDIR)/target/release/outboard OUTBOARD_FLOODERS_STRICT=1 \
		$(CARGO) test -p outboard-e2e --test flooders -- --nocapture --test-threads 1 2>&1 | \
		grep -oE '[^.]*probes.*|thread .*panicked.*|^error.*|^test result.*'

upstreams: setup build ## One of three servers dies and one becomes slow under load, as a table by seconds.
	OUTBOARD_BIN=$(CURDIR)/target/release/outboard OUTBOARD_UPSTREAMS_STRICT=1 \
		$(CARGO) test -p outboard-e2e --test upstreams -- --nocapture a_dead_and_a_slow 2>&1 | \
		grep -oE '\| .*|thread .*panicked.*|^error.*|^test result.*'

certificates: setup build ## 1,000 names from an authority that rejects half of all nonces, with kills, as a table.
	OUTBOARD_BIN=$(CURDIR)/target/release/outboard \
		$(CARGO) test -p outboard-e2e --test acme -- --ignored --nocapture

memory: setup build ## What stalled streams and idle connections take of the gateway's memory, as a table.
	@printf '| what | at the start | held | gone back | after |\n|---|---|---|---|---|\n'
	ulimit -n "$$(ulimit -Hn)"; OUTBOARD_BIN=$(CURDIR)/target/release/outboard \
		$(CARGO) test -p outboard-e2e --test memory -- --ignored --nocapture --test-threads 1 2>&1 | \
		grep -oE '\| .*|thread .*panicked.*|^error.*|^test result.*'

escape-suite: setup build ## What PHP of an app tries on another app, the gateway and the machine: each attempt and its result.
	OUTBOARD_BIN=$(CURDIR)/target/release/outboard \
		$(CARGO) test -p outboard-e2e --test sandbox -- --nocapture --test-threads 1 2>&1 | \
		grep -E '^(denied|SUCCEEDED) |attempts$$|panicked|^error|^test result'

connections: setup build ## How long others wait during thousands of silent, stalled and slow clients.
	ulimit -n "$$(ulimit -Hn)"; OUTBOARD_BIN=$(CURDIR)/target/release/outboard \
		$(CARGO) test -p outboard-e2e --test connections --test proxy_slow -- --ignored \
		--nocapture --test-threads 1

fuzz: ## Fuzz every parser; FUZZ_SECONDS each.
	fuzz/run --seconds $(or $(FUZZ_SECONDS),60)

deny: ## Licences, sources and advisories of all dependencies; advisories need cargo-deny.
	ci/deny

clean: ## Remove what was built.
	$(CARGO) clean
	rm -rf build fuzz/target

# Targets of trees with tests of their own.
include $(wildcard */targets.mk)
