#!/usr/bin/env bash
# Checks a commit of the host's flake out and switches to it. Can be run twice; if the switch fails, the checkout is as before.
#
#   HIVE_REBUILD_FLAKE=DIR  the checkout of the flake (default: /etc/nixos)
set -euo pipefail
commit=${1:-}
flake=${HIVE_REBUILD_FLAKE:-/etc/nixos}

fail() {
  echo "$1" >&2
  exit 1
}

# The unit can be started by hand, too.
[[ $commit =~ ^[0-9a-f]{40}$ ]] || fail "usage: rebuild.sh COMMIT, all 40 digits of it"
# No hook of the checkout runs as root.
git=(git -c core.hooksPath=/dev/null -C "$flake")
# A rebuild that lost its caller may still be under way.
exec 9<"$flake"
flock 9
# They would be built, too, and are in no preview.
[ -z "$("${git[@]}" status --porcelain)" ] || fail "$flake has changes that are in no commit; commit or remove them"
"${git[@]}" cat-file -e "$commit^{commit}" || fail "$flake has no commit $commit; fetch it there first"
before=$("${git[@]}" rev-parse HEAD)
"${git[@]}" checkout --quiet --detach "$commit"
# The descriptor of the lock is closed for what the switch starts and leaves behind.
if ! nixos-rebuild switch --flake "$flake" 9<&-; then
  # The next preview compares with HEAD, which is what runs.
  "${git[@]}" checkout --quiet --detach "$before"
  fail "the switch to $commit failed; $flake is at $before again"
fi
echo "this host runs $commit"
