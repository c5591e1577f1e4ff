#!/usr/bin/env bash
# Builds the shipped files of the named packages: target/shipped/PROGRAM without symbols, and PROGRAM.debug with its symbols and lines.
# Fails if hived is too large, or if hived does not resolve its own backtrace with the file beside it.
#
#   packaging/dist.sh --package hive-broker ...
#
# With TARGET=x86_64-unknown-linux-musl or aarch64-unknown-linux-musl the programs are static, and the files are in target/shipped-TARGET.
# That needs cargo-zigbuild, and for another architecture its binutils and qemu-user. PROFILE is another profile than dist, to try the script.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
target=${CARGO_TARGET_DIR:-target}
triple=${TARGET:-}
profile=${PROFILE:-dist}
hived_bytes_max=12000000

# What `--version` prints. Without git, as in an archive of the sources, the caller knows it.
if [ -z "${HIVE_COMMIT:-}" ] && [ -e .git ] && command -v git >/dev/null; then
  HIVE_COMMIT="$(git describe --always --dirty --abbrev=12 --exclude='*') $(git show --no-patch --format=%cs)"
fi
export HIVE_COMMIT=${HIVE_COMMIT:-}

# Names of directories would make the files of two builders differ.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
# Cargo uses the flags of the sources only if there are none.
export RUSTFLAGS="${RUSTFLAGS:-} -C symbol-mangling-version=v0 --remap-path-prefix=$PWD=/hive --remap-path-prefix=$cargo_home=/cargo"
# The same is true of the CFLAGS.
cflags=$(sed -n 's/^CFLAGS = "\(.*\)"$/\1/p' .cargo/config.toml)
export CFLAGS="${CFLAGS:-$cflags} -ffile-prefix-map=$PWD=/hive -ffile-prefix-map=$cargo_home=/cargo"

build=("$cargo" build)
built=$target/$profile
[ "$profile" != dev ] || built=$target/debug
to=$target/shipped
objcopy=objcopy
run=()
if [ -n "$triple" ]; then
  build=(cargo-zigbuild zigbuild --target "$triple")
  built=$target/$triple/${built#"$target/"}
  to=$target/shipped-$triple
  if [ "${triple%%-*}" != "$(uname -m)" ]; then
    objcopy=${triple%%-*}-linux-gnu-objcopy
    run=("qemu-${triple%%-*}")
  fi
fi

# One package at a time: together, each program would have the features that any of them needs. To try the script that is right, and faster.
if [ "$profile" != dist ]; then
  "${build[@]}" --locked --profile "$profile" "$@" --bins
  set --
fi
while [ $# -gt 0 ]; do
  "${build[@]}" --locked --profile "$profile" "$1" "$2" --bins
  shift 2
done

rm -rf "$to"
mkdir -p "$to"
for program in hived hive hive-mcp hivectl; do
  "$objcopy" --only-keep-debug --compress-debug-sections=zlib "$built/$program" "$to/$program.debug"
  # Debuggers, and the program itself, find the file by this link.
  "$objcopy" --strip-all --add-gnu-debuglink="$to/$program.debug" "$built/$program" "$to/$program"
done

if [ -n "$triple" ] && readelf --wide --program-headers "$to"/hive* 2>/dev/null | grep -q INTERP; then
  echo "a program for $triple needs a dynamic loader" >&2
  exit 1
fi

for program in hived hive hive-mcp hivectl; do
  version=$("${run[@]}" "$to/$program" --version)
  if [[ "$version" != *"$HIVE_COMMIT"* ]]; then
    echo "$program does not name its commit ($HIVE_COMMIT): $version" >&2
    exit 1
  fi
done

# No thread can have such a stack, so hived panics when it starts its first one. An emulator would try to allocate it.
if [ "${#run[@]}" = 0 ]; then
  trace=$(RUST_BACKTRACE=1 RUST_MIN_STACK=$((1 << 46)) "$to/hived" --config /dev/null 2>&1 || true)
  if ! grep -q 'broker/src/main.rs:[0-9]' <<<"$trace"; then
    printf 'hived.debug does not resolve a backtrace of hived:\n%s\n' "$trace" >&2
    exit 1
  fi
fi

(cd "$to" && stat --printf '%s\t%n\n' -- *)
hived_bytes=$(stat --printf %s "$to/hived")
if [ "$profile" = dist ] && [ "$hived_bytes" -gt "$hived_bytes_max" ]; then
  echo "hived has $hived_bytes bytes, more than $hived_bytes_max" >&2
  exit 1
fi
