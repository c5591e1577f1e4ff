#!/usr/bin/env bash
# Makes archives of static programs that packaging/dist.sh has built: one with all that an installation needs, and one with the symbols.
#
#   packaging/archive.sh target/shipped-TARGET TARGET DIRECTORY
#
# The first has packaging/install.sh, which installs what was unpacked. The same files make the same archives: SOURCE_DATE_EPOCH is the time of all
# files in them, that of the last commit, if it is not set.
set -euo pipefail
cd "$(dirname "$0")/.."
from=${1:?the directory of the programs, such as target/shipped-x86_64-unknown-linux-musl}
triple=${2:?what they were built for, such as x86_64-unknown-linux-musl}
to=${3:?the directory of the archives}
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || date +%s)}"

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
name=hive-$version-${triple/-unknown-/-}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

mkdir -p "$to" "$tree/$name/bin" "$tree/$name/docs" "$tree/$name-debug"
for program in hived hive hive-mcp hivectl; do
  install --mode=755 "$from/$program" "$tree/$name/bin"
  install --mode=644 "$from/$program.debug" "$tree/$name-debug"
done
cp -R docs/man "$tree/$name/docs"
mkdir "$tree/$name/packaging"
cp -R packaging/install.sh packaging/hive.toml packaging/systemd packaging/polkit packaging/dbus packaging/prometheus packaging/grafana "$tree/$name/packaging"
cp README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$tree/$name"

for archive in "$name" "$name-debug"; do
  tar --directory="$tree" --create --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX "$archive" | gzip --no-name >"$to/$archive.tar.gz"
done
