//! `answer`: closes a question to the agent.

use hive_core::limits::ANSWER_BYTES_MAX;
use hive_proto::v1::AnswerQuestionRequest;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Tool, adds, schema};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::render::one_line;

pub(super) struct Answer;

/// The arguments of `answer`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Id of the question.
    #[serde(deserialize_with = "schema::id")]
    #[schemars(range(min = 1))]
    id: u64,
    /// Free text; alone or beside choices.
    #[serde(default)]
    #[schemars(with = "String", length(max = ANSWER_BYTES_MAX))]
    answer: Option<String>,
    /// Offered options, word for word.
    #[serde(default, deserialize_with = "schema::texts")]
    #[schemars(with = "Vec<String>")]
    choices: Option<Vec<String>>,
}

impl Tool for Answer {
    const NAME: &'static str = "answer";
    const GROUP: Group = Group::Messaging;
    const DESCRIPTION: &'static str = "Answer a question that was put to you, once and for good. Give answer, choices or both; a send does not close a question.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        // A question takes one answer: a second one is refused and changes nothing.
        adds(true)
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let Input { id, answer, choices } = input;
        let (text, choices) = (answer.unwrap_or_default(), choices.unwrap_or_default());
        if text.trim().is_empty() && choices.is_empty() {
            return Err(Refusal::arguments(
                "there is no answer: give answer (a text), choices (of the options), or both",
            ));
        }
        let request = AnswerQuestionRequest {
            request_id: call.request_id.clone(),
            question_id: id,
            choices,
            text,
            // An agent approves nothing.
            diff_digest: String::new(),
        };
        let answered = broker
            .call(call, request, |channel, request| async move {
                QuestionServiceClient::new(channel).answer_question(request).await
            })
            .await?;
        let asker = answered
            .question
            .map(|question| one_line(&question.asker, 63))
            .filter(|asker| !asker.is_empty());
        Ok(format!("Answered question #{id}; {} is told.", asker.as_deref().unwrap_or("its asker")))
    }
}
