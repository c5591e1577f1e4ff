#!/usr/bin/env bash
# Prints where the real Claude Code CLI of the tests is, as tests/setup.sh put it; fails if it is not there or does not start.
set -euo pipefail
cd "$(dirname "$0")/.."

for claude in "$PWD"/.cache/claude/node_modules/@anthropic-ai/claude-code-*/claude "$PWD/.cache/claude/node_modules/.bin/claude"; do
  # An empty home: asking for the version must not touch anybody's login.
  if [ -x "$claude" ] && env -i PATH="$PATH" HOME=/nonexistent "$claude" --version >/dev/null 2>&1; then
    echo "$claude"
    exit 0
  fi
done
exit 1
