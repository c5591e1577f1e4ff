#!/usr/bin/env bash
# Sends signed hooks to webhook.py while no agent runs, then starts the agent. Exits 0 if each step did what the README says.
#
#   HIVE_BIN=DIR     directory of the programs (default: target/debug)
#   PYTHON=PROGRAM   a Python with the packages that the client kit needs (default: that of tests/setup.sh)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
bin=$(cd "${HIVE_BIN:-$root/target/debug}" && pwd)
python=${PYTHON:-$root/.cache/python/bin/python}
# The directory identifies the hive of this test, never a variable of the caller's shell.
unset HIVE_SOCKET HIVE_RUNTIME_DIR HIVE_PROCESS_TOKEN
export PYTHONPATH="$root/clients/python/src" PYTHONDONTWRITEBYTECODE=1

# Not in TMPDIR: the path of a socket has at most 107 bytes.
home=$(mktemp -d /tmp/hive-webhook.XXXXXX)
hive=
webhook=
follow=
processes() { echo "$follow $webhook $hive"; }
. "$root/examples/processes.sh"

# hook PATH BODY [SECRET] [DELIVERY]: sends a hook; prints the status, Retry-After and the answer. An empty secret: no signature.
hook() {
  "$python" - "$port" "$@" <<'PYTHON'
import hashlib, hmac, http.client, sys

port, path, body, secret, delivery, *_ = [*sys.argv[1:], "", ""]
headers = {"X-Delivery": delivery} if delivery else {}
if secret:
    digest = hmac.new(secret.encode(), body.encode(), hashlib.sha256).hexdigest()
    headers["X-Signature-256"] = f"sha256={digest}"
connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
connection.request("POST", path, body, headers)
response = connection.getresponse()
print(response.status, response.getheader("Retry-After", "-"), response.read().decode().strip())
PYTHON
}

# expect PATTERN TEXT
expect() {
  # shellcheck disable=SC2053 # the pattern is one
  [[ $2 == $1 ]] || fail "expected '$1', not '$2'"
}

push() { echo "{\"ref\": \"refs/heads/$1\", \"after\": \"commit-$2\", \"repository\": {\"full_name\": \"octo/hive\"}}"; }
# The id in an answer of `hook`.
id_of() {
  local id=${1##* }
  echo "${id%\}}"
}
# The unsettled mail of the agent, as `ID STATE TEXT` for each message, the newest first.
mail() { "$bin/hivectl" --json inbox ada | "$python" -c 'import json, sys; [print(d["message"]["id"], d["state"], d["message"]["body"]) for d in json.load(sys.stdin)]'; }

cd "$home"
mkdir script .hive
cp "$here/hive.toml" .
printf '%s\n' 'readable = ["script"]' "env = { SCRIPTED_CLAUDE_FILE = \"$home/script/ada.json\" }" >>hive.toml
# Only the newest push makes the scripted claude report.
cat >script/ada.json <<'JSON'
[{"when": "commit-10.", "steps": [{"tool": "send", "input": {"to": "operator", "body": "I have seen commit-10."}}]}]
JSON
printf 'a secret\n' >secret
touch hived.log hive.log webhook.log inbox.log

echo "a broker without a harness: nothing runs the agent"
"$bin/hived" --config hive.toml --state-dir .hive/state --runtime-dir .hive/run --agents-dir .hive/agents >>hived.log 2>&1 &
hive=$!
await hived.log "$hive" "hived is ready"
HIVE_SOCKET=$home/.hive/run/agents/ada/hive.sock WEBHOOK_SECRET_FILE=secret WEBHOOK_LISTEN=127.0.0.1:0 \
  "$python" "$here/webhook.py" >>webhook.log 2>&1 &
webhook=$!
await webhook.log "$webhook" "listening on"
port=$(sed -n 's/^listening on .*://p' webhook.log)

echo "bad hooks change nothing"
expect "401 - *" "$(hook /hooks/github "$(push main 1)")"
expect "401 - *" "$(hook /hooks/github "$(push main 1)" "another secret")"
expect "400 - *not JSON*" "$(hook /hooks/github '{"ref": ' "a secret")"
expect "400 - *not a JSON object*" "$(hook /hooks/github '[1]' "a secret")"
expect "400 - *label*" "$(hook /hooks/ada "$(push main 1)" "a secret")"
expect "404 - *" "$(hook /github "$(push main 1)" "a secret")"
expect "413 - *" "$(hook /hooks/github "$(printf '%*s' 100000 '')" "a secret")"
expect "" "$(mail)"

echo "ten pushes to one branch are one message, the newest"
for number in 1 2 3 4 5 6 7 8 9 10; do
  answer=$(hook /hooks/github "$(push main "$number")" "a secret" "delivery-$number")
  expect '202 - {"message_id": *}' "$answer"
done
newest=$(id_of "$answer")
expect "$newest ready *commit-10." "$(mail)"
again=$(hook /hooks/github "$(push main 10)" "a secret" delivery-10)
[ "$(id_of "$again")" = "$newest" ] || fail "a hook that is sent again is another message"
other=$(hook /hooks/github "$(push docs 11)" "a secret")
expect "$(id_of "$other") ready *commit-11.
$newest ready *commit-10." "$(mail | sort -rn)"

echo "without a broker the sender has to come again"
end "$hive"
hive=
expect "503 [1-9]* *again*" "$(hook /hooks/github "$(push main 12)" "a secret")"

echo "the agent starts, and a turn sees the newest push"
"$bin/hivectl" up --claude "$bin/scripted-claude" >>hive.log 2>&1 &
hive=$!
await hive.log "$hive" "Ctrl-C ends it."
"$bin/hivectl" --json inbox --follow >>inbox.log 2>/dev/null &
follow=$!
await inbox.log "$follow" "I have seen commit-10."
kill "$follow"
wait "$follow" || true
follow=
"$bin/hivectl" trace "$newest" | sed 's/^/  /'

echo "the same program wakes the agent after the restart of the broker"
expect "202 - *" "$(hook /hooks/github "$(push main 13)" "a secret")"

end "$webhook"
webhook=
end "$hive"
hive=
echo "ok"
