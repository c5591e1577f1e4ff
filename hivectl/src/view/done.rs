//! The result of a change: one record for every command without a more specific one.

use schemars::JsonSchema;
use serde::Serialize;

use crate::output::Text;
use crate::output::style::Style;
use crate::output::text::visible_line;

/// One change that was made.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub(crate) struct Done {
    /// The change, in the past tense: `acked`, `released`, `commanded`, `carried_out` ...
    pub(crate) done: &'static str,
    /// The agent concerned.
    pub(crate) agent: Option<String>,
    /// The message concerned.
    pub(crate) message_id: Option<u64>,
    /// The command that was given to a harness.
    pub(crate) command_id: Option<u64>,
    #[serde(skip)]
    pub(crate) sentence: String,
}

impl Done {
    /// Describes a change to an agent, or to the hive.
    pub(crate) fn new(done: &'static str, agent: Option<String>, sentence: String) -> Self {
        Self { done, agent, sentence, ..Self::default() }
    }
}

impl Text for Done {
    fn text(&self, _: &Style) -> String {
        visible_line(&self.sentence)
    }
}
