#!/bin/sh
# Builds the programs with their fail points into target/faults, or the directory that is named, with the scripted claude beside them.
# PROFILE=campaign builds what long runs want: quick programs with the checks of a debug build. A build of the dev profile is followed by
# one of the plain programs, so that what lies in target/debug has no fail points.
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
  # Beside it first: a program that runs cannot be written over.
  cp "$built/$program" "$to/.$program"
  mv "$to/.$program" "$to/$program"
done
if [ "$profile" = dev ]; then
  "$cargo" build --locked --quiet --package hive-broker --package hive-harness --package hive-mcp-bridge --package hive-scripted --bins
fi
