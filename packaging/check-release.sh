#!/usr/bin/env bash
# Tries packaging/release.sh: makes all files of a release twice, not optimized. A hive of the programs of this machine carries a message from the
# operator to an agent and back, and the broker of another machine takes one under qemu.
#
#   packaging/check-release.sh
#
# The build machine runs this besides the tests; it builds each program six times.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}

missing=$(tests/setup.sh release)
if [ -n "$missing" ]; then
  printf '%s\n' "$missing" >&2
  exit 1
fi

work=$(mktemp -d)
hived=
end() {
  [ -z "$hived" ] || kill "$hived" 2>/dev/null || true
  rm -rf "$work"
}
trap end EXIT
# Symbols and lines are needed: dist.sh resolves a backtrace.
PROFILE=dev packaging/release.sh "$work/release"

"$cargo" build --locked --package hive-scripted --bins
scripted=$(CARGO=$cargo tests/target-dir.sh)/debug/scripted-claude

# emulated MACHINE BIN: a broker of another machine takes a message and lists it. Only the broker and hivectl: qemu knows too few signals for
# `hivectl up`, and the kernel starts no program of another machine.
emulated() {
  local qemu=qemu-$1 bin=$2 hive=$work/hive
  mkdir "$hive"
  printf '[agents.ada]\n' >"$hive/hive.toml"
  : >"$hive/log"
  "$qemu" "$bin/hived" --config "$hive/hive.toml" --state-dir "$hive/state" --runtime-dir "$hive/run" >"$hive/log" 2>&1 &
  hived=$!
  if ! grep --quiet --max-count=1 'hived is ready' < <(exec tail --pid="$hived" --lines=+1 --follow "$hive/log"); then
    cat "$hive/log" >&2
    exit 1
  fi
  export HIVE_SOCKET=$hive/run/hived.sock
  "$qemu" "$bin/hivectl" send ada "over there"
  "$qemu" "$bin/hivectl" inbox ada | grep 'over there'
  unset HIVE_SOCKET
  kill "$hived"
  wait "$hived"
  hived=
}

root=$PWD
cd "$work/release"
sha256sum --quiet --check SHA256SUMS
for archive in *-musl.tar.gz; do
  tar -x -z -f "$archive" -C "$work"
  name=${archive%.tar.gz}
  bin=$work/$name/bin
  machine=${name#hive-*-}
  machine=${machine%%-*}
  echo "== a hive of $machine"
  if [ "$machine" = "$(uname -m)" ]; then
    HIVE_BIN=$bin CLAUDE=$scripted "$root/examples/duo/demo.sh"
  else
    emulated "$machine" "$bin"
  fi
done
