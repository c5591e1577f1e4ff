#!/usr/bin/env bash
# Generates hivev1 from the contract in proto/, with pinned plugins.
#
#   generate.sh [DIRECTORY]   writes DIRECTORY/hivev1; the kit's own directory without an argument
#
# The compiler is that of Python's grpcio-tools, in .cache/python (tests/setup.sh). The plugins are
# Debian's packages protoc-gen-go and protoc-gen-go-grpc. Nothing is fetched.
set -euo pipefail
kit=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$kit/../.." && pwd)
out=${1:-$kit}

# Pinned: another version writes other files.
PROTOC='libprotoc 35.1'
PROTOC_GEN_GO='protoc-gen-go v1.28.1'
PROTOC_GEN_GO_GRPC='protoc-gen-go-grpc 1.0'

protoc=("$root/.cache/python/bin/python" -m grpc_tools.protoc)

# require NAME VERSION COMMAND...: ends the program unless the command prints this version.
require() {
  local name=$1 version=$2 found
  shift 2
  found=$("$@" --version 2>&1 | tail -n 1) || true
  if [ "$found" != "$version" ]; then
    echo "generate.sh: $name is '$found' and must be '$version'; run tests/setup.sh" >&2
    exit 1
  fi
}

require protoc "$PROTOC" "${protoc[@]}"
require protoc-gen-go "$PROTOC_GEN_GO" protoc-gen-go
require protoc-gen-go-grpc "$PROTOC_GEN_GO_GRPC" protoc-gen-go-grpc

mkdir -p "$out"
rm -rf "$out/hivev1"
cd "$root/proto"
module=example.invalid/hive/clients/go
"${protoc[@]}" -I . \
  --go_out="$out" --go_opt=module=$module \
  --go-grpc_out="$out" --go-grpc_opt=module=$module \
  hive/v1/*.proto
