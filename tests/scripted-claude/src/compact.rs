//! Prompts that are commands: `/compact` with all the events of the real claude, and `/clear`.
//!
//! Invariant: only the text says that a compaction failed; exit code and `is_error` are those of a
//! success.

use std::io;

use serde_json::{Map, Value, json};

use super::events::uuid;
use super::script::Step;
use super::session::Session;
use super::turn::{Conversation, End};

/// The size of a compacted conversation, in tokens.
const POST_TOKENS: u64 = 500;
/// The beginning of a summary.
const CONTINUED: &str = "This session is being continued from a previous conversation that ran out of context. The summary below covers the \
    earlier portion of the conversation.\n\nSummary:\nWhat was said so far.";
/// The end of a summary if some messages were kept.
const KEPT: &str = "\n\nThe messages after this summary are the most recent messages from before compaction, kept verbatim.";

/// Returns the command in a prompt, or `None` for a prompt to the model.
pub(super) fn command(prompt: &str) -> Option<&'static str> {
    // With a blank before it, or with an unknown name, it is a prompt.
    let name = prompt.strip_prefix('/')?.split_whitespace().next()?;
    ["compact", "clear"].into_iter().find(|known| *known == name)
}

impl Conversation {
    /// Runs a command; the steps are done while it is under way.
    pub(super) async fn command(
        &mut self,
        command: &'static str,
        steps: &[Step],
    ) -> io::Result<End> {
        if command == "clear" {
            if let Some(end) = self.steps(steps, command, None).await? {
                return Ok(end);
            }
            let id = uuid();
            self.events.line(json!({"type": "conversation_reset", "new_conversation_id": id, "uuid": id, "trigger": "clear"}))?;
            self.events.line(
                json!({"type": "system", "subtype": "background_tasks_changed", "tasks": []}),
            )?;
            self.session = Session::open(&self.home, &std::env::current_dir()?, false);
            self.events.set_session(&self.session.id);
            self.init()?;
            return self.done(command, "");
        }
        if self.session.messages().next().is_none() {
            self.init()?;
            self.complain("Error: No messages to compact")?;
            return self.done(command, "");
        }
        self.status(json!({"status": "compacting"}))?;
        if let Some(end) = self.steps(steps, "/compact", None).await? {
            return Ok(end);
        }
        self.events.infer();
        self.status(json!({"status": null, "compact_result": "success"}))?;
        self.init()?;
        self.boundary()?;
        self.done(command, "")
    }

    pub(super) fn compaction_failed(&mut self, error: &str) -> io::Result<End> {
        self.status(json!({"status": null, "compact_result": "failed", "compact_error": error}))?;
        self.init()?;
        self.complain(error)?;
        self.done("compact", error)
    }

    fn status(&self, fields: Value) -> io::Result<()> {
        let mut event = json!({"type": "system", "subtype": "status"});
        for (name, value) in fields.as_object().into_iter().flatten() {
            event[name] = value.clone();
        }
        self.events.line(event)
    }

    /// Puts the boundary into the session and reports it.
    fn boundary(&mut self) -> io::Result<()> {
        let (boundary, summary, last) = (uuid(), uuid(), self.session.last());
        let before = self.session.context();
        let dropped = before.saturating_sub(POST_TOKENS);
        // Only the last answer is kept, and not even that if it is the only one.
        let kept = self.session.messages().filter(|line| line["type"] == "assistant").count() > 1;
        let mut told = json!({
            "trigger": "manual", "pre_tokens": before, "post_tokens": POST_TOKENS, "cumulative_dropped_tokens": dropped, "duration_ms": 1,
        });
        let mut stored = json!({
            "trigger": "manual", "preTokens": before, "postTokens": POST_TOKENS, "cumulativeDroppedTokens": dropped, "durationMs": 1,
        });
        if kept {
            told["preserved_segment"] =
                json!({"head_uuid": last, "anchor_uuid": summary, "tail_uuid": last});
            told["preserved_messages"] =
                json!({"anchor_uuid": summary, "uuids": [last], "all_uuids": [last]});
            stored["preservedSegment"] =
                json!({"headUuid": last, "anchorUuid": summary, "tailUuid": last});
            stored["preservedMessages"] =
                json!({"anchorUuid": summary, "uuids": [last], "allUuids": [last]});
        }
        let text = format!("{CONTINUED}{}", if kept { KEPT } else { "" });
        let output = "<local-command-stdout>Compacted </local-command-stdout>";
        self.session.line(json!({
            "parentUuid": null, "logicalParentUuid": last, "isSidechain": false, "type": "system", "subtype": "compact_boundary",
            "content": "Conversation compacted", "isMeta": false, "uuid": boundary, "level": "info", "compactMetadata": stored,
        }))?;
        self.session.line(json!({
            "parentUuid": boundary, "isSidechain": false, "type": "user", "message": {"role": "user", "content": text},
            "isVisibleInTranscriptOnly": true, "isCompactSummary": true, "uuid": summary,
        }))?;
        self.session.append("user", json!({"role": "user", "content": output}), Value::Null)?;
        self.events.line(json!({
            "type": "system", "subtype": "compact_boundary", "uuid": boundary, "compact_metadata": told, "logical_parent_uuid": last,
        }))?;
        self.events.line(json!({
            "type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": null, "isReplay": false, "isSynthetic": true,
            "uuid": summary,
        }))?;
        self.events.line(json!({
            "type": "user", "message": {"role": "user", "content": output}, "parent_tool_use_id": null, "isReplay": true,
        }))
    }

    /// Reports the error of a command.
    fn complain(&self, text: &str) -> io::Result<()> {
        let fields = json!({
            "local_command_source": format!("<local-command-stderr>{text}</local-command-stderr>"),
            "local_command_run": {"command": "compact", "args": ""}, "local_command_outcome": {"kind": "failed"},
        });
        self.events.synthetic(text, "end_turn", fields.as_object().unwrap_or(&Map::new()))
    }

    fn done(&mut self, command: &str, text: &str) -> io::Result<End> {
        self.events.command_result(command, text)?;
        self.remember_cost()?;
        Ok(End::Result(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_that_begins_with_a_known_command_is_one() {
        assert_eq!(command("/compact"), Some("compact"));
        assert_eq!(command("/compact keep the paths\n"), Some("compact"));
        assert_eq!(command("/clear"), Some("clear"));
        for prompt in [
            " /compact",
            "hello /compact",
            "/compacted",
            "/nosuch x",
            "/",
            "Message 1 from bob:\n| /compact\n",
        ] {
            assert_eq!(command(prompt), None, "{prompt}");
        }
    }
}
