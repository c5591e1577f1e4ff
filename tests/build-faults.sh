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

# The same packages each time, as `make build` has them: with others, libraries would be compiled again, because packages that are built
# together decide together on the features of a library.
programs="--package hive-broker --package hive-harness --package hive-mcp-bridge --package hivectl --package hive-scripted --bins"
# shellcheck disable=SC2086 # Several words.
"$cargo" build --locked --quiet --profile "$profile" $programs --features hive-broker/faults,hive-harness/faults,hive-mcp-bridge/faults
mkdir -p "$to"
for program in hived hive hive-mcp scripted-claude; do
  # Copy under another name and rename: a running program cannot be overwritten.
  cp "$built/$program" "$to/.$program"
  mv "$to/.$program" "$to/$program"
done
if [ "$profile" = dev ]; then
  # shellcheck disable=SC2086
  "$cargo" build --locked --quiet $programs
fi
