#!/usr/bin/env bash
# The script of `make test`: fetches the tools of the tests, lints, tests, and lists skipped tests at the end.
#
# With CI=true or HIVE_TEST_STRICT=1 nothing may be skipped: the script fails before the first test.
# HIVE_TEST_CLAUDE gives tests the path of the real CLI; with HIVE_TEST_STRICT a missing tool is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}

strict=0
if [ "${CI:-}" = true ] || [ "${HIVE_TEST_STRICT:-}" = 1 ]; then
  strict=1
fi
export HIVE_TEST_STRICT=$strict
# Snapshots of a program's output have no backtrace.
unset RUST_BACKTRACE

# Nothing is compiled a second time there, and nothing debugged, so what incremental builds and debuggers need is lost time.
if [ "${CI:-}" = true ]; then
  export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=none CARGO_PROFILE_CAMPAIGN_DEBUG=none
fi

# The tools are fetched while clippy compiles, which needs none of them.
beside=$(mktemp -d)
fetching=
compiling=
end() {
  # Packages that are being installed are installed to their end: half of one would stop all others later.
  [ -z "$fetching" ] || wait "$fetching" || true
  [ -z "$compiling" ] || kill -- "-$compiling" 2>/dev/null || true
  rm -rf "$beside"
}
trap end EXIT
tests/setup.sh >"$beside/skipped" &
fetching=$!
tests/lint.sh rust
wait "$fetching"
fetching=
skipped=$(<"$beside/skipped")
if [ -n "$skipped" ]; then
  printf '%s\n' "$skipped" >&2
  if [ "$strict" = 1 ]; then
    echo "nothing may be skipped here (CI=true or HIVE_TEST_STRICT=1)" >&2
    exit 1
  fi
fi
if claude=$(tests/claude-path.sh); then
  export HIVE_TEST_CLAUDE=$claude
fi
tests/lint.sh others

echo "== tests"
target=$(CARGO=$cargo tests/target-dir.sh)
# The journeys start built programs, so these are built first; the mixtures of versions also need those of the baseline, and the kills
# programs with fail points. The second script ends with the present ones: all are built in the same place.
CARGO="$cargo" CARGO_TARGET_DIR="$target" tests/build-baseline.sh "$target/baseline"
CARGO="$cargo" CARGO_TARGET_DIR="$target" tests/build-faults.sh "$target/faults"
export HIVE_TEST_BIN_DIR=$target/debug HIVE_TEST_FAULTS_DIR=$target/faults HIVE_TEST_BASELINE_DIR=$target/baseline
"$cargo" test --locked --no-run
# Most tests wait, so the rest is compiled beside them, in time that nothing else takes: the scheduling class `idle` keeps it out of the way of
# what they measure.
set -m
(
  if command -v chrt >/dev/null; then
    chrt --idle --pid 0 "$BASHPID"
  fi
  "$cargo" test --locked --quiet --profile campaign --package hive-sim --no-run
  cd tests/interleavings && RUSTC_WORKSPACE_WRAPPER=clippy-driver "$cargo" test --locked --quiet --target-dir "$target" --no-run
) >"$beside/compiled" 2>&1 &
set +m
compiling=$!
"$cargo" test --locked

echo "== simulation, and the instructions of a message"
if ! wait "$compiling"; then
  cat "$beside/compiled" >&2
  exit 1
fi
compiling=
# Separately, because it builds the broker with fail points and planted bugs. In a fast build, because it needs much time.
"$cargo" test --locked --profile campaign --package hive-sim

echo "== interleavings"
(cd tests/interleavings && RUSTC_WORKSPACE_WRAPPER=clippy-driver "$cargo" test --locked --target-dir "$target")

echo "== demo"
HIVE_BIN=$HIVE_TEST_BIN_DIR CLAUDE=$HIVE_TEST_BIN_DIR/scripted-claude examples/duo/demo.sh

echo "== the example of an action"
HIVE_BIN=$HIVE_TEST_BIN_DIR examples/rebuild/test.sh

if [ -n "$skipped" ]; then
  printf '\n%s\n' "$skipped"
  echo "Everything else passed."
else
  echo "Everything passed, nothing was skipped."
fi
