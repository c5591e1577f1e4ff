#!/usr/bin/env bash
# Makes a Debian package of what `make dist` has built. Needs cargo-deb and dpkg-dev.
#
#   packaging/deb.sh target/shipped DIRECTORY [OPTION OF cargo-deb ...]
#
# The package has the files that packaging/install.sh installs. It is written to DIRECTORY, and its path is printed.
# DEBFULLNAME and DEBEMAIL are the maintainer's name and address.
# SOURCE_DATE_EPOCH is the time of the files in it: that of the last commit, if it is not set.
set -euo pipefail
cd "$(dirname "$0")/.."
from=${1:?the directory of the programs, such as target/shipped}
to=${2:?the directory of the package}
shift 2
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || date +%s)}"
export SOURCE_DATE_EPOCH
# Where tests/setup.sh has put cargo-deb.
PATH=$PATH:$PWD/.cache/cargo/bin
maintainer="${DEBFULLNAME:-Hive} <${DEBEMAIL:-hive@localhost}>"

# broker/Cargo.toml has this name.
tree=target/debian/tree
rm -rf "$tree"
PREFIX=/usr DESTDIR="$tree" packaging/install.sh "$from"
doc=$tree/usr/share/doc/hive
# Debian has one file for licences, and compresses manuals and changes.
rm "$doc"/LICENSE-*
mv "$doc/CHANGELOG.md" "$doc/changelog"
# A configuration file that every administrator edits is not one of dpkg's: it would ask at each upgrade that has another, and without a
# terminal it would stop there. postinst puts the first one in its place.
mv "$tree/etc/hive/hive.toml" "$tree/usr/share/hive/hive.toml"
rmdir --parents "$tree/etc/hive" 2>/dev/null || true
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
cat >"$doc/changelog.Debian" <<END
hive ($version-1) unstable; urgency=medium

  * See /usr/share/doc/hive/changelog.gz.

 -- $maintainer  $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
END
gzip --no-name --best "$doc/changelog" "$doc/changelog.Debian" "$tree"/usr/share/man/man1/*
install -D --mode=644 packaging/debian/lintian-overrides "$tree/usr/share/lintian/overrides/hive"

"${CARGO:-cargo}" deb --quiet --no-build --package hive-broker --maintainer "$maintainer" --output "$to" "$@"
rm -rf target/debian
