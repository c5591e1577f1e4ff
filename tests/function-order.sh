#!/usr/bin/env bash
# Records which functions of hived run at a start and at work, and writes broker/functions.ld, the order in which a release has them.
# Needs qemu-user and a few minutes; redis-server is not needed. See docs/adr/0049-order-of-functions.md.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
target=$(realpath "${CARGO_TARGET_DIR:-target}")
qemu=qemu-$(uname -m)
command -v "$qemu" >/dev/null || {
  echo "$qemu is missing: apt-get install qemu-user" >&2
  exit 1
}

work=$(mktemp -d)
broker=
end() {
  [ -z "$broker" ] || kill "$broker" 2>/dev/null || true
  rm -rf "$work"
}
trap end EXIT
mkdir "$work/start" "$work/work" "$work/bin"

echo "building" >&2
"$cargo" rustc --locked --quiet --release --package hive-broker --bin hived -- -C link-arg="-Wl,-Map=$work/map"
"$cargo" build --locked --quiet --release --package hive-tests --bin bench-reference --bin function-order
cp "$target/release/hived" "$work/hived"
ln -s "$target/release/bench-reference" "$work/bin/"

# Twice: the second start finds a database.
for start in first second; do
  echo "recording the $start start" >&2
  "$qemu" -d in_asm,page -D "$work/start/$start.log" "$work/hived" --state-dir "$work/state" --runtime-dir "$work/run" 2>"$work/said" &
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

cat >"$work/bin/hived" <<END
#!/bin/sh
exec "$qemu" -d in_asm,page -D "$work/work/\$\$.log" "$work/hived" "\$@"
END
chmod +x "$work/bin/hived"
echo "recording the work of the benches" >&2
HIVE_TEST_BIN_DIR="$work/bin" HIVE_BENCH_RIVALS=unary,streamed HIVE_BENCH_ROUNDS=1 HIVE_BENCH_SPAN_MS=1500 HIVE_BENCH_AGENTS=50 \
  HIVE_BENCH_MESSAGES=10000 "$cargo" bench --locked --quiet --package hive-tests --bench main -- w1 w2 w3 w4 w5 >"$work/report"

"$target/release/function-order" --map "$work/map" --start "$work/start" --work "$work/work" --into broker/functions.ld
