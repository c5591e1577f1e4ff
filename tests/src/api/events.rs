//! An answer as the events of a stream.

use serde_json::{Value, json};

use super::reply::Usage;
use crate::scripted::events::hex;

/// A tool call gets an id that no other has.
pub(super) fn identified(mut block: Value) -> Value {
    if block["type"] == "tool_use" {
        block["id"] = json!(format!("toolu_{}", hex(12)));
    }
    block
}

/// A message before anything is in it.
pub(super) fn start(model: &str, usage: Usage, output: u64) -> Value {
    let usage = json!({
        "input_tokens": usage.input, "cache_read_input_tokens": usage.cache_read, "cache_creation_input_tokens": usage.cache_creation,
        "output_tokens": output,
    });
    json!({"id": format!("msg_{}", hex(12)), "type": "message", "role": "assistant", "model": model, "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": usage})
}

/// All events of an answer.
pub(super) fn events(blocks: &[Value], stop_reason: &str, usage: Usage, model: &str) -> Vec<Value> {
    let mut events = vec![json!({"type": "message_start", "message": start(model, usage, 1)})];
    for (index, block) in blocks.iter().enumerate() {
        let mut begun = block.clone();
        let delta = if block["type"] == "tool_use" {
            begun["input"] = json!({});
            json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
        } else {
            begun["text"] = json!("");
            json!({"type": "text_delta", "text": block["text"]})
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let used = json!({"output_tokens": usage.output});
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": null}, "usage": used}));
    events.push(json!({"type": "message_stop"}));
    events
}

/// Writes an event in the format of the stream.
pub(super) fn sse(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}
