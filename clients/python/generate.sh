#!/usr/bin/env bash
# Generates the Python code of the contract from proto/hive/v1.
#
#   clients/python/generate.sh [DIRECTORY]    writes into DIRECTORY; without one into the kit
#
# It needs grpcio-tools 1.85.1 (`GRPCIO_TOOLS_VERSION`), in the Python that HIVE_PYTHON names or in
# .cache/python of the repository, where tests/setup.sh installs it. It needs no network.
#
# protoc writes `from hive.v1 import ...`, which works only with a package `hive` at the top level.
# These imports become relative, and the module names of the classes become those of the kit. The
# names of the files in the descriptors stay `hive/v1/...`: so a program may also import its own
# generated code of the same contract, since protobuf accepts equal descriptors twice.
set -euo pipefail

GRPCIO_TOOLS_VERSION=1.85.1

kit=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$kit/../.." && pwd)
python=${HIVE_PYTHON:-$repository/.cache/python/bin/python}
target=${1:-$kit/src/hive_client/v1}

version=$("$python" -c 'from importlib.metadata import version; print(version("grpcio-tools"))') || version=none
if [ "$version" != "$GRPCIO_TOOLS_VERSION" ]; then
  echo "generate.sh: $python has grpcio-tools $version, and $GRPCIO_TOOLS_VERSION is needed: run tests/setup.sh, or set HIVE_PYTHON" >&2
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(
  cd "$repository/proto"
  "$python" -m grpc_tools.protoc -I . --python_out="$work" --pyi_out="$work" --grpc_python_out="$work" hive/v1/*.proto
)
sed -i \
  -e 's/^from hive\.v1 import /from . import /' \
  -e "s/^_builder\.BuildTopDescriptorsAndMessages(DESCRIPTOR, 'hive\.v1\./_builder.BuildTopDescriptorsAndMessages(DESCRIPTOR, 'hive_client.v1./" \
  "$work"/hive/v1/*.py "$work"/hive/v1/*.pyi
# Files without a service have nothing for gRPC.
grep -L '^class ' "$work"/hive/v1/*_pb2_grpc.py | xargs -r rm
# One module has all messages, enums and stubs, so that a program needs no names of files.
"$python" - "$work/hive/v1" <<'PYTHON'
import ast, pathlib, sys

folder = pathlib.Path(sys.argv[1])
lines = ['"""The generated code of the contract `hive.v1`: its messages, enums and stubs."""', ""]
for path in sorted([*folder.glob("*_pb2.pyi"), *folder.glob("*_pb2_grpc.py")]):
    names = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    if path.name.endswith("_grpc.py"):
        names = [name for name in names if name.endswith("Stub")]
    elif path.name == "reason_pb2.pyi":
        names.append("about")  # the option on each reason
    lines += [f"from .{path.stem} import {name} as {name}" for name in sorted(names)]
(folder / "__init__.py").write_text("\n".join(lines) + "\n")
PYTHON

mkdir -p "$target"
rm -f "$target"/*_pb2.py "$target"/*_pb2.pyi "$target"/*_pb2_grpc.py
cp "$work"/hive/v1/* "$target"
