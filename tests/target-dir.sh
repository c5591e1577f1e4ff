#!/usr/bin/env bash
# Prints the directory in which Cargo builds, which CARGO_TARGET_DIR or a configuration of Cargo can have moved.
set -euo pipefail
cd "$(dirname "$0")/.."
"${CARGO:-cargo}" metadata --locked --offline --no-deps --format-version 1 | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'
