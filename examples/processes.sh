# shellcheck shell=bash disable=SC2154
# Functions for the tests of the examples, to be sourced. A test sets $home, its directory, and defines `processes`, which prints the ids of what it
# has started and not ended, the last first.
tail=

# Called by the trap: ends everything and removes the directory.
cleanup() {
  status=$?
  trap - EXIT INT TERM
  # A child that gets a signal before it runs its program has the traps of this shell.
  [ "$BASHPID" = $$ ] || exit "$status"
  for process in $tail $(processes); do
    kill -TERM "$process" 2>/dev/null || true
    wait "$process" || true
  done
  [ "$status" = 0 ] || tail -n 50 "$home"/*.log >&2
  cd /
  rm -rf "$home"
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

fail() {
  echo "FAILED: $1" >&2
  exit 1
}

# await FILE PID TEXT: waits for a line with this text in the log of a process, and keeps it in $line.
await() {
  exec 3< <(exec tail -n +1 -f --pid="$2" "$1")
  tail=$!
  while IFS= read -r -t 30 -u 3 line || fail "no line with '$3' in $1"; do
    case $line in *"$3"*) break ;; esac
  done
  exec 3<&-
  kill "$tail" 2>/dev/null || true
  wait "$tail" || true
  tail=
}

# end PID: ends a process, which has to exit with 0.
end() {
  kill -TERM "$1"
  wait "$1" || fail "process $1 ended with exit code $?"
}
