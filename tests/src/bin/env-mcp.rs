//! A small MCP server on stdio, as an agent's own: its one tool tells which environment it was started in. For the tests alone.

use std::io::{self, BufRead as _, Write as _};

use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let Ok(request) = serde_json::from_str::<Value>(&line?) else { continue };
        // What has no id wants no answer.
        if request["id"].is_null() {
            continue;
        }
        let mut answer = json!({"jsonrpc": "2.0", "id": request["id"]});
        match result(&request) {
            Some(result) => answer["result"] = result,
            None => answer["error"] = json!({"code": -32601, "message": "unknown method"}),
        }
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn result(request: &Value) -> Option<Value> {
    Some(match request["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "env-mcp", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{
            "name": "environment", "description": "Tells the environment.", "inputSchema": {"type": "object", "properties": {}},
        }]}),
        "tools/call" => json!({"content": [{"type": "text", "text": environment()}]}),
        "ping" => json!({}),
        _ => return None,
    })
}

fn environment() -> String {
    let variables = std::env::vars_os().map(|(name, value)| format!("{}={}\n", name.to_string_lossy(), value.to_string_lossy()));
    variables.collect()
}
