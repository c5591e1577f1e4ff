#!/usr/bin/env bash
# Builds the shipped files of the named packages: target/shipped/PROGRAM without symbols, and PROGRAM.debug with its symbols and lines.
# Fails if hived is too large, or if hived does not resolve its own backtrace with the file beside it.
#
#   tests/dist.sh --package hive-broker ...
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
target=${CARGO_TARGET_DIR:-target}
hived_bytes_max=12000000

# What `--version` prints. Without git, as in an archive of the sources, the caller knows it.
if [ -z "${HIVE_COMMIT:-}" ] && [ -e .git ] && command -v git >/dev/null; then
  HIVE_COMMIT="$(git describe --always --dirty --abbrev=12 --exclude='*') $(git show --no-patch --format=%cs)"
fi
export HIVE_COMMIT

# One package at a time: together, each program would have the features that any of them needs.
while [ $# -gt 0 ]; do
  "$cargo" build --locked --profile dist "$1" "$2" --bins
  shift 2
done

to=$target/shipped
rm -rf "$to"
mkdir -p "$to"
for program in hived hive hive-mcp hivectl; do
  objcopy --only-keep-debug --compress-debug-sections=zlib "$target/dist/$program" "$to/$program.debug"
  # Debuggers, and the program itself, find the file by this link.
  objcopy --strip-all --add-gnu-debuglink="$to/$program.debug" "$target/dist/$program" "$to/$program"
done

# No thread can have such a stack, so hived panics when it starts its first one.
trace=$(RUST_BACKTRACE=1 RUST_MIN_STACK=$((1 << 46)) "$to/hived" --config /dev/null 2>&1 || true)
if ! grep -q 'broker/src/main.rs:[0-9]' <<<"$trace"; then
  printf 'hived.debug does not resolve a backtrace of hived:\n%s\n' "$trace" >&2
  exit 1
fi

(cd "$to" && stat --printf '%s\t%n\n' -- *)
hived_bytes=$(stat --printf %s "$to/hived")
if [ "$hived_bytes" -gt "$hived_bytes_max" ]; then
  echo "hived has $hived_bytes bytes, more than $hived_bytes_max" >&2
  exit 1
fi
