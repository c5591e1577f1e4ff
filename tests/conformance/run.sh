#!/usr/bin/env bash
# Builds the drivers of all kits, and runs the conformance suite.
#
#   tests/conformance/run.sh [ARGUMENT ...]    as of the program `conformance`; --help lists them
#
# Needs what tests/setup.sh installs. HIVE_TEST_BIN_DIR has the built programs; without it they are built.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo=${CARGO:-cargo}

target=$(CARGO=$cargo tests/target-dir.sh)
if [ -z "${HIVE_TEST_BIN_DIR:-}" ]; then
  "$cargo" build --locked --package hive-broker --package hivectl --bins
  export HIVE_TEST_BIN_DIR=$target/debug
fi
"$cargo" build --locked --package hive-conformance --package hive-conformance-driver --bins
clients/build.sh
exec "$target/debug/conformance" "$@"
