#!/usr/bin/env bash
# Checks the sources without running them.
#
#   tests/lint.sh [rust|others]   the Rust sources; or the others, where missing tools are skipped: tests/setup.sh lists them. Or both.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
part=${1:-both}

if [ "$part" != others ]; then
  echo "== rustfmt"
  "$cargo" fmt --all --check

  echo "== clippy"
  "$cargo" clippy --locked --workspace --all-targets -- -D warnings
  # The interleavings have all libraries in a form of their own, so they are linted where they are compiled, in tests/run.sh.
fi
if [ "$part" = rust ]; then
  exit 0
fi

buf=.cache/buf/node_modules/.bin/buf
if "$buf" --version >/dev/null 2>&1; then
  echo "== buf lint"
  "$buf" lint proto
  echo "== buf breaking"
  "$buf" breaking proto --against proto/baseline.binpb
fi

if command -v nix-instantiate >/dev/null; then
  echo "== nix-instantiate --parse"
  for file in flake.nix nix/*.nix tests/tests/nix/*.nix; do
    # A store without files: this creates none in /nix.
    nix-instantiate --store dummy:// --parse "$file" >/dev/null
  done
fi

deadnix=.cache/cargo/bin/deadnix
if [ -x "$deadnix" ]; then
  echo "== deadnix"
  # It parses with rnix, and reports what that cannot parse without a status of its own.
  if ! found=$("$deadnix" --fail flake.nix nix tests/tests/nix 2>&1) || [ -n "$found" ]; then
    printf '%s\n' "$found" >&2
    exit 1
  fi
fi

if command -v shellcheck >/dev/null; then
  echo "== shellcheck"
  shellcheck .ci/run tests/*.sh tests/*/*.sh examples/*.sh examples/*/*.sh clients/*.sh clients/*/generate.sh packaging/*.sh packaging/debian/p*
fi
