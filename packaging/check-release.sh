#!/usr/bin/env bash
# Tries packaging/release.sh: makes all files of a release twice, not optimized, and lets a hive of the programs of each archive carry a message.
#
#   packaging/check-release.sh
#
# Those of aarch64 run under qemu. The build machine runs this besides the tests; it builds each program six times.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}

missing=$(tests/setup.sh release)
if [ -n "$missing" ]; then
  printf '%s\n' "$missing" >&2
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Symbols and lines are needed: dist.sh resolves a backtrace.
PROFILE=dev packaging/release.sh "$work/release"

"$cargo" build --locked --package hive-scripted --bins
scripted=$("$cargo" metadata --locked --offline --no-deps --format-version 1 | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')/debug/scripted-claude
cd "$work/release"
sha256sum --quiet --check SHA256SUMS
for archive in *-musl.tar.gz; do
  tar -x -z -f "$archive" -C "$work"
  name=${archive%.tar.gz}
  bin=$work/$name/bin
  machine=${name#hive-*-}
  machine=${machine%%-*}
  if [ "$machine" != "$(uname -m)" ]; then
    # The programs start each other by their names, and the kernel runs no programs of another machine.
    for program in "$bin"/*; do
      mv "$program" "$program.$machine"
      printf '#!/bin/sh\nexec qemu-%s "%s" "$@"\n' "$machine" "$program.$machine" >"$program"
      chmod 755 "$program"
    done
  fi
  echo "== a hive of $machine"
  HIVE_BIN=$bin CLAUDE=$scripted "$OLDPWD/examples/duo/demo.sh"
done
