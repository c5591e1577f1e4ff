//! Questions: asking, and waiting for the one outcome.

use crate::error::Error;
use crate::hive::Hive;
use crate::retry::Pauses;
use crate::v1::question_service_client::QuestionServiceClient;
use crate::v1::watch_questions_response::Step;
use crate::v1::{AskQuestionRequest, Question, QuestionState, Recipient, WatchQuestionsRequest};

/// A question that was asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The question, as it was then.
    pub question: Question,
    hive: Hive,
}

impl Hive {
    /// Asks a question, with options to choose from or without; returns when it is on disk.
    pub async fn ask(
        &self,
        to: impl Into<Recipient>,
        text: impl Into<String>,
        options: &[&str],
    ) -> Result<Asked, Error> {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let (to, text) = (Some(to.into()), text.into());
        self.ask_as(AskQuestionRequest { to, text, options, ..Default::default() }).await
    }

    /// Asks a question with all that a request can say.
    pub async fn ask_as(&self, request: AskQuestionRequest) -> Result<Asked, Error> {
        let question = self.call(request).await?.question.unwrap_or_default();
        Ok(Asked { question, hive: self.clone() })
    }
}

impl Asked {
    /// Waits until the question is closed, for as long as that takes; returns it with its outcome:
    /// ANSWERED, EXPIRED or CANCELLED.
    pub async fn outcome(&self) -> Result<Question, Error> {
        let mut pauses = Pauses::new();
        loop {
            match self.watch(&mut pauses).await {
                Err(error) if error.is_transient() => {
                    tokio::time::sleep(pauses.after(&error)).await;
                }
                ended => return ended,
            }
        }
    }

    /// Reads one watch.
    async fn watch(&self, pauses: &mut Pauses) -> Result<Question, Error> {
        let request = WatchQuestionsRequest { question_id: self.question.id, ..Default::default() };
        let mut client = QuestionServiceClient::new(self.hive.channel());
        let mut steps = client.watch_questions(self.hive.request(request)).await?.into_inner();
        while let Some(step) = steps.message().await? {
            *pauses = Pauses::new();
            let questions = match step.step {
                Some(Step::Snapshot(snapshot)) => snapshot.questions,
                Some(Step::Batch(batch)) => batch.questions,
                Some(Step::Progress(_)) | None => continue,
            };
            let closed = |question: &Question| {
                question.id == self.question.id && question.state() != QuestionState::Open
            };
            if let Some(question) = questions.into_iter().find(closed) {
                return Ok(question);
            }
        }
        Err(tonic::Status::unavailable("the broker ended the watch").into())
    }
}
