//! `ask`: a question to the operator, another agent or the parent.
//!
//! What it is not: a wait. The outcome is a later message.

use hive_core::limits::{QUESTION_BYTES_MAX, QUESTION_OPTIONS_MAX, QUESTION_TTL_MAX};
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::{AskQuestionRequest, AskQuestionResponse, QuestionState};
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Tool, adds, recipient, schema};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::render::{instant, one_line, question_state};

/// The target if none is named.
const DEFAULT_TARGET: &str = "operator";

pub(super) struct Ask;

/// The arguments of `ask`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The question, with all that is needed to answer it.
    #[schemars(length(max = QUESTION_BYTES_MAX))]
    question: String,
    /// Answers to offer, one line each; free text stays possible.
    #[serde(default, deserialize_with = "schema::texts")]
    #[schemars(with = "Vec<String>", length(max = QUESTION_OPTIONS_MAX))]
    options: Option<Vec<String>>,
    /// Several options may be chosen.
    #[serde(default, deserialize_with = "schema::flag")]
    #[schemars(with = "bool")]
    multi: Option<bool>,
    /// Expires after so long; default never.
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = 1, max = QUESTION_TTL_MAX.as_secs()))]
    ttl_seconds: Option<u64>,
    /// `operator` (default), agent name or `<parent>`.
    #[serde(default)]
    #[schemars(with = "String")]
    to: Option<String>,
}

impl Tool for Ask {
    const NAME: &'static str = "ask";
    const GROUP: Group = Group::Messaging;
    const DESCRIPTION: &'static str = "Ask the operator or another agent for a decision or a fact you need. Does not wait: \
        the answer comes to your inbox as a message, so go on with other work or end the turn.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        adds(false)
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let Input { question, options, multi, ttl_seconds, to } = input;
        let to = to
            .map(|to| to.trim().to_owned())
            .filter(|to| !to.is_empty())
            .unwrap_or_else(|| DEFAULT_TARGET.to_owned());
        if to == recipient::EVERYONE {
            return Err(Refusal::arguments(
                "a question goes to one: name an agent, `operator` or `<parent>` in to, not `*`",
            ));
        }
        let request = AskQuestionRequest {
            request_id: call.request_id.clone(),
            to: Some(recipient::parse(&to)),
            text: question,
            options: options.unwrap_or_default(),
            multi: multi.unwrap_or(false),
            ttl: ttl_seconds.map(|seconds| schema::span("ttl_seconds", seconds)).transpose()?,
            effect: None,
        };
        let asked = broker
            .call(call, request, |channel, request| async move {
                QuestionServiceClient::new(channel).ask_question(request).await
            })
            .await?;
        Ok(render(&to, asked))
    }
}

fn render(to: &str, asked: AskQuestionResponse) -> String {
    let AskQuestionResponse { question, already_asked } = asked;
    let question = question.unwrap_or_default();
    let id = question.id;
    if already_asked {
        let state = question.state();
        let next = if state == QuestionState::Open {
            "the answer comes as a message"
        } else {
            "its outcome comes, or came, as a message"
        };
        let state = question_state(state);
        return format!(
            "Not asked again: an earlier attempt of this turn has already asked this as question #{id}, which is {state}; {next}."
        );
    }
    let target = one_line(if question.target.is_empty() { to } else { &question.target }, 63);
    let until = question
        .deadline_time
        .as_ref()
        .map(|time| format!(" (open until {})", instant(time)))
        .unwrap_or_default();
    format!(
        "Asked {target}: question #{id}{until}. The answer comes as a message; do not wait for it idly."
    )
}

#[cfg(test)]
mod tests {
    use hive_proto::v1::Question;

    use super::*;

    fn asked() -> AskQuestionResponse {
        let mut question = Question { id: 7, target: "bob".to_owned(), ..Question::default() };
        question.set_state(QuestionState::Open);
        AskQuestionResponse { question: Some(question), already_asked: false }
    }

    #[test]
    fn the_text_names_the_question_and_its_target() {
        assert_eq!(
            render("<parent>", asked()),
            "Asked bob: question #7. The answer comes as a message; do not wait for it idly."
        );
        let mut bounded = asked();
        let deadline = prost_types::Timestamp { seconds: 1_700_000_000, nanos: 5 };
        bounded.question.as_mut().expect("it has one").deadline_time = Some(deadline);
        assert!(
            render("bob", bounded)
                .starts_with("Asked bob: question #7 (open until 2023-11-14T22:13:20Z). ")
        );
    }

    #[test]
    fn a_question_of_an_earlier_attempt_is_named_with_its_state() {
        let mut again = AskQuestionResponse { already_asked: true, ..asked() };
        let not_again = "Not asked again: an earlier attempt of this turn has already asked this as question #7, which is";
        assert_eq!(
            render("bob", again.clone()),
            format!("{not_again} open; the answer comes as a message.")
        );
        again.question.as_mut().expect("it has one").set_state(QuestionState::Answered);
        assert_eq!(
            render("bob", again),
            format!("{not_again} answered; its outcome comes, or came, as a message.")
        );
    }
}
