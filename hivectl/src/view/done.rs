//! What a change did: one record for every command that changes something and has nothing better to show.

use serde::Serialize;

use crate::output::style::Style;
use crate::output::text::visible_line;
use crate::output::{Text, View};

/// One change that was made.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Done {
    /// What was done, in the past tense: `acked`, `released`, `commanded` ...
    pub(crate) done: &'static str,
    pub(crate) agent: Option<String>,
    pub(crate) message_id: Option<u64>,
    pub(crate) command_id: Option<u64>,
    #[serde(skip)]
    pub(crate) sentence: String,
}

impl View for Done {
    const SCHEMA: &'static str = "hive.done.v1";
}

impl Text for Done {
    fn text(&self, _: &Style) -> String {
        visible_line(&self.sentence)
    }
}
