//! The session on disk: the messages of this conversation, in claude's directory and format.
//!
//! `HOME/.claude/projects/<working directory, every other character a dash>/<session>.jsonl`, one
//! line per message. It is the only memory: `--continue` reads the newest session; without it
//! nothing is known. Invariant: lines are only added. A compaction adds a boundary; the model no
//! longer sees earlier lines, except for those that the boundary names.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

use super::events::uuid;

#[derive(Debug)]
pub struct Session {
    pub id: String,
    pub path: PathBuf,
    lines: Vec<Value>,
    file: Option<File>,
}

/// A send of this conversation that has a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The message that made the agent send it.
    pub cause: u64,
    /// The sender of that message, as `to` of a send.
    pub asker: String,
    pub id: u64,
}

impl Session {
    /// Opens the newest conversation of this directory, or a new one.
    pub fn open(home: &Path, directory: &Path, continues: bool) -> Self {
        let folder = folder(home, directory);
        let newest = if continues { newest(&folder) } else { None };
        let path = newest.unwrap_or_else(|| folder.join(format!("{}.jsonl", uuid())));
        let id =
            path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let text = fs::read_to_string(&path).unwrap_or_default();
        // Unreadable lines are skipped, as by the real one.
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        // If HOME cannot be written, nothing is remembered, and that is all.
        let file = fs::create_dir_all(&folder)
            .and_then(|()| OpenOptions::new().create(true).append(true).open(&path))
            .ok();
        Self { id, path, lines, file }
    }

    /// Appends a message; `kind` is `user` or `assistant`, `cause` the message that the agent is
    /// handling.
    pub fn append(&mut self, kind: &str, message: Value, cause: Value) -> io::Result<()> {
        let parent = self.last();
        self.line(json!({
            "parentUuid": parent, "isSidechain": false, "type": kind, "message": message, "uuid": uuid(), "cause": cause,
            "version": crate::VERSION,
        }))
    }

    /// Records that a prompt arrived. It is then in the file twice, as with the real one: a search
    /// of the file must check the lines' type.
    pub fn queued(&mut self, prompt: &str) -> io::Result<()> {
        self.line(json!({"type": "queue-operation", "operation": "enqueue", "content": prompt}))
    }

    /// Adds a line.
    pub fn line(&mut self, mut line: Value) -> io::Result<()> {
        line["sessionId"] = json!(self.id);
        if let Some(file) = &mut self.file {
            file.write_all(format!("{line}\n").as_bytes())?;
        }
        self.lines.push(line);
        Ok(())
    }

    /// Returns the messages that a model would see, oldest first.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Value> {
        let boundary = self.lines.iter().rposition(|line| line["subtype"] == "compact_boundary");
        let kept = boundary.map_or(&Value::Null, |place| {
            &self.lines[place]["compactMetadata"]["preservedMessages"]["uuids"]
        });
        let seen = move |place: usize, line: &Value| {
            boundary.is_none_or(|boundary| place > boundary)
                || kept
                    .as_array()
                    .is_some_and(|kept| line["uuid"].is_string() && kept.contains(&line["uuid"]))
        };
        let messages = self
            .lines
            .iter()
            .enumerate()
            .filter(move |(place, line)| line["message"].is_object() && seen(*place, line));
        messages.map(|(_, line)| line)
    }

    /// Returns the id of the last message.
    pub fn last(&self) -> Value {
        self.messages().next_back().map_or(Value::Null, |line| line["uuid"].clone())
    }

    /// Returns the texts of users in it, newest first.
    pub fn prompts(&self) -> impl Iterator<Item = &str> {
        self.messages()
            .rev()
            .filter(|line| line["type"] == "user")
            .filter_map(|line| line["message"]["content"].as_str())
    }

    /// Returns the tokens in the context of the last inference, or after the last compaction; 0 if
    /// there was neither.
    pub fn context(&self) -> u64 {
        let told = self.lines.iter().rev().find_map(|line| {
            let usage = &line["message"]["usage"];
            let names = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
            let used: u64 = names.iter().filter_map(|name| usage[name].as_u64()).sum();
            line["compactMetadata"]["postTokens"].as_u64().or((used > 0).then_some(used))
        });
        told.unwrap_or(0)
    }

    /// Returns what the agent sent because of a message and got a receipt for.
    pub fn sent(&self) -> Vec<Sent> {
        let receipts = self.lines.iter().filter(|line| line["cause"]["sent"].is_u64());
        let sent = receipts.map(|line| Sent {
            cause: line["cause"]["id"].as_u64().unwrap_or(0),
            asker: line["cause"]["asker"].as_str().unwrap_or_default().to_owned(),
            id: line["cause"]["sent"].as_u64().unwrap_or(0),
        });
        sent.collect()
    }

    /// Returns the cost of the whole conversation so far.
    pub fn cost(&self) -> f64 {
        self.lines
            .iter()
            .filter_map(|line| line["totalCostUSD"].as_f64())
            .next_back()
            .unwrap_or(0.0)
    }
}

fn folder(home: &Path, directory: &Path) -> PathBuf {
    let name: String = directory
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    home.join(".claude/projects").join(name)
}

fn newest(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let sessions = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    sessions.max_by_key(|path| {
        path.metadata().and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_continued_only_when_asked_and_only_in_its_directory() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let directory = Path::new("/state/a.b");
        let mut first = Session::open(home.path(), directory, true);
        first
            .append("user", json!({"role": "user", "content": "hello"}), json!(null))
            .expect("it is written");
        first
            .append(
                "user",
                json!({"role": "user"}),
                json!({"id": 3, "asker": "operator", "sent": 4}),
            )
            .expect("it is written");
        let again = Session::open(home.path(), directory, true);
        assert_eq!(again.id, first.id);
        assert_eq!(again.prompts().collect::<Vec<_>>(), ["hello"]);
        assert_eq!(again.sent(), [Sent { cause: 3, asker: "operator".to_owned(), id: 4 }]);
        assert_ne!(Session::open(home.path(), directory, false).id, first.id);
        assert_ne!(Session::open(home.path(), Path::new("/state/b"), true).id, first.id);
        assert!(home.path().join(".claude/projects/-state-a-b").is_dir());
    }

    #[test]
    fn behind_a_boundary_only_the_entries_it_names_are_seen() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let mut session = Session::open(home.path(), Path::new("/state"), true);
        for text in ["one", "two"] {
            session
                .append("user", json!({"role": "user", "content": text}), json!(null))
                .expect("it is written");
        }
        let usage = json!({"input_tokens": 3, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 7, "output_tokens": 9});
        session
            .append("assistant", json!({"role": "assistant", "usage": usage}), json!(null))
            .expect("it is written");
        assert_eq!(session.context(), 80);
        let two = session.lines[1]["uuid"].clone();
        let metadata = json!({"postTokens": 5, "preservedMessages": {"uuids": [two]}});
        session
            .line(json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": metadata}))
            .expect("it is written");
        session
            .append("user", json!({"role": "user", "content": "three"}), json!(null))
            .expect("it is written");
        assert_eq!(session.prompts().collect::<Vec<_>>(), ["three", "two"]);
        assert_eq!(session.context(), 5);
    }
}
