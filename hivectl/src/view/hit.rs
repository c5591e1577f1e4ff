//! Something that a search found: a message or a question.

use hive_proto::v1::search_hit;
use schemars::JsonSchema;
use serde::Serialize;

use super::message::Message;
use super::question::Question;
use super::search_words::SearchWords;
use crate::output::Text;
use crate::output::style::Style;
use crate::output::text::visible_line;

/// The indent of lines below the first one of a hit.
const INDENT: &str = "    ";

/// One hit; exactly one of the two is set.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Hit {
    /// The message that was found.
    message: Option<Message>,
    /// The question that was found.
    question: Option<Question>,
    /// The words that were searched, to be shown.
    #[serde(skip)]
    words: SearchWords,
}

impl Hit {
    pub(crate) fn new(hit: search_hit::Hit, words: SearchWords) -> Self {
        match hit {
            search_hit::Hit::Message(message) => {
                Self { message: Some(message.into()), question: None, words }
            }
            search_hit::Hit::Question(question) => {
                Self { message: None, question: Some(question.into()), words }
            }
        }
    }
}

impl Text for Hit {
    fn text(&self, style: &Style) -> String {
        let room = style.width.saturating_sub(INDENT.len());
        let excerpt = |text: &str| {
            format!(
                "{INDENT}{}",
                self.words.highlighted(&self.words.excerpt(&visible_line(text), room), style)
            )
        };
        match (&self.message, &self.question) {
            (Some(message), _) => format!(
                "{}\n{}",
                style.head(&message.head(style)),
                excerpt(message.body.trim_end())
            ),
            (None, Some(question)) => {
                let options = question.options.join(" / ");
                let asked = if options.is_empty() {
                    question.preview()
                } else {
                    format!("{} ({options})", question.preview())
                };
                let outcome = question.outcome();
                format!(
                    "{}\n{}",
                    style.head(&format!("{}, {outcome}", question.head(style))),
                    excerpt(&asked)
                )
            }
            (None, None) => "-".to_owned(),
        }
    }
}
