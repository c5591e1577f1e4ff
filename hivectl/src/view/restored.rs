//! A restored backup, with what the two databases contain.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counted;
use crate::output::Text;
use crate::output::style::Style;
use crate::output::text::visible_line;

/// A backup that has taken the place of a database.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub(crate) struct Restored {
    /// The database.
    database: String,
    /// The replaced database, under its new name; `null` if there was none.
    replaced: Option<String>,
    /// Whether ids go on directly above those of the replaced database; if not, they go on one to
    /// two million further on.
    numbers_known: bool,
    /// What the database contains; `null` if an older version wrote the backup.
    content: Option<Content>,
    /// What the replaced database contains; `null` if that is not known.
    replaced_content: Option<Content>,
}

/// How much a database contains.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub(crate) struct Content {
    /// Agents that are not retired.
    agents: u64,
    /// Messages.
    messages: u64,
    /// Deliveries that are not settled, dead letters included.
    unsettled: u64,
    /// Open questions.
    questions: u64,
    /// Pending reminders.
    reminders: u64,
}

impl Content {
    fn sentence(&self) -> String {
        let Self { agents, messages, unsettled, questions, reminders } = self;
        format!(
            "{}, {} ({unsettled} not settled), {}, {}",
            counted(*agents, "agent", "agents"),
            counted(*messages, "message", "messages"),
            counted(*questions, "open question", "open questions"),
            counted(*reminders, "pending reminder", "pending reminders"),
        )
    }
}

fn sentence(content: Option<&Content>) -> String {
    content.map_or_else(|| "its content is not known".to_owned(), Content::sentence)
}

impl Text for Restored {
    fn text(&self, _: &Style) -> String {
        let mut lines =
            vec![format!("{}: {}", visible_line(&self.database), sentence(self.content.as_ref()))];
        lines.push(match &self.replaced {
            Some(kept) => format!(
                "replaced, and kept as {}: {}",
                visible_line(kept),
                sentence(self.replaced_content.as_ref())
            ),
            None => "there was no database before".to_owned(),
        });
        if !self.numbers_known {
            lines.push("ids go on one to two million further on".to_owned());
        }
        lines.join("\n")
    }
}
