#!/usr/bin/env bash
# Runs rebuild.sh and the preview in a flake of their own, with a stand-in for nixos-rebuild. Exits 0 if each step did what the README says.
#
#   HIVE_BIN=DIR  directory of the programs (default: target/debug)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
bin=$(cd "${HIVE_BIN:-$root/target/debug}" && pwd)

home=$(mktemp -d "${TMPDIR:-/tmp}/hive-rebuild.XXXXXX")
trap 'rm -rf "$home"' EXIT
trap 'exit 130' INT TERM
flake=$home/flake
export HIVE_REBUILD_FLAKE=$flake HOME=$home GIT_CONFIG_NOSYSTEM=1 PATH="$home/bin:$PATH"

fail() {
  echo "FAILED: $1" >&2
  exit 1
}

expect() {
  case $2 in
    *"$1"*) ;;
    *) fail "'$1' is not in: $2" ;;
  esac
}

in_flake() { git -C "$flake" -c user.name=test -c user.email=test@example.org "$@"; }
head_is() { [ "$(in_flake rev-parse HEAD)" = "$1" ] || fail "the checkout is not at $1"; }

# commit TEXT: makes a commit; prints it.
commit() {
  echo "$1" >"$flake/flake.nix"
  in_flake add flake.nix
  in_flake commit --quiet --message "$1"
  in_flake rev-parse HEAD
}

# Notes what it is called with and what it would build; fails if the flake says so.
mkdir "$home/bin"
cat >"$home/bin/nixos-rebuild" <<STAND_IN
#!/bin/sh
echo "\$* \$(cat "$flake/flake.nix")" >>"$home/built"
! grep -q broken "$flake/flake.nix"
STAND_IN
chmod +x "$home/bin/nixos-rebuild"

git init --quiet "$flake"
first=$(commit first)
second=$(commit second)
broken=$(commit broken)
in_flake checkout --quiet --detach "$first"

"$bin/hivectl" config check "$here/hive.toml" || fail "the configuration has mistakes"

# The words of the file, as the broker fills them.
preview() {
  words=$(sed -n 's/^preview = \[\(.*\)\]$/\1/p' "$here/hive.toml")
  eval "set -- $(echo "$words" | tr -d ',' | sed "s|/etc/nixos|$flake|g; s|{commit}|$1|")"
  "$@"
}
expect "flake.nix | 2 +-" "$(preview "$second")"
[ -z "$(preview "$first")" ] || fail "there is no difference to what runs"
if preview 0123456789012345678901234567890123456789 2>/dev/null; then fail "there is no such commit"; fi

expect "this host runs $second" "$("$here/rebuild.sh" "$second")"
head_is "$second"
# The broker may have ended in between, and has it run again.
"$here/rebuild.sh" "$second" >/dev/null
[ "$(cat "$home/built")" = "switch --flake $flake second
switch --flake $flake second" ] || fail "it was built as: $(cat "$home/built")"

if said=$("$here/rebuild.sh" "$broken" 2>&1); then fail "a switch that fails is a failure"; fi
expect "the switch to $broken failed" "$said"
head_is "$second"

rm "$home/built"
for wrong in "" HEAD "$second;" --help 0123456789012345678901234567890123456789; do
  if "$here/rebuild.sh" "$wrong" 2>/dev/null; then fail "'$wrong' is no commit of the flake"; fi
done
touch "$flake/unseen.nix"
if said=$("$here/rebuild.sh" "$first" 2>&1); then fail "what is in no commit was built"; fi
expect "changes that are in no commit" "$said"
head_is "$second"
[ ! -e "$home/built" ] || fail "nixos-rebuild ran: $(cat "$home/built")"

# A hook runs nothing.
rm "$flake/unseen.nix"
printf '#!/bin/sh\ntouch %s/hooked\n' "$home" >"$flake/.git/hooks/post-checkout"
chmod +x "$flake/.git/hooks/post-checkout"
"$here/rebuild.sh" "$first" >/dev/null
head_is "$first"
[ ! -e "$home/hooked" ] || fail "a hook of the checkout ran"
echo "rebuild: passed"
