#!/usr/bin/env bash
# One message, from the operator to ada and back, hop by hop. Exits 0 if the answer arrived, and leaves nothing behind.
#
#   CLAUDE=PROGRAM  the claude to run (default: the scripted one; `claude` is the real one, with your login)
#   HIVE_BIN=DIR    directory of the programs (default: target/debug)
#   SECONDS_MAX=N   maximum time for the answer (default: 60)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(cd "${HIVE_BIN:-$root/target/debug}" && pwd)
claude=${CLAUDE:-$bin/scripted-claude}
seconds_max=${SECONDS_MAX:-60}
# The directory identifies the hive of this demo, never a variable of the caller's shell.
unset HIVE_SOCKET HIVE_RUNTIME_DIR

# A path is made absolute, because the hive runs elsewhere; a bare name is looked up on PATH.
case $claude in
  /*) ;;
  */*) claude=$root/$claude ;;
  *) claude=$(command -v "$claude") || { echo "there is no ${CLAUDE:-} on PATH" >&2; exit 1; } ;;
esac
case $claude in
  */scripted-claude) echo "SCRIPTED CLAUDE: no model is used. CLAUDE=claude make demo uses the real one." ;;
  *) echo "REAL CLAUDE: $claude, with the login of its environment." ;;
esac

home=$(mktemp -d "${TMPDIR:-/tmp}/hive-demo.XXXXXX")
hive=
follow=
# Called by the trap.
cleanup() {
  status=$?
  trap - EXIT INT TERM
  [ -z "$follow" ] || kill "$follow" 2>/dev/null || true
  [ -z "$hive" ] || kill -TERM "$hive" 2>/dev/null || true
  [ -z "$hive" ] || wait "$hive" || true
  if [ "$status" != 0 ] && [ -f "$home/log" ]; then
    echo "the demo failed; the log of the hive:" >&2
    sed 's/^/  /' "$home/log" >&2
  fi
  cd /
  rm -rf "$home"
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

cp "$root/examples/duo/hive.toml" "$home/"
cd "$home"
# The log must exist before it is followed.
: >log
"$bin/hivectl" up --config hive.toml --claude "$claude" >>log 2>&1 &
hive=$!

# Check after each log line whether the hive answers. (Exit code 8: it answers, and has findings.)
exec 3< <(exec tail -n +1 -f --pid="$hive" log)
deadline=$((SECONDS + 30))
until "$bin/hivectl" status >/dev/null 2>&1 || [ $? = 8 ]; do
  if ! kill -0 "$hive" 2>/dev/null || [ "$SECONDS" -ge "$deadline" ]; then
    echo "the hive did not start" >&2
    exit 1
  fi
  read -r -t 1 -u 3 _ || true
done
exec 3<&-
# The level of isolation here, and why no better one.
grep -m 1 -E '^(isolation|PARTLY ISOLATED|NOT ISOLATED)' log || true

exec 4< <(exec "$bin/hivectl" --json inbox --follow 2>/dev/null)
follow=$!

echo
echo "operator -> ada"
receipt=$("$bin/hivectl" --json send ada "Hello ada. Answer me in one sentence, please: who are you?")
id=$(sed -n 's/.*"message_id":\([0-9]*\).*/\1/p' <<<"$receipt")
echo "  accepted as message $id: it is on disk"

answer=
deadline=$((SECONDS + seconds_max))
while [ -z "$answer" ] && [ "$SECONDS" -lt "$deadline" ] && read -r -t $((deadline - SECONDS)) -u 4 line; do
  case $line in
    *'"from":"ada"'*) answer=$(sed -n 's/^{"schema":"[^"]*","id":\([0-9]*\).*/\1/p' <<<"$line") ;;
  esac
done
kill "$follow" 2>/dev/null || true
follow=
exec 4<&-
if [ -z "$answer" ]; then
  echo "no answer within $seconds_max s" >&2
  exit 1
fi

echo
echo "ada -> operator"
"$bin/hivectl" inbox read "$answer" | sed 's/^/  /'
"$bin/hivectl" inbox ack "$answer" >/dev/null

echo
echo "the journey of message $id"
"$bin/hivectl" trace "$id" | sed 's/^/  /'

# SIGTERM drains the hive, as Ctrl-C does: running turns end as DRAINED, and no process is left.
kill -TERM "$hive"
ended=0
wait "$hive" || ended=$?
hive=
if [ "$ended" != 0 ]; then
  echo "the hive did not end cleanly (exit code $ended)" >&2
  exit 1
fi
