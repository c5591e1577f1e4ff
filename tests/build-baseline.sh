#!/bin/sh
# Builds the programs of the baseline into target/baseline or the named directory, for the tests of neighbouring versions.
#
# The baseline is the commit that last replaced proto/baseline.binpb: the one that froze the contract, and later each release. Its sources come
# from the history. A shallow clone has none: then nothing is built, and the directory is not made.
#
# The objects of the dependencies are shared with the present build. The programs in target/debug are those of the baseline afterwards, so
# build the present ones after this.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
target=${CARGO_TARGET_DIR:-target}
to=${1:-$target/baseline}

if [ ! -e .git ] || [ "$(git rev-parse --is-shallow-repository)" = true ]; then
  echo "NOT TESTED: neighbouring versions, because the history of this clone does not reach the baseline (git fetch --unshallow)" >&2
  rm -rf "$to"
  exit 0
fi
commit=$(git log -1 --format=%H -- proto/baseline.binpb)
if [ "$(cat "$to/commit" 2>/dev/null)" = "$commit" ]; then
  exit 0
fi

rm -rf "$to"
mkdir -p "$to/source"
git archive "$commit" | tar -x -C "$to/source"
# Here and not in the sources, so that the settings in .cargo of the present build hold: with others SQLite would be compiled twice.
CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=none "$cargo" build --locked --quiet --manifest-path "$to/source/Cargo.toml" --target-dir "$target" \
  --package hive-broker --package hive-harness --package hive-mcp-bridge --package hivectl --bins
for program in hived hive hive-mcp hivectl; do
  cp "$target/debug/$program" "$to/$program"
done
rm -rf "$to/source"
echo "$commit" >"$to/commit"
