#!/bin/sh
# Builds the programs with their fail points, and the scripted claude, into target/faults or the named directory.
# PROFILE=campaign is for long runs: fast programs with the checks of a debug build. After a build of the dev profile the plain programs
# are built again, so that the programs in target/debug have no fail points.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
target=${CARGO_TARGET_DIR:-target}
to=${1:-$target/faults}
profile=${PROFILE:-dev}
built=$target/$profile
[ "$profile" != dev ] || built=$target/debug

"$cargo" build --locked --quiet --profile "$profile" --package hive-scripted --bins
"$cargo" build --locked --quiet --profile "$profile" --package hive-broker --package hive-harness --package hive-mcp-bridge --bins \
  --features hive-broker/faults,hive-harness/faults,hive-mcp-bridge/faults
mkdir -p "$to"
for program in hived hive hive-mcp scripted-claude; do
  # Copy under another name and rename: a running program cannot be overwritten.
  cp "$built/$program" "$to/.$program"
  mv "$to/.$program" "$to/$program"
done
if [ "$profile" = dev ]; then
  "$cargo" build --locked --quiet --package hive-broker --package hive-harness --package hive-mcp-bridge --package hive-scripted --bins
fi
