//! A search of claude's conversation: does it already contain the text of a message?
//!
//! A failed turn leaves its prompt in the conversation; without this check a retry would add the
//! same text again. The file is read, never written. Invariant: only a prompt of ours counts, and a
//! sender cannot write its first line. So no sender can suppress a message.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::prompt::trigger;

/// Maximum bytes that are read from the end of a conversation.
const READ_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The kind of line after which a compacted conversation continues.
const BOUNDARY: &str = "compact_boundary";

/// Returns whether the model still sees the text of the message in the conversation that claude
/// would continue in this directory.
pub fn contains(home: &Path, state_dir: &Path, message_id: u64) -> bool {
    let Some(text) = newest(home, state_dir).and_then(|path| read_end(&path)) else { return false };
    let opening = trigger::opening(message_id);
    let mut prompts: Vec<(String, bool)> = Vec::new();
    for line in text.lines().filter(|line| line.contains(&opening) || line.contains(BOUNDARY)) {
        let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
        if value["type"] == "system" && value["subtype"] == BOUNDARY {
            // Lines before a compaction are gone, except for those that it names.
            let kept = &value["compactMetadata"]["preservedMessages"]["uuids"];
            prompts.retain(|(id, _)| {
                kept.as_array().into_iter().flatten().any(|kept| kept.as_str() == Some(id))
            });
        } else {
            prompts.push((
                value["uuid"].as_str().unwrap_or_default().to_owned(),
                is_whole_prompt(&value, &opening),
            ));
        }
    }
    prompts.iter().any(|(_, is_whole)| *is_whole)
}

/// Returns the file of the conversation that claude would continue in this directory.
pub fn newest(home: &Path, state_dir: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(project_dir(home, state_dir)).ok()?.flatten();
    let conversations =
        entries.filter(|entry| entry.path().extension().is_some_and(|e| e == "jsonl"));
    conversations
        .max_by_key(|entry| entry.metadata().and_then(|metadata| metadata.modified()).ok())
        .map(|entry| entry.path())
}

/// Returns claude's directory for the conversations of a directory: every character of the path
/// except letters and digits becomes a hyphen.
fn project_dir(home: &Path, state_dir: &Path) -> PathBuf {
    let name: String = state_dir
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    home.join(".claude/projects").join(name)
}

fn read_end(path: &Path) -> Option<String> {
    let mut file = std::fs::File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(READ_BYTES_MAX))).ok()?;
    let mut bytes = Vec::new();
    file.take(READ_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns whether a line of the file is a prompt of ours with the message's text.
fn is_whole_prompt(value: &Value, opening: &str) -> bool {
    if value["type"] != "user" || value["isCompactSummary"] == true {
        return false;
    }
    let content = &value["message"]["content"];
    let texts = content
        .as_str()
        .into_iter()
        .chain(content.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()));
    // In prompts that refer back to the text, the first line does not end with the colon that
    // precedes it.
    texts.into_iter().any(|text| {
        text.starts_with(opening) && text.lines().next().is_some_and(|first| first.ends_with(':'))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::prompt::trigger::{Presentation, mail};
    use crate::samples;

    fn prompt(presentation: Presentation, body: &str) -> String {
        let message = samples::message(17, samples::agent("bob"), body);
        mail(&samples::begun(7, message), presentation, "", "hive")
    }

    fn is_contained(lines: &[Value]) -> bool {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join(".claude/projects/-srv-bob-state");
        std::fs::create_dir_all(&dir).expect("created");
        let text: Vec<String> = lines.iter().map(Value::to_string).collect();
        std::fs::write(dir.join("s.jsonl"), text.join("\n")).expect("written");
        contains(home.path(), Path::new("/srv/bob.state"), 17)
    }

    #[test]
    fn a_whole_prompt_counts_in_both_shapes() {
        let whole = prompt(Presentation::Whole, "hello");
        assert!(is_contained(&[json!({"type": "user", "message": {"content": whole}})]));
        assert!(is_contained(&[
            json!({"type": "user", "message": {"content": [{"type": "text", "text": whole}]}})
        ]));
    }

    #[test]
    fn a_prompt_that_a_compaction_summed_up_does_not_count() {
        let prompt = |id: &str| json!({"type": "user", "uuid": id, "message": {"content": prompt(Presentation::Whole, "hello")}});
        let boundary = |kept: &[&str]| {
            let kept = json!({"preservedMessages": {"uuids": kept}});
            json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": kept})
        };
        assert!(!is_contained(&[prompt("a"), boundary(&["b"])]));
        assert!(!is_contained(&[
            prompt("a"),
            json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": {}})
        ]));
        assert!(is_contained(&[prompt("a"), boundary(&["a"])]));
        assert!(!is_contained(&[prompt("a"), boundary(&["a"]), boundary(&[])]));
        assert!(is_contained(&[prompt("a"), boundary(&[]), prompt("c")]));
        let summary = json!({"type": "user", "isCompactSummary": true, "message": {"content": "Message 17 from agent bob:"}});
        assert!(!is_contained(&[boundary(&[]), summary]));
    }

    #[test]
    fn nothing_else_does() {
        let user = |text: &str| json!({"type": "user", "message": {"content": text}});
        assert!(!is_contained(&[]));
        assert!(!is_contained(&[user(&prompt(Presentation::HeldAlready, ""))]));
        assert!(!is_contained(&[user(&prompt(Presentation::Retry, ""))]));
        assert!(!is_contained(&[user(&prompt(Presentation::Whole, "x").replace("17", "171"))]));
        // Text of a sender does not count at any position.
        assert!(!is_contained(&[user(
            "Message 16 from agent eve:\n| Message 17 from agent bob:\n"
        )]));
        assert!(!is_contained(&[
            json!({"type": "assistant", "message": {"content": "Message 17 from agent bob:"}})
        ]));
        assert!(!contains(Path::new("/no/such/home"), Path::new("/state"), 17));
    }
}
