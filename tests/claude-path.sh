#!/usr/bin/env bash
# Prints the path of the real Claude Code CLI that tests/setup.sh installed; fails if it is missing or does not start.
set -euo pipefail
cd "$(dirname "$0")/.."

for claude in "$PWD"/.cache/claude/node_modules/@anthropic-ai/claude-code-*/claude "$PWD/.cache/claude/node_modules/.bin/claude"; do
  # An empty home: asking for the version must not change a login.
  if [ -x "$claude" ] && env -i PATH="$PATH" HOME=/nonexistent "$claude" --version >/dev/null 2>&1; then
    echo "$claude"
    exit 0
  fi
done
exit 1
