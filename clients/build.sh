#!/usr/bin/env bash
# Compiles the kits that are compiled, in their own languages, with their drivers for the conformance suite. Cargo compiles the Rust kit.
#
#   clients/build.sh
#
# Needs what tests/setup.sh installs.
set -euo pipefail
cd "$(dirname "$0")/.."

(cd clients/typescript && npm run --silent build)

# The driver in Go, in the place where the suite looks for it. The path of the module is that of the contract.
. clients/go.sh
(cd "$GO_KIT/conformance" && go build -o "$OLDPWD/.cache/go-driver" .)
