#!/usr/bin/env bash
# Installs what `make dist` has built: programs, manuals, completions, licences, and the files of systemd, polkit and D-Bus.
#
#   PREFIX=/usr DESTDIR=/tmp/tree packaging/install.sh target/shipped
#
# PREFIX is where the files will be (/usr/local), and DESTDIR what is put before it, to make a package. A hive.toml that is
# there stays. Systems with other places for them set SYSCONFDIR (/etc), POLKIT_RULES_DIR and DBUS_POLICY_DIR, and if the
# programs do not run here, HIVECTL is a command that prints the completions.
set -euo pipefail
cd "$(dirname "$0")/.."
from=${1:?the directory of the programs, such as target/shipped}
prefix=${PREFIX:-/usr/local}
root=${DESTDIR:-}
etc=${SYSCONFDIR:-/etc}
read -ra hivectl <<<"${HIVECTL:-$from/hivectl}"
hivectl[-1]=$(realpath --no-symlinks "${hivectl[-1]}")
to=$root$prefix

for program in hived hive hive-mcp hivectl; do
  install -D --mode=755 "$from/$program" "$to/bin/$program"
done
install -D --mode=644 --target-directory="$to/share/man/man1" docs/man/*.1
install -D --mode=644 --target-directory="$to/share/doc/hive" LICENSE-APACHE LICENSE-MIT CHANGELOG.md

# completion SHELL FILE. The script calls the program by its path here, and the installed one is on PATH.
completion() {
  "${hivectl[@]}" completions "$1" | sed "s#${hivectl[-1]}#hivectl#g" | install -D --mode=644 /dev/stdin "$to/share/$2"
}
completion bash bash-completion/completions/hivectl
completion zsh zsh/site-functions/_hivectl
completion fish fish/vendor_completions.d/hivectl.fish

install -D --mode=644 --target-directory="$to/share/hive/prometheus" packaging/prometheus/hive.rules.yml
install -D --mode=644 --target-directory="$to/share/hive/grafana" packaging/grafana/hive.json

# The units name their programs by path.
for unit in packaging/systemd/*.service packaging/systemd/*.socket; do
  sed "s#/usr/bin/#$prefix/bin/#g" "$unit" | install -D --mode=644 /dev/stdin "$to/lib/systemd/system/$(basename "$unit")"
done
install -D --mode=644 packaging/systemd/hive.sysusers "$to/lib/sysusers.d/hive.conf"
install -D --mode=644 packaging/systemd/hive.tmpfiles "$to/lib/tmpfiles.d/hive.conf"

# polkit and D-Bus read files below /usr/share and /etc only.
rules=$etc/polkit-1/rules.d
policies=$etc/dbus-1/system.d
if [ "$prefix" = /usr ]; then
  rules=/usr/share/polkit-1/rules.d
  policies=/usr/share/dbus-1/system.d
fi
rules=${POLKIT_RULES_DIR:-$rules}
policies=${DBUS_POLICY_DIR:-$policies}
install -D --mode=644 packaging/polkit/50-hive.rules "$root$rules/50-hive.rules"
install -D --mode=644 packaging/dbus/hive-launcher.conf "$root$policies/hive-launcher.conf"

if [ ! -e "$root$etc/hive/hive.toml" ]; then
  install -D --mode=644 packaging/hive.toml "$root$etc/hive/hive.toml"
fi
