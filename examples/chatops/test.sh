#!/usr/bin/env bash
# An agent asks the operator, the bot posts the question in a stand-in for a chat, and a reply there reaches the agent. Exits 0 if each step did
# what the README says.
#
#   HIVE_BIN=DIR   directory of the programs (default: target/debug)
#
# Needs Node 20, and the client kit as clients/build.sh compiles it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
bin=$(cd "${HIVE_BIN:-$root/target/debug}" && pwd)
# The directory identifies the hive of this test, never a variable of the caller's shell.
unset HIVE_SOCKET HIVE_RUNTIME_DIR HIVE_PROCESS_TOKEN

# Not in TMPDIR: the path of a socket has at most 107 bytes.
home=$(mktemp -d /tmp/hive-chatops.XXXXXX)
hive=
chat=
bot=
follow=
processes() { echo "$follow $bot $chat $hive"; }
. "$root/examples/processes.sh"

# start_bot: starts the bot; its port is in $port.
start_bot() {
  : >bot.log
  HIVE_SOCKET=.hive/run/hived.sock CHAT_URL="http://127.0.0.1:$chat_port/" CHAT_TOKEN_FILE=token CHATOPS_LISTEN=127.0.0.1:0 \
    node chatops.mjs >>bot.log 2>&1 &
  bot=$!
  await bot.log "$bot" "listening on"
  port=${line##*:}
}

# request BODY [TOKEN]: sends a body to the bot as the chat does; prints the status and the answer.
request() {
  node --input-type=module - "$port" "$1" "${2-a token}" <<'NODE'
const [port, body, token] = process.argv.slice(2);
const headers = { authorization: `Bearer ${token}` };
const response = await fetch(`http://127.0.0.1:${port}/replies`, { method: "POST", headers, body });
console.log(response.status, (await response.text()).trim());
NODE
}

# expect PATTERN TEXT
expect() {
  # shellcheck disable=SC2053 # the pattern is one
  [[ $2 == $1 ]] || fail "expected '$1', not '$2'"
}

# asks WORDS QUESTION: sends the agent words on which she asks; waits for the post, and keeps the id in $id.
asks() {
  "$bin/hivectl" send ada "$1" >/dev/null
  await chat.log "$chat" "from ada: $2"
  id=${line#*Question }
  id=${id%% *}
}

cd "$home"
mkdir script node_modules
# As `npm install` does it in the directory of the example.
cp "$here"/*.mjs "$here/package.json" "$here/hive.toml" .
ln -s "$root/clients/typescript" node_modules/hive-client
printf '%s\n' 'readable = ["script"]' "env = { SCRIPTED_CLAUDE_FILE = \"$home/script/ada.json\" }" >>hive.toml
cat >script/ada.json <<'JSON'
[
  {"when": "Release 1", "steps": [{"tool": "ask", "input": {"to": "operator", "question": "Ship 1?", "options": ["yes", "not today"]}}]},
  {"when": "Release 2", "steps": [{"tool": "ask", "input": {"to": "operator", "question": "Ship 2?"}}]},
  {"when": "Release 3", "steps": [{"tool": "ask", "input": {"to": "operator", "question": "Ship 3?", "options": ["yes", "not today"]}}]},
  {"when": "not today", "steps": [{"tool": "send", "input": {"to": "operator", "body": "I do not ship it."}}]},
  {"when": "after lunch", "steps": [{"tool": "send", "input": {"to": "operator", "body": "I ship it after lunch."}}]}
]
JSON
echo "a token" >token
touch hive.log chat.log inbox.log

"$bin/hivectl" up --claude "$bin/scripted-claude" >>hive.log 2>&1 &
hive=$!
node stand-in-chat.mjs >>chat.log &
chat=$!
await hive.log "$hive" "Ctrl-C ends it."
await chat.log "$chat" "listening on"
chat_port=${line##* }
"$bin/hivectl" --json inbox --follow >>inbox.log 2>/dev/null &
follow=$!
start_bot

echo "the agent asks, and the chat gets the question, though it was away at first"
asks "Release 1" "Ship 1?"
echo "  $line"

echo "bad replies change nothing"
expect "401 *" "$(request "{\"text\": \"#$id 1\"}" "another token")"
expect "400 *" "$(request "#$id 1")"
expect "400 *" "$(request "{\"id\": 7}")"
expect "413 *" "$(request "$(printf '%*s' 100000 '')")"
expect "200 *There is no question 999*" "$(request '{"text": "#999 yes"}')"
await chat.log "$chat" "There is no question 999"
for reply in "#$id 3" "#$id 1,2"; do
  expect "200 *is refused*" "$(request "{\"text\": \"$reply\"}")"
done
await chat.log "$chat" "is refused"
expect '200 {"text":""}' "$(request '{"text": "What is for lunch?"}')"
"$bin/hivectl" --json questions show "$id" | grep -q '"state":"open"' || fail "question $id is not open"

echo "the bot and the broker restart, and nothing is posted twice"
end "$bot"
start_bot
kill -KILL "$(pgrep -P "$hive" -x hived)"
await hive.log "$hive" "the broker is back"

echo "a number answers, and the agent gets the option"
expect '200 *is answered*' "$(request "{\"id\": 1, \"text\": \"#$id 2\"}")"
await chat.log "$chat" "Question $id is answered: not today"
await inbox.log "$follow" "I do not ship it."
expect '200 *is answered*' "$(request "{\"id\": 1, \"text\": \"#$id 2\"}")"
expect '200 *is refused*' "$(request "{\"id\": 2, \"text\": \"#$id yes\"}")"
first=$id

echo "words answer a question without options"
asks "Release 2" "Ship 2?"
expect '200 *is answered*' "$(request "{\"text\": \"#$id after lunch\"}")"
await chat.log "$chat" "Question $id is answered: after lunch"
await inbox.log "$follow" "I ship it after lunch."

echo "the chat gets the outcome of a question that was withdrawn while the bot was away"
asks "Release 3" "Ship 3?"
end "$bot"
bot=
"$bin/hivectl" questions cancel "$id" >/dev/null
start_bot
await chat.log "$chat" "Question $id is withdrawn"

for number in "$first" "$id"; do
  [ "$(grep -c "Question $number from" chat.log)" = 1 ] || fail "question $number is not in the chat once"
  [ "$(grep -cE "Question $number is (answered|withdrawn)" chat.log)" = 1 ] || fail "its outcome is not in the chat once"
done
for process in "$bot" "$chat" "$hive"; do
  end "$process"
done
bot=
chat=
hive=
kill "$follow" 2>/dev/null || true
wait "$follow" || true
follow=
echo "ok"
