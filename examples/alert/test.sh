#!/usr/bin/env bash
# Runs the watcher against a receiver that refuses the first alert, over kills of the broker and of
# the watcher. Exits 0 if each alert arrived, and leaves nothing behind.
#
#   HIVE_BIN=DIR   directory of the programs (default: target/debug)
#
# It builds in GOPATH mode with clients/go.sh, which needs what tests/setup.sh installs.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(cd "${HIVE_BIN:-$root/target/debug}" && pwd)
unset HIVE_SOCKET HIVE_RUNTIME_DIR

home=$(mktemp -d "${TMPDIR:-/tmp}/hive-alert.XXXXXX")
hived=
harness=
receiver=
watcher=
# Called by the trap.
cleanup() {
  status=$?
  trap - EXIT INT TERM
  for process in $watcher $receiver $harness $hived; do
    kill -TERM "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
  done
  if [ "$status" != 0 ]; then
    tail -n 20 "$home"/*.log "$home"/alerts "$home"/position >&2 2>/dev/null || true
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
hivectl() { "$bin/hivectl" --socket "$home/run/hived.sock" "$@"; }

# Returns when the broker is ready: hivectl waits for none.
start_broker() {
  : >"$home/broker.log"
  "$bin/hived" --config "$home/hive.toml" --state-dir "$home/state" --runtime-dir "$home/run" >>"$home/broker.log" 2>&1 &
  hived=$!
  grep -q -m 1 "hived is ready" < <(exec tail -n +1 -f --pid="$hived" "$home/broker.log") || fail "the broker did not start"
}
# end SIGNAL PID: the exit code is that of the process.
end() {
  kill "-$1" "$2"
  wait "$2" 2>/dev/null
}
start_receiver() {
  mkfifo "$home/address"
  "$home/helper" receive "$home/alerts" >"$home/address" &
  receiver=$!
  read -r -t 30 address <"$home/address"
  rm "$home/address"
}
# Descriptor 3 has what the watcher logs.
start_watcher() {
  mkfifo "$home/watcher"
  HIVE_SOCKET=$home/run/hived.sock "$home/alert" -url "http://$address/api/v2/alerts" -state "$home/position" 2>"$home/watcher" &
  watcher=$!
  exec 3<"$home/watcher"
  rm "$home/watcher"
}
# until_logged PATTERN: reads what the watcher logs until a line matches.
until_logged() {
  while read -r -t 60 -u 3 line; do
    echo "$line" >>"$home/watcher.log"
    # shellcheck disable=SC2053 # it is a pattern
    [[ $line != $1 ]] || return 0
  done
  fail "the watcher ended, or is silent, before '$1'"
}
# The ids of the messages that became dead letters.
letters=()
dead_letter() {
  letters+=("$(hivectl --json send jobs "an order" | sed -n 's/.*"message_id":\([0-9]*\).*/\1/p')")
  HIVE_SOCKET=$home/run/agents/jobs/hive.sock "$home/helper" nack
}

(
  cd "$root"
  # shellcheck disable=SC1091 # it has a check of its own
  . clients/go.sh
  cd examples/alert
  go build -o "$home/alert" .
  go build -o "$home/helper" ./helper
)
cat >"$home/hive.toml" <<END
[claude]
env = { SCRIPTED_CLAUDE_FILE = "$home/rules.json" }
[agents.jobs]
role = "Orders, taken by a program."
[agents.ada]
role = "An agent."
END
start_broker
start_receiver
start_watcher
until_logged "watching log *"

echo "a dead letter, and a receiver that refuses the first request"
dead_letter
until_logged "the receiver did not accept HiveDeadLetter: 503*"
until_logged "posted HiveDeadLetter: message ${letters[0]} *"

echo "the broker is killed"
end KILL "$hived" || true
start_broker
dead_letter
until_logged "posted HiveDeadLetter: message ${letters[1]} *"

echo "the watcher is killed, and a dead letter comes while it is away"
end KILL "$watcher" || true
dead_letter
start_watcher
until_logged "posted HiveDeadLetter: message ${letters[2]} *"

echo "the receiver is away, and the watcher ends"
end TERM "$receiver" || true
dead_letter
until_logged "the receiver did not accept HiveDeadLetter: *"
end TERM "$watcher" || fail "the watcher ended with $?"
start_receiver
start_watcher
until_logged "posted HiveDeadLetter: message ${letters[3]} *"

echo "a turn that fails parks its agent"
printf '[{"when": "", "steps": [{"fail": "rate_limit"}]}]' >"$home/rules.json"
mkdir "$home/ada" "$home/ada/home"
"$bin/hive" serve --config "$home/hive.toml" --agent ada --socket "$home/run/agents/ada/hive.sock" --state-dir "$home/ada" \
  --home-dir "$home/ada/home" --claude "$bin/scripted-claude" >>"$home/harness.log" 2>&1 &
harness=$!
hivectl send ada "hello" >/dev/null
until_logged "posted HiveTurnFailed: turn * of ada ended: RATE_LIMITED"
until_logged "posted HiveAgentParked: ada is parked until *: RATE_LIMITED"

echo "a backup is restored"
hivectl backup "$home/backup.db" >/dev/null
end TERM "$harness" || fail "the harness ended with $?"
harness=
end TERM "$hived" || fail "the broker ended with $?"
hivectl restore --state-dir "$home/state" "$home/backup.db" >/dev/null
start_broker
until_logged "posted HiveLogChanged: *"

end TERM "$watcher" || fail "the watcher ended with $?"
watcher=
exec 3<&-
for letter in "${letters[@]}"; do
  grep -q "\"message\":\"$letter\"" "$home/alerts" || fail "the alert of message $letter is missing"
done
echo "${#letters[@]} dead letters, $(grep -c HiveDeadLetter "$home/alerts") alerts of dead letters"
last=$(tail -n 1 "$home/alerts" | sed -n 's/.*"event":"\([0-9]*\)".*/\1/p')
stored=$(sed -n 's/.*"Sequence":\([0-9]*\).*/\1/p' "$home/position")
[ "$stored" -ge "$last" ] || fail "the stored position is $stored, before the event $last of the last alert"
[ ! -e "$home/position.new" ] || fail "a temporary file is left"

end TERM "$receiver" || true
receiver=
end TERM "$hived" || fail "the broker ended with $?"
hived=
echo "the watcher works"
