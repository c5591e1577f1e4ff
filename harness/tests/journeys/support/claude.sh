#!/bin/sh
# A stand-in for claude: keeps what it was given in $HOME, and then does what $STAND_IN says.
if [ "$1" = --version ]; then
    echo "${VERSION:-2.1.330} (Claude Code)"
    exit 0
fi
if [ "$1 $2" = "auth status" ]; then
    echo '{"loggedIn": true}'
    exit 0
fi
run=1
while [ -e "$HOME/prompt.$run" ]; do run=$((run + 1)); done
printf '%s\n' "$@" > "$HOME/arguments.$run"
env > "$HOME/environment.$run"
cat > "$HOME/prompt.$run.new"
mv "$HOME/prompt.$run.new" "$HOME/prompt.$run"
init() {
    echo '{"type":"system","subtype":"init","model":"claude-x","tools":["Read","mcp__hive__send","mcp__hive__recv","mcp__hive__ask","mcp__hive__answer","mcp__hive__get_loose_ends","mcp__hive__cancel_loose_end","mcp__hive__remind","mcp__hive__request_next_turn"],"mcp_servers":[{"name":"hive","status":"connected"}]}'
}
well() {
    init
    echo '{"type":"result","subtype":"success","is_error":false,"result":"Done","terminal_reason":"completed"}'
}
fail() { # kind status
    init
    echo "{\"type\":\"assistant\",\"error\":\"$1\",\"api_error_status\":$2,\"message\":{\"id\":\"x\",\"content\":[]}}"
    echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"result\":\"words\",\"terminal_reason\":\"api_error\",\"api_error_status\":$2}"
    exit 1
}
eval "$STAND_IN"
