#!/usr/bin/env bash
# Runs the work queue: 1,000 jobs over a kill of the broker, a job that fails, and an end at SIGTERM.
# Exits 0 if it works, and leaves nothing behind.
#
#   HIVE_BIN=DIR   directory of the programs (default: target/debug)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(cd "${HIVE_BIN:-$root/target/debug}" && pwd)
queue=$bin/hive-example-queue
[ -x "$queue" ] || queue=$root/target/debug/hive-example-queue
unset HIVE_SOCKET HIVE_RUNTIME_DIR

home=$(mktemp -d "${TMPDIR:-/tmp}/hive-queue.XXXXXX")
hived=
worker=
# Called by the trap.
cleanup() {
  status=$?
  trap - EXIT INT TERM
  exec 6>&-
  for process in $worker $hived; do
    kill -TERM "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
  done
  if [ "$status" != 0 ]; then
    tail -n 20 "$home"/log "$home"/out "$home"/progress.log >&2 2>/dev/null || true
  fi
  rm -rf "$home"
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

fail() {
  echo "$*" >&2
  exit 1
}
start_broker() {
  "$bin/hived" --config "$home/hive.toml" --state-dir "$home/state" --runtime-dir "$home/run" >>"$home/log" 2>&1 &
  hived=$!
}
enqueue() { HIVE_SOCKET=$home/run/agents/producer/hive.sock "$queue" enqueue "$@"; }
hivectl() { "$bin/hivectl" --socket "$home/run/hived.sock" "$@"; }

# start_worker ARGUMENTS: descriptor 3 has its progress.
start_worker() {
  rm -f "$home/progress"
  mkfifo "$home/progress"
  HIVE_SOCKET=$home/run/agents/queue/hive.sock "$queue" work "$@" >"$home/out" 2>"$home/progress" &
  worker=$!
  exec 3<"$home/progress"
}
# until_progress PATTERN: reads progress until a line matches.
until_progress() {
  while read -r -t 60 -u 3 line; do
    echo "$line" >>"$home/progress.log"
    # shellcheck disable=SC2053 # it is a pattern
    [[ $line != $1 ]] || return 0
  done
  fail "the worker ended, or made no progress, before '$1'"
}
# end_worker: checks that SIGTERM ends it cleanly.
end_worker() {
  kill -TERM "$worker"
  wait "$worker" || fail "the worker ended with $?"
  worker=
  exec 3<&-
}

cp "$root/examples/queue/hive.toml" "$home/"
start_broker
seq 1 1000 | enqueue --batch first
# The same batch once more, as after a fault of the producer, adds nothing.
seq 1 1000 | enqueue --batch first >/dev/null

# Each command appends a line to a file, which is atomic.
# shellcheck disable=SC2016 # the shell of the job expands it
start_worker -- sh -c 'read -r job; echo "$job" >>"$0"' "$home/ran"
until_progress '300 done*'
kill -KILL "$hived"
wait "$hived" 2>/dev/null || true
start_broker
until_progress '1000 done*'
end_worker
cat "$home/out"
diff <(seq 1 1000) <(sort -nu "$home/ran") >&2 || fail "jobs are missing"
echo "1000 jobs ran, $(($(wc -l <"$home/ran") - 1000)) of them twice"
[ "$(hivectl --json inbox queue)" = "[]" ] || fail "the inbox is not empty: $(hivectl inbox queue)"

# A job that fails is tried three times, and is then a dead letter with the end of its error output.
echo broken | enqueue
start_worker -- sh -c 'cat >/dev/null; echo "no such order" >&2; exit 3'
until_progress '0 done, 3 failed'
end_worker
letter=$(hivectl --json dead-letters | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
hivectl dead-letters show "$letter" | grep -q "no such order" || fail "the dead letter does not say why"
hivectl dead-letters drop "$letter" >/dev/null

# At SIGTERM the command that runs ends, and its job is done. The other job waits.
printf 'one\ntwo\n' | enqueue
mkfifo "$home/begun" "$home/gate"
# shellcheck disable=SC2016 # the shell of the job expands it
start_worker --consumers 1 -- sh -c 'echo >"$0/begun"; read -r go <"$0/gate"' "$home"
# Opened after its start, so that no child has them: if this script ends, the job's input ends.
exec 5<>"$home/begun" 6<>"$home/gate"
read -r -t 60 -u 5 _ || fail "the job did not begin"
kill -TERM "$worker"
echo go >&6
wait "$worker" || fail "the worker ended with $?"
worker=
exec 3<&-
grep -qx "1 jobs done, 0 failed" "$home/out" || fail "the command did not end: $(cat "$home/out")"
hivectl --json inbox queue >"$home/left"
[ "$(grep -o '"state":"ready"' "$home/left" | wc -l)" = 1 ] || fail "not one job is left: $(cat "$home/left")"

# A command that cannot run ends the worker, and its job waits.
! HIVE_SOCKET=$home/run/agents/queue/hive.sock "$queue" work -- "$home/no-such-command" >/dev/null 2>"$home/progress.log" || fail "a worker without a command went on"
grep -q "the command cannot run" "$home/progress.log" || fail "the worker does not say why it ended"
hivectl --json inbox queue | grep -q '"state":"ready"' || fail "the job is gone"

kill -TERM "$hived"
wait "$hived" || fail "the broker ended with $?"
hived=
echo "the work queue works"
