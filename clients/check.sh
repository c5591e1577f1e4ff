#!/usr/bin/env bash
# Checks the client kits: the generated code of each is what the contract gives, its own tests pass, its package can be built; the conformance suite passes
# with this broker and with that of the baseline, kills lose nothing, and the examples work.
#
#   clients/check.sh
#
# Needs what tests/setup.sh installs. The build machine runs this besides the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(tests/target-dir.sh)
# As in tests/run.sh: another profile would compile everything again.
[ "${CI:-}" != true ] || export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=none
# The second of these ends with the present programs.
CARGO_TARGET_DIR=$target tests/build-baseline.sh "$target/baseline"
"${CARGO:-cargo}" build --locked --package hive-broker --package hive-harness --package hive-mcp-bridge --package hivectl --package hive-scripted --bins
export HIVE_TEST_BIN_DIR=$target/debug
clients/build.sh
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
"${CARGO:-cargo}" package --quiet --locked --package hive-client --allow-dirty

echo "== the conformance suite"
tests/conformance/run.sh
tests/conformance/run.sh --kills 20 python typescript go rust
# Kits of today, and a broker of the baseline.
tests/conformance/run.sh --programs "$target/baseline"

echo "== the examples of the kits"
"${CARGO:-cargo}" build --locked --package hive-example-queue
for example in alert chatops queue webhook; do
  HIVE_BIN=$HIVE_TEST_BIN_DIR "examples/$example/test.sh"
done
