#!/usr/bin/env bash
# Compiles the kits that are compiled, in their own languages, with their drivers for the conformance suite and their programs for the bench. Cargo compiles the Rust kit.
#
#   clients/build.sh
#
# Needs what tests/setup.sh installs.
set -euo pipefail
cd "$(dirname "$0")/.."

(cd clients/typescript && npm run --silent build)

# The driver in Go, and the program of the bench, in the places where these look for them. The path of the module is that of the contract.
. clients/go.sh
(cd "$GO_KIT" && go build -o "$OLDPWD/.cache/go-driver" ./conformance && go build -o "$OLDPWD/.cache/go-rates" ./rates)
