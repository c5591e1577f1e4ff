#!/usr/bin/env bash
# Makes the files of a release: a Debian package, archives of static programs for x86-64 and aarch64, a list of what is in them (SBOM), and
# the checksums of all. Everything is built twice, from the last commit, in two directories: only equal files are a release.
#
#   packaging/release.sh DIRECTORY
#
# Needs what `tests/setup.sh release` installs (docs/packaging.md). It builds each program six times, and needs room for that below TMPDIR.
# TARGETS are other targets of static programs, and PROFILE is another profile than dist, to try the script.
set -euo pipefail
cd "$(dirname "$0")/.."
to=$(realpath --canonicalize-missing "${1:?the directory of the release}")
targets=${TARGETS-x86_64-unknown-linux-musl aarch64-unknown-linux-musl}
packages=(--package hive-broker --package hive-harness --package hive-mcp-bridge --package hivectl)

if [ -n "$(git status --porcelain --untracked-files=no)" ]; then
  echo "packaging/release.sh: there are changes that are not committed, and a release is built from a commit; commit them, or git stash" >&2
  exit 1
fi
if [ -n "$(ls -A "$to" 2>/dev/null)" ]; then
  echo "packaging/release.sh: $to is not empty; name another directory" >&2
  exit 1
fi
# One commit, even if there are others before this ends.
commit=$(git rev-parse HEAD)
HIVE_COMMIT="$(git describe --always --abbrev=12 --exclude='*' "$commit") $(git show --no-patch --format=%cs "$commit")"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
export HIVE_COMMIT SOURCE_DATE_EPOCH
# Where `tests/setup.sh release` puts what this needs.
# cargo-zigbuild asks the first python3 for its compiler.
PATH=$PWD/.cache/zig/bin:$PATH:$PWD/.cache/cargo/bin

# A package of programs that are not optimized is large, and is not kept.
deb=()
[ "${PROFILE:-dist}" = dist ] || deb=(--fast)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# sbom DIRECTORY: what each program contains, with versions, licences and checksums, as CycloneDX 1.5.
sbom() {
  local crate program
  # It writes each list beside the manifest of the package.
  cargo cyclonedx -qq --format json --spec-version 1.5 --describe binaries --no-build-deps
  for program in broker/hived harness/hive mcp-bridge/hive-mcp hivectl/hivectl; do
    crate=${program%/*}
    sed "s#path+file://$PWD/#path+file:///hive/#g" "$crate/${program#*/}_bin.cdx.json" >"$1/${program#*/}.cdx.json"
  done
}

# build SOURCE FILES: all files of the release from these sources.
build() {
  local triple
  (
    cd "$1"
    unset CARGO_TARGET_DIR
    packaging/dist.sh "${packages[@]}"
    packaging/deb.sh target/shipped "$2" "${deb[@]}"
    for triple in $targets; do
      TARGET=$triple packaging/dist.sh "${packages[@]}"
      packaging/archive.sh "target/shipped-$triple" "$triple" "$2"
    done
    sbom "$2"
    cd "$2"
    sha256sum -- * >SHA256SUMS
  )
}

# Paths of different lengths, so that a path in a file makes a difference.
for source in "$work/one" "$work/another-directory"; do
  mkdir -p "$source/tree" "$source/files"
  git archive "$commit" | tar -x -C "$source/tree"
  echo "packaging/release.sh: building in $source" >&2
  build "$source/tree" "$source/files"
  rm -rf "$source/tree"
done

if ! diff "$work/one/files/SHA256SUMS" "$work/another-directory/files/SHA256SUMS" >&2; then
  echo "packaging/release.sh: these files differ between the two builds, so a builder cannot check them; this is a fault of the build" >&2
  exit 1
fi
mkdir -p "$to"
cp "$work/one/files"/* "$to"
cat "$to/SHA256SUMS"
