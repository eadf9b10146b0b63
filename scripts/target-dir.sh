#!/usr/bin/env bash
# Prints cargo's target directory, which CARGO_TARGET_DIR or a config file may have moved.
cargo metadata --no-deps --format-version 1 |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])'
