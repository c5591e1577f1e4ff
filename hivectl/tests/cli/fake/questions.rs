//! Questions, as the script has them. Some targets stand for a refusal or an outcome.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hive_core::reason::Reason;
use hive_proto::status::{bad_field, refusal};
use hive_proto::v1::question_service_server::QuestionService;
use hive_proto::v1::recipient::To;
use hive_proto::v1::*;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::{Stream, StreamExt as _, iter, pending};
use tonic::{Request, Response, Status};

use super::{Answer, Script, open, refused};

impl Script {
    fn question(&self, id: u64) -> Result<Question, Status> {
        let question = open::questions().into_iter().find(|question| question.id == id);
        let mut question = question.ok_or_else(|| {
            refusal(Reason::QuestionNotFound, format!("there is no question {id}"), None)
        })?;
        if id == 30 && self.was_away.load(Ordering::SeqCst) {
            question = open::answered(question, &["yes"], "");
        }
        Ok(question)
    }

    fn open_question(&self, id: u64) -> Result<Question, Status> {
        let question = self.question(id)?;
        if question.state() == QuestionState::Open {
            return Ok(question);
        }
        Err(refusal(
            Reason::QuestionClosed,
            format!("question {id} has its outcome: answered by uid 1000 (eve)"),
            None,
        ))
    }
}

/// What becomes of a question that was just asked, by whom it was asked.
fn outcome(id: u64) -> Option<Question> {
    let question = Question {
        id,
        asker: "operator".to_owned(),
        target: "ada".to_owned(),
        text: "Done?".to_owned(),
        ..open::deploy()
    };
    match id {
        40 => Some(Question {
            operator_override: false,
            ..open::answered(question, &["yes"], "in an hour\nor two")
        }),
        41 => Some(Question {
            closed_by: String::new(),
            ..open::closed(question, QuestionState::Expired, None)
        }),
        42 => Some(Question {
            closed_by: String::new(),
            ..open::closed(question, QuestionState::Cancelled, None)
        }),
        _ => None,
    }
}

fn told(question: Question) -> Result<WatchQuestionsResponse, Status> {
    Ok(WatchQuestionsResponse { question: Some(question), snapshot_complete: false })
}

fn complete() -> Result<WatchQuestionsResponse, Status> {
    Ok(WatchQuestionsResponse { question: None, snapshot_complete: true })
}

type Watch = Pin<Box<dyn Stream<Item = Result<WatchQuestionsResponse, Status>> + Send>>;

#[tonic::async_trait]
impl QuestionService for Script {
    async fn ask_question(
        &self,
        request: Request<AskQuestionRequest>,
    ) -> Answer<AskQuestionResponse> {
        let AskQuestionRequest { request_id, to, text, options, multi, ttl } = request.into_inner();
        let Some(To::Agent(target)) = to.and_then(|to| to.to) else {
            return Err(Status::internal("an agent is asked"));
        };
        let ttl = ttl.map_or(0, |ttl| ttl.seconds);
        self.change(
            &request_id,
            format!("ask {target}: {text:?}, options {options:?}, multi {multi}, ttl {ttl} s"),
        );
        let id = match target.as_str() {
            "bbo" => {
                return Err(refusal(
                    Reason::AgentNotFound,
                    "there is no agent `bbo`; did you mean `bob`?",
                    None,
                ));
            }
            "walled" => {
                return refused(Reason::RecipientNotAllowed, "you may not ask `walled`");
            }
            "greedy" => {
                return Err(refusal(
                    Reason::QuestionLimit,
                    "50 of your questions are open; that is the most",
                    None,
                ));
            }
            "draining" => {
                return Err(refusal(
                    Reason::Draining,
                    "the broker is shutting down",
                    Some(Duration::from_secs(2)),
                ));
            }
            "late" => 41,
            "fickle" => 42,
            "mute" => 43,
            _ => 40,
        };
        let asked = Question {
            id,
            asker: "operator".to_owned(),
            target,
            text,
            options,
            multi,
            turn_id: 0,
            ..open::deploy()
        };
        Ok(Response::new(AskQuestionResponse { question: Some(asked), already_asked: false }))
    }

    async fn answer_question(
        &self,
        request: Request<AnswerQuestionRequest>,
    ) -> Answer<AnswerQuestionResponse> {
        let AnswerQuestionRequest { request_id, question_id, choices, text } = request.into_inner();
        self.change(&request_id, format!("answer {question_id}: {choices:?}, {text:?}"));
        let question = self.open_question(question_id)?;
        if let Some(choice) = choices.iter().find(|choice| !question.options.contains(choice)) {
            return Err(bad_field(
                "choices",
                format!("`{choice}` was not offered; offered are: {}", question.options.join(", ")),
            ));
        }
        let choices: Vec<&str> = choices.iter().map(String::as_str).collect();
        Ok(Response::new(AnswerQuestionResponse {
            question: Some(open::answered(question, &choices, &text)),
        }))
    }

    async fn cancel_question(
        &self,
        request: Request<CancelQuestionRequest>,
    ) -> Answer<CancelQuestionResponse> {
        let CancelQuestionRequest { request_id, question_id } = request.into_inner();
        self.change(&request_id, format!("cancel question {question_id}"));
        let question =
            open::closed(self.open_question(question_id)?, QuestionState::Cancelled, None);
        Ok(Response::new(CancelQuestionResponse { question: Some(question) }))
    }

    async fn get_question(
        &self,
        request: Request<GetQuestionRequest>,
    ) -> Answer<GetQuestionResponse> {
        Ok(Response::new(GetQuestionResponse {
            question: Some(self.question(request.into_inner().question_id)?),
        }))
    }

    /// Short pages, so that paging is used.
    async fn list_questions(
        &self,
        request: Request<ListQuestionsRequest>,
    ) -> Answer<ListQuestionsResponse> {
        let ListQuestionsRequest { page_size, page_token, states, asker, target } =
            request.into_inner();
        let mut all = if self.empty { Vec::new() } else { open::questions() };
        all.extend((asker == "clock").then(open::pressing));
        all.retain(|question| states.is_empty() || states.contains(&question.state));
        all.retain(|question| {
            (asker.is_empty() || question.asker == asker)
                && (target.is_empty() || question.target == target)
        });
        let first = page_token.parse().unwrap_or(0_usize);
        let next = first + usize::try_from(page_size.min(2)).expect("few");
        let next_page_token = if next < all.len() { next.to_string() } else { String::new() };
        let questions = all.into_iter().skip(first).take(next - first).collect();
        Ok(Response::new(ListQuestionsResponse { questions, next_page_token }))
    }

    type WatchQuestionsStream = Watch;

    async fn watch_questions(&self, request: Request<WatchQuestionsRequest>) -> Answer<Watch> {
        let WatchQuestionsRequest { asker: _, target, question_id } = request.into_inner();
        if question_id != 0 {
            let open =
                Question { id: question_id, state: QuestionState::Open.into(), ..open::deploy() };
            let steps = [told(open), complete()].into_iter().chain(outcome(question_id).map(told));
            let live = BroadcastStream::new(self.questions.subscribe());
            let _ = self.watched.send(());
            let live = live.map(|question| match question.expect("the test sends few") {
                Some(question) => told(question),
                None => Err(Status::unavailable("transport lost")),
            });
            return Ok(Response::new(Box::pin(iter(steps).chain(live).chain(pending()))));
        }
        let mut snapshot = if self.empty { Vec::new() } else { open::questions() };
        snapshot.retain(|question| {
            question.state() == QuestionState::Open
                && (target.is_empty() || question.target == target)
        });
        snapshot.retain(|question| question.id != 30 || !self.was_away.load(Ordering::SeqCst));
        let live = BroadcastStream::new(self.questions.subscribe()).map(|question| match question
            .expect("the test sends few")
        {
            Some(question) => told(question),
            None => Err(Status::unavailable("transport lost")),
        });
        let _ = self.watched.send(());
        Ok(Response::new(Box::pin(
            iter(snapshot.into_iter().map(told).chain([complete()])).chain(live),
        )))
    }
}
