#!/usr/bin/env bash
# Fetches the tools of the tests besides Rust, and prints one line `SKIPPED: ...` for each unavailable tool.
#
#   tests/setup.sh            Debian packages (as root), the real Claude Code CLI and buf (both by npm, into .cache/)
#
# Nothing is installed twice. The exit status is 0 even if a tool is missing: tests/run.sh decides whether that is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

# Pinned: the tests assert the behaviour of exactly these versions.
CLAUDE_VERSION=2.1.330
BUF_VERSION=1.75.0

# Command, Debian package, and the tests that need it.
PACKAGES=(
  "bwrap bubblewrap the confinement of agents"
  "strace strace failing disks"
  "keyctl keyutils the keyrings of sandboxes"
  "tmux tmux the terminal of an operator, out of sandboxes"
  "ssh-agent openssh-client the keys of an operator, out of sandboxes"
  "dropbearkey dropbear-bin git push over ssh out of sandboxes"
  "python3 python3 virtual environments in sandboxes"
  "dbus-daemon dbus-daemon the desktop of an operator, out of sandboxes"
  "Xvfb xvfb the screen of an operator, out of sandboxes"
  "nix-instantiate nix-bin the syntax of the Nix files"
  "shellcheck shellcheck the shell scripts"
)

skipped() {
  echo "SKIPPED: $*"
}

install_packages() {
  local missing=() command package
  for entry in "${PACKAGES[@]}"; do
    read -r command package _ <<<"$entry"
    command -v "$command" >/dev/null || missing+=("$package")
  done
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
  for entry in "${PACKAGES[@]}"; do
    read -r command package what <<<"$entry"
    command -v "$command" >/dev/null || skipped "$what ($command is missing; as root: apt-get install $package)"
  done
}

# install_npm FOLDER PACKAGE VERSION: into .cache/FOLDER, unless that version is there.
install_npm() {
  local folder=".cache/$1" package=$2 version=$3
  local manifest="$folder/node_modules/$package/package.json"
  if [ -f "$manifest" ] && grep -q "\"version\": *\"$version\"" "$manifest"; then
    return 0
  fi
  command -v npm >/dev/null || return 1
  echo "installing $package@$version" >&2
  mkdir -p "$folder"
  npm install --silent --no-audit --no-fund --no-save --prefix "$folder" "$package@$version" >&2
}

install_packages

if ! install_npm claude @anthropic-ai/claude-code "$CLAUDE_VERSION" || ! tests/claude-path.sh >/dev/null; then
  skipped "the journeys with the real Claude Code CLI (no npm, or @anthropic-ai/claude-code@$CLAUDE_VERSION is not to be had)"
fi
if ! install_npm buf @bufbuild/buf "$BUF_VERSION" || ! .cache/buf/node_modules/.bin/buf --version >/dev/null 2>&1; then
  skipped "the lint of the contract (no npm, or @bufbuild/buf@$BUF_VERSION is not to be had)"
fi
