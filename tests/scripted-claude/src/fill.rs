//! Placeholders of a script: numbers and names out of the prompt, put into the input of a tool.
//!
//! Invariant: only whole values are replaced, except for `$reminder`, which may be in the middle of
//! a path.

use serde_json::{Value, json};

use super::mail::{self, Sender};

/// Returns the input with these filled in: `"$id"` (the message that started the turn), `"$from"`
/// (its sender), `"$question"` (the question that it asks or reports) and `$reminder` (the reminder
/// that it is).
pub fn fill(input: Value, prompt: &str) -> Value {
    match input {
        Value::String(text) if text == "$id" => {
            json!(mail::read(prompt).first().map_or(0, |mail| mail.id))
        }
        Value::String(text) if text == "$from" => {
            match mail::read(prompt).into_iter().next().map(|mail| mail.sender) {
                Some(Sender::Agent(name)) => json!(name),
                Some(Sender::Operator | Sender::Oneself | Sender::Other) | None => {
                    json!("operator")
                }
            }
        }
        Value::String(text) if text == "$question" => json!(number(prompt, ", question ")),
        Value::String(text) => {
            json!(text.replace("$reminder", &number(prompt, ", your reminder ").to_string()))
        }
        Value::Object(object) => {
            object.into_iter().map(|(name, value)| (name, fill(value, prompt))).collect()
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => other,
    }
}

/// Returns the number that follows `word` in the prompt's first line; 0 if there is none.
fn number(prompt: &str, word: &str) -> u64 {
    let head = prompt.lines().next().unwrap_or_default();
    let digits = head
        .split_once(word)
        .map_or("", |(_, after)| after)
        .split(|c: char| !c.is_ascii_digit())
        .next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_prompt_fill_the_placeholders() {
        let asked = "Message 17 from Hive itself, question 16 for you:\n| bob asks you (question 99), question 98\n";
        let input = json!({"id": "$question", "in_reply_to": "$id", "to": "$from", "deep": {"id": "$question"}, "answer": "no $id"});
        let filled = json!({"id": 16, "in_reply_to": 17, "to": "operator", "deep": {"id": 16}, "answer": "no $id"});
        assert_eq!(fill(input, asked), filled);
        let reminded = "Message 8 from Hive itself, your reminder 5:\n| look\n";
        assert_eq!(
            fill(json!({"path": "/s/reminders/$reminder.md"}), reminded),
            json!({"path": "/s/reminders/5.md"})
        );
        let input = json!({"to": "$from", "id": "$question"});
        assert_eq!(
            fill(input, "Message 3 from agent alice:\n| question 4\n"),
            json!({"to": "alice", "id": 0})
        );
    }
}
