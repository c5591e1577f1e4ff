//! A small MCP server on stdio, as an agent's own: one tool shows the environment that it was
//! started in, the other never answers. For the tests alone.

use std::io::{self, BufRead as _, Write as _};

use serde_json::{Value, json};

/// The tool that never answers.
const HANG: &str = "hang";

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let Ok(request) = serde_json::from_str::<Value>(&line?) else { continue };
        // A notification has no id and no answer.
        if request["id"].is_null() || request["params"]["name"] == HANG {
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
        "tools/list" => {
            let schema = json!({"type": "object", "properties": {}});
            let tools = ["environment", HANG].map(
                |name| json!({"name": name, "description": "For tests.", "inputSchema": schema}),
            );
            json!({ "tools": tools })
        }
        "tools/call" => json!({"content": [{"type": "text", "text": environment()}]}),
        "ping" => json!({}),
        _ => return None,
    })
}

fn environment() -> String {
    let variables = std::env::vars_os()
        .map(|(name, value)| format!("{}={}\n", name.to_string_lossy(), value.to_string_lossy()));
    variables.collect()
}
