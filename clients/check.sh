#!/usr/bin/env bash
# Checks each kit by itself: the generated code is what the contract gives, its own tests pass, and its package can be built.
#
#   clients/check.sh
#
# Needs what tests/setup.sh installs, and the built programs in HIVE_TEST_BIN_DIR. The conformance suite (tests/conformance/run.sh) compares the kits.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${HIVE_TEST_BIN_DIR:?the directory of the built programs, such as target/debug}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fresh KIT DIRECTORY: fails if the kit generates other files than those in its directory.
fresh() {
  "clients/$1/generate.sh" "$work/$1"
  if ! diff --recursive --brief --exclude=__pycache__ "$work/$1" "clients/$1/$2" >&2; then
    echo "clients/$1/$2 is not what proto/ gives: run make kits, and commit the result" >&2
    exit 1
  fi
}

echo "== the kit in Python"
fresh python src/hive_client/v1
(cd clients/python && PYTHONPATH=src ../../.cache/python/bin/python -m unittest --quiet)
.cache/python/bin/python -m build --quiet --no-isolation --outdir "$work/wheel" clients/python

echo "== the kit in TypeScript"
fresh typescript src/gen
(cd clients/typescript && npm test --silent && npm pack --silent --ignore-scripts --pack-destination "$work" >/dev/null)

echo "== the kit in Go"
mkdir "$work/go"
clients/go/generate.sh "$work/go"
diff --recursive --brief "$work/go/hivev1" clients/go/hivev1 >&2 || { echo "clients/go/hivev1 is not what proto/ gives: run make kits" >&2; exit 1; }
. clients/go.sh
(cd "$GO_KIT" && go vet ./... && go test ./...)

echo "== the kit in Rust"
# Its tests are among those of Cargo, and tests/tests/generated compares its generated code.
"${CARGO:-cargo}" package --quiet --locked --package hive-client --no-verify --allow-dirty
