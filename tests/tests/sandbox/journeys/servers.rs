//! Small MCP servers for an agent of its own, in the languages that its users write them in. Each
//! has one tool, `note`, that says where it runs.

pub(crate) const NODE: &str = r#"#!/usr/bin/env node
const lines = require("node:readline").createInterface({ input: process.stdin });
const results = {
  "initialize": (params) => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "notes", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "note", description: "For tests.", inputSchema: { type: "object", properties: {} } }] }),
  "tools/call": () => ({ content: [{ type: "text", text: `noted by node in ${__dirname}` }] }),
};
lines.on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = results[method];
  const answer = result ? { result: result(params) } : { error: { code: -32601, message: "unknown method" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
});
"#;

/// A server for Python, without its first line.
pub(crate) const PYTHON: &str = r#"
import json, sys

def result(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": "note", "description": "For tests.", "inputSchema": {"type": "object", "properties": {}}}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": f"noted by python of {sys.prefix} as {sys.argv[1:]}"}]}

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    found = result(request["method"], request.get("params"))
    answer = {"error": {"code": -32601, "message": "unknown method"}} if found is None else {"result": found}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
"#;
