#!/usr/bin/env bash
# Records which functions of a program run at a start and at work, and writes functions.ld of its package, the order in which a release
# has them.
#
#   tests/function-order.sh [hived] [hive-mcp]
#
# Needs qemu-user and, for hive-mcp, what the tests with the real claude need. Takes some minutes. See docs/adr/0049-order-of-functions.md.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
target=$(realpath "${CARGO_TARGET_DIR:-target}")
qemu=qemu-$(uname -m)
command -v "$qemu" >/dev/null || {
  echo "$qemu is missing: apt-get install qemu-user" >&2
  exit 1
}
[ $# -gt 0 ] || set -- hived hive-mcp

work=$(mktemp -d)
broker=
end() {
  [ -z "$broker" ] || kill "$broker" 2>/dev/null || true
  rm -rf "$work"
}
trap end EXIT

# starts: two starts of hived, of which the second finds a database, into $work/start.
starts() {
  local start
  for start in first second; do
    echo "recording the $start start" >&2
    "$qemu" -d in_asm,page -D "$work/start/$start.log" "$work/program" --state-dir "$work/state" --runtime-dir "$work/run" 2>"$work/said" &
    broker=$!
    until grep --quiet 'hived is ready' "$work/said"; do
      kill -0 "$broker" || {
        cat "$work/said" >&2
        exit 1
      }
      sleep 0.1
    done
    # The tasks of the background have their first looks within this time.
    sleep 10
    kill "$broker"
    wait "$broker"
    broker=
  done
}

# benches WORKLOAD...: one short round, into $work/busy.
benches() {
  echo "recording the work of the benches" >&2
  HIVE_TEST_BIN_DIR="$work/bin" HIVE_TEST_CLAUDE="${HIVE_TEST_CLAUDE:-$(tests/claude-path.sh)}" HIVE_BENCH_RIVALS=unary,streamed \
    HIVE_BENCH_ROUNDS=1 HIVE_BENCH_SPAN_MS=1500 HIVE_BENCH_AGENTS=50 HIVE_BENCH_MESSAGES=10000 \
    "$cargo" bench --locked --quiet --package hive-tests --bench main -- "$@" >"$work/report"
}

echo "building" >&2
"$cargo" build --locked --quiet --release --package hive-broker --package hive-harness --package hive-mcp-bridge --package hivectl \
  --package hive-scripted --package hive-tests --bins

# record PROGRAM PROFILE [--add]
record() {
  local program=$1 profile=$2 package crate other
  shift 2
  case $program in
  hived) package=broker crate=hive-broker ;;
  hive-mcp) package=mcp-bridge crate=hive-mcp-bridge ;;
  *)
    echo "there is no order for $program; there are hived and hive-mcp" >&2
    exit 2
    ;;
  esac
  rm -rf "${work:?}"/{start,busy,bin}
  mkdir "$work/start" "$work/busy" "$work/bin"
  echo "building $program, profile $profile" >&2
  "$cargo" rustc --locked --quiet --profile "$profile" --package "$crate" --bin "$program" -- -C link-arg="-Wl,-Map=$work/map"
  cp "$target/$profile/$program" "$work/program"
  for other in hived hive hive-mcp hivectl scripted-claude bench-reference env-mcp; do
    [ ! -e "$target/release/$other" ] || ln -s "$target/release/$other" "$work/bin/"
  done
  rm "$work/bin/$program"
  cat >"$work/bin/$program" <<END
#!/bin/sh
exec "$qemu" -d in_asm,page -D "$work/busy/\$\$.log" "$work/program" "\$@"
END
  chmod +x "$work/bin/$program"

  if [ "$program" = hived ]; then
    starts
    benches w1 w2 w3 w4 w5
  else
    benches w6
    # It starts and works in each turn, so all of it counts as a start.
    rmdir "$work/start"
    cp -r "$work/busy" "$work/start"
  fi
  "$target/release/function-order" --map "$work/map" --start "$work/start" --work "$work/busy" --into "$package/functions.ld" "$@"
}

# What is measured, and what is shipped: they inline differently, so each has functions that the other has not.
for program in "$@"; do
  record "$program" release
  record "$program" dist --add
done
