#!/usr/bin/env bash
# Checks the sources without running them. Missing tools are skipped: tests/setup.sh lists them.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}

echo "== rustfmt"
"$cargo" fmt --all --check

echo "== clippy"
"$cargo" clippy --locked --workspace --all-targets -- -D warnings
(cd tests/interleavings && "$cargo" clippy --locked --target-dir ../../target --all-targets -- -D warnings)

buf=.cache/buf/node_modules/.bin/buf
if "$buf" --version >/dev/null 2>&1; then
  echo "== buf lint"
  "$buf" lint proto
  echo "== buf breaking"
  "$buf" breaking proto --against proto/baseline.binpb
fi

if command -v nix-instantiate >/dev/null; then
  echo "== nix-instantiate --parse"
  for file in flake.nix nix/*.nix; do
    nix-instantiate --parse "$file" >/dev/null
  done
fi

if command -v shellcheck >/dev/null; then
  echo "== shellcheck"
  shellcheck .ci/run tests/*.sh tests/*/*.sh examples/*/*.sh packaging/*.sh packaging/debian/p*
fi
