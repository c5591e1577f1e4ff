//! Questions: an asker needs a decision of a target, and gets exactly one outcome.
//!
//! ```text
//!            answer (target, operator)
//!        ┌──────────────────────────────► ANSWERED
//!  OPEN ─┼── deadline ──────────────────► EXPIRED
//!        └── cancel (asker, operator) ──► CANCELLED
//! ```
//!
//! Invariant: only OPEN changes, and only once. If two callers close a question at the same time,
//! one wins and the other is notified of the winning outcome.

use crate::effect::Approval;
use crate::id::{MessageId, QuestionId, TurnId};
use crate::limits::{ANSWER_BYTES_MAX, OPTION_CHARS_MAX, QUESTION_BYTES_MAX, QUESTION_OPTIONS_MAX};
use crate::time::WallTime;

/// State of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Waiting for an answer.
    Open,
    /// Answered.
    Answered,
    /// Its deadline passed.
    Expired,
    /// Withdrawn.
    Cancelled,
}

/// The content of an answer: chosen options, free text, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Answer {
    /// The chosen options, in the order in which the question lists them.
    pub choices: Vec<String>,
    /// Free text; may be empty beside choices.
    pub text: String,
}

/// The content of a question, before it has an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wording {
    /// The question.
    pub text: String,
    /// Offered answers.
    pub options: Vec<String>,
    /// Whether more than one may be chosen.
    pub multi: bool,
}

/// A question and, once closed, its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Unique id.
    pub id: QuestionId,
    /// Name of the asking agent, or `operator`.
    pub asker: String,
    /// Name of the asked agent, or `operator`.
    pub target: String,
    /// Text and options.
    pub wording: Wording,
    /// Current state.
    pub state: State,
    /// When it was asked.
    pub create_time: WallTime,
    /// When it expires; `None`: never.
    pub deadline_time: Option<WallTime>,
    /// The answer, once there is one.
    pub answer: Option<Answer>,
    /// The agent or operator that closed it; empty while it is open, and if the broker closed it.
    pub closed_by: String,
    /// Whether the operator answered in place of the target.
    pub operator_override: bool,
    /// When it was closed.
    pub close_time: Option<WallTime>,
    /// The turn it was asked in.
    pub turn_id: Option<TurnId>,
    /// The message that brought it to its target.
    pub message_id: Option<MessageId>,
    /// What it asks the operator to approve; `None` for a plain question.
    pub approval: Option<Box<Approval>>,
}

/// Why a question or an answer is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The question has no text.
    #[error("a question needs a text")]
    NoText,
    /// The question is too long.
    #[error(
        "it has {0} bytes; a question has at most {QUESTION_BYTES_MAX}. Send the long part as a message, and ask briefly"
    )]
    TextTooLong(usize),
    /// Too many options.
    #[error("there are {0} options; a question offers at most {QUESTION_OPTIONS_MAX}")]
    TooManyOptions(usize),
    /// An option is invalid.
    #[error("`{0}` is no option: an option is one line of 1 to {OPTION_CHARS_MAX} characters")]
    BadOption(String),
    /// An option appears twice.
    #[error("the option `{0}` stands there twice")]
    DoubleOption(String),
    /// Several choices are allowed, but no option is offered.
    #[error("several options can be chosen only where options are offered")]
    MultiWithoutOptions,
    /// The answer is empty.
    #[error("an answer needs choices or a text")]
    EmptyAnswer,
    /// The answer is too long.
    #[error(
        "the text has {0} bytes; an answer has at most {ANSWER_BYTES_MAX}. Put the rest into a file and answer with its path"
    )]
    AnswerTooLong(usize),
    /// A choice was not offered.
    #[error(
        "`{choice}` was not offered; offered are: {offered}. Something else can be answered as free text"
    )]
    NotOffered {
        /// The choice.
        choice: String,
        /// The offered options.
        offered: String,
    },
    /// A choice is present, but no option was offered.
    #[error("the question offers no options; answer with a text")]
    NothingOffered,
    /// More than one choice, although only one is allowed.
    #[error("the question allows one choice, and {0} were given")]
    OneChoice(usize),
}

impl Fault {
    /// Returns the field of the request with the fault.
    #[must_use]
    pub fn field(&self) -> &'static str {
        match self {
            Self::NoText | Self::TextTooLong(_) | Self::EmptyAnswer | Self::AnswerTooLong(_) => {
                "text"
            }
            Self::TooManyOptions(_) | Self::BadOption(_) | Self::DoubleOption(_) => "options",
            Self::MultiWithoutOptions => "multi",
            Self::NotOffered { .. } | Self::NothingOffered | Self::OneChoice(_) => "choices",
        }
    }
}

impl Wording {
    /// Checks that the question can be asked.
    pub fn check(&self) -> Result<(), Fault> {
        if self.text.trim().is_empty() {
            return Err(Fault::NoText);
        }
        if self.text.len() > QUESTION_BYTES_MAX {
            return Err(Fault::TextTooLong(self.text.len()));
        }
        if self.options.len() > QUESTION_OPTIONS_MAX {
            return Err(Fault::TooManyOptions(self.options.len()));
        }
        for (place, option) in self.options.iter().enumerate() {
            let chars = option.chars().count();
            if option.trim().is_empty()
                || chars > OPTION_CHARS_MAX
                || option.contains(char::is_control)
            {
                return Err(Fault::BadOption(
                    option.escape_debug().take(OPTION_CHARS_MAX).collect(),
                ));
            }
            if self.options.iter().take(place).any(|earlier| earlier == option) {
                return Err(Fault::DoubleOption(option.clone()));
            }
        }
        if self.multi && self.options.is_empty() {
            return Err(Fault::MultiWithoutOptions);
        }
        Ok(())
    }

    /// Returns the answer to store: choices in the order of the options, each once.
    pub fn accept(&self, answer: &Answer) -> Result<Answer, Fault> {
        let Answer { choices, text } = answer;
        if choices.is_empty() && text.trim().is_empty() {
            return Err(Fault::EmptyAnswer);
        }
        if text.len() > ANSWER_BYTES_MAX {
            return Err(Fault::AnswerTooLong(text.len()));
        }
        if !choices.is_empty() && self.options.is_empty() {
            return Err(Fault::NothingOffered);
        }
        if let Some(choice) = choices.iter().find(|choice| !self.options.contains(choice)) {
            let choice = choice.escape_debug().take(OPTION_CHARS_MAX).collect();
            return Err(Fault::NotOffered { choice, offered: self.options.join(", ") });
        }
        let chosen: Vec<String> =
            self.options.iter().filter(|option| choices.contains(option)).cloned().collect();
        if chosen.len() > 1 && !self.multi {
            return Err(Fault::OneChoice(chosen.len()));
        }
        Ok(Answer { choices: chosen, text: text.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wording(options: &[&str], multi: bool) -> Wording {
        Wording {
            text: "which?".to_owned(),
            options: options.iter().map(|text| (*text).to_owned()).collect(),
            multi,
        }
    }

    fn answer(choices: &[&str], text: &str) -> Answer {
        Answer {
            choices: choices.iter().map(|text| (*text).to_owned()).collect(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn choices_are_kept_in_the_order_offered_and_once() {
        let asked = wording(&["a", "b", "c"], true);
        assert_eq!(asked.accept(&answer(&["c", "a", "c"], "")), Ok(answer(&["a", "c"], "")));
        assert_eq!(
            wording(&["a"], false).accept(&answer(&["a", "a"], "because")),
            Ok(answer(&["a"], "because"))
        );
    }

    #[test]
    fn free_text_is_always_allowed() {
        assert_eq!(
            wording(&["a"], false).accept(&answer(&[], "neither")),
            Ok(answer(&[], "neither"))
        );
        assert_eq!(wording(&[], false).accept(&answer(&[], "yes")), Ok(answer(&[], "yes")));
    }

    #[test]
    fn an_answer_that_the_question_does_not_allow_is_refused() {
        assert_eq!(
            wording(&["a", "b"], false).accept(&answer(&["a", "b"], "")),
            Err(Fault::OneChoice(2))
        );
        assert!(matches!(
            wording(&["a"], true).accept(&answer(&["z"], "")),
            Err(Fault::NotOffered { .. })
        ));
        assert_eq!(wording(&[], false).accept(&answer(&["a"], "")), Err(Fault::NothingOffered));
        assert_eq!(wording(&["a"], false).accept(&answer(&[], " \n")), Err(Fault::EmptyAnswer));
        let long = "x".repeat(ANSWER_BYTES_MAX + 1);
        assert_eq!(
            wording(&[], false).accept(&answer(&[], &long)),
            Err(Fault::AnswerTooLong(long.len()))
        );
    }

    #[test]
    fn a_question_that_cannot_be_asked_is_refused() {
        assert_eq!(wording(&[], false).check(), Ok(()));
        assert_eq!(
            Wording { text: " ".to_owned(), ..wording(&[], false) }.check(),
            Err(Fault::NoText)
        );
        assert_eq!(wording(&[], true).check(), Err(Fault::MultiWithoutOptions));
        assert_eq!(wording(&["a", "a"], false).check(), Err(Fault::DoubleOption("a".to_owned())));
        for bad in ["", " ", "a\nb", &"x".repeat(OPTION_CHARS_MAX + 1)] {
            assert!(matches!(wording(&[bad], false).check(), Err(Fault::BadOption(_))), "{bad:?}");
        }
        let many: Vec<String> =
            (0..=QUESTION_OPTIONS_MAX).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(wording(&many, false).check(), Err(Fault::TooManyOptions(many.len())));
    }
}
