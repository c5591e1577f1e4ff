//! Reading a request: what was asked, how far the turn has come, what the tools said.

use serde_json::Value;

use super::Kind;

/// The tag with which claude marks its additions to a user's words.
const REMINDER: &str = "<system-reminder>";
/// Text that the last message of a compaction request contains.
const COMPACTION: &str = "create a detailed summary";

/// The prompt of the running turn, and how many answers there are since.
pub(super) fn prompt_and_step(body: &Value) -> (String, usize) {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = messages
        .iter()
        .enumerate()
        .rev()
        .find_map(|(index, message)| Some((index, prompt(message)?)));
    let Some((index, prompt)) = found else { return (String::new(), 0) };
    let step = messages[index..].iter().filter(|message| message["role"] == "assistant").count();
    (prompt, step)
}

/// Returns the purpose of the request. The CLI may add a message after the one that states it.
pub(super) fn kind(body: &Value) -> Kind {
    let last = body["messages"]
        .as_array()
        .and_then(|messages| messages.iter().rfind(|message| message["role"] != "system"));
    if last.is_some_and(|message| mentions(message, COMPACTION)) {
        Kind::Compaction
    } else {
        Kind::Turn
    }
}

/// The last thing that a user really said in a message; `None` for results of tools and for
/// answers.
fn prompt(message: &Value) -> Option<String> {
    if message["role"] != "user" {
        return None;
    }
    if let Some(text) = message["content"].as_str() {
        return Some(text.to_owned());
    }
    let blocks = message["content"].as_array()?;
    // After a turn that broke behind a tool call, the next prompt is in one message with the
    // call's result.
    let results = blocks
        .iter()
        .rposition(|block| block["type"] == "tool_result")
        .map_or(0, |place| place + 1);
    let said = blocks[results..].iter().rev().filter_map(|block| block["text"].as_str());
    said.into_iter().find(|text| !text.trim_start().starts_with(REMINDER)).map(str::to_owned)
}

/// The text of a content that is a text or a list of blocks.
pub(super) fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Call, text and error of every tool result, oldest first.
pub(super) fn tool_results(body: &Value) -> Vec<(String, String, bool)> {
    let blocks = body["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|message| message["content"].as_array())
        .flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    let told = results.map(|block| {
        let id = block["tool_use_id"].as_str().unwrap_or_default().to_owned();
        (id, text(&block["content"]), block["is_error"].as_bool().unwrap_or(false))
    });
    told.collect()
}

/// Whether any text in `value` contains `needle`.
pub(super) fn mentions(value: &Value, needle: &str) -> bool {
    match value {
        Value::String(text) => text.contains(needle),
        Value::Array(items) => items.iter().any(|item| mentions(item, needle)),
        Value::Object(fields) => fields.values().any(|field| mentions(field, needle)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_prompt_is_the_last_thing_a_user_said() {
        let reminder = json!({"type": "text", "text": "<system-reminder>\nx</system-reminder>"});
        let body = json!({"messages": [
            {"role": "user", "content": "an older prompt"},
            {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
            {"role": "user", "content": [reminder, {"type": "text", "text": "the prompt"}, reminder]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "x", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "r"}]}, reminder]},
        ]});
        assert_eq!(prompt_and_step(&body), ("the prompt".to_owned(), 1));
        assert_eq!(tool_results(&body), [("t1".to_owned(), "r".to_owned(), false)]);
        assert!(mentions(&body, "older") && !mentions(&body, "newer"));
        assert_eq!(kind(&body), Kind::Turn);
    }

    #[test]
    fn a_prompt_may_stand_behind_the_results_of_a_turn_that_broke() {
        let result = json!({"type": "tool_result", "tool_use_id": "t1", "content": "r"});
        let body = json!({"messages": [
            {"role": "user", "content": "an older prompt"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "x", "input": {}}]},
            {"role": "user", "content": [result, {"type": "text", "text": "the prompt"}]},
        ]});
        assert_eq!(prompt_and_step(&body), ("the prompt".to_owned(), 0));
    }

    #[test]
    fn a_request_for_a_summary_is_known() {
        let ask = "CRITICAL: ... Your task is to create a detailed summary of the conversation";
        let asked = json!({"role": "user", "content": [{"type": "text", "text": ask}]});
        let environment = json!({"role": "system", "content": "# Environment"});
        let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "<summary>x</summary>"}]});
        for (messages, wanted) in [
            (json!([asked]), Kind::Compaction),
            (json!([asked, environment]), Kind::Compaction),
            (json!([asked, answer]), Kind::Turn),
        ] {
            assert_eq!(kind(&json!({ "messages": messages })), wanted, "{messages}");
        }
    }
}
