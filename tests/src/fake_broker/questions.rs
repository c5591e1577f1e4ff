//! Questions as the bridge sees them: asked once per request id, answered while they are open.

use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::question_service_server::QuestionService;
use hive_proto::v1::recipient::To;
use hive_proto::v1::*;
use tonic::{Request, Response, Status, async_trait};

use super::services::Service;
use super::{Rpc, State, seconds_on};

/// Who is asked.
fn target(to: Option<&Recipient>) -> String {
    match to.and_then(|to| to.to.as_ref()) {
        Some(To::Agent(name)) => name.clone(),
        Some(To::Operator(_) | To::Parent(_)) => "operator".to_owned(),
        Some(To::Everyone(_)) | None => String::new(),
    }
}

impl State {
    fn ask(&mut self, asked: AskQuestionRequest) -> AskQuestionResponse {
        let target = target(asked.to.as_ref());
        let AskQuestionRequest { request_id, to: _, text, options, multi, ttl } = asked;
        let known = self.receipts.get(&request_id).copied();
        let id = known.unwrap_or_else(|| self.next_id());
        self.receipts.insert(request_id, id);
        if known.is_none() {
            let deadline_time = ttl.map(|ttl| seconds_on(ttl.seconds));
            let question = Question {
                id,
                asker: "alice".to_owned(),
                target,
                text,
                options,
                multi,
                deadline_time,
                ..Question::default()
            };
            self.put(question);
        }
        AskQuestionResponse {
            question: self.question(id).cloned(),
            already_asked: self.already_done,
        }
    }

    /// Puts an open question.
    pub fn put(&mut self, mut question: Question) {
        question.set_state(QuestionState::Open);
        self.questions.push(question);
    }

    /// The question with this id.
    #[must_use]
    pub fn question(&self, id: u64) -> Option<&Question> {
        self.questions.iter().find(|question| question.id == id)
    }

    fn answer(
        &mut self,
        answered: AnswerQuestionRequest,
    ) -> Result<AnswerQuestionResponse, Status> {
        let AnswerQuestionRequest { request_id, question_id, choices, text } = answered;
        let again = self.receipts.insert(request_id, question_id).is_some();
        let Some(question) = self.questions.iter_mut().find(|question| question.id == question_id)
        else {
            return Err(status::refusal(
                Reason::QuestionNotFound,
                format!("there is no question {question_id}"),
                None,
            ));
        };
        if question.state() != QuestionState::Open && !again {
            return Err(status::refusal(
                Reason::QuestionClosed,
                format!("question {question_id} is closed"),
                None,
            ));
        }
        question.set_state(QuestionState::Answered);
        question.answer = Some(Answer { choices, text });
        Ok(AnswerQuestionResponse { question: Some(question.clone()) })
    }
}

#[async_trait]
impl QuestionService for Service {
    type WatchQuestionsStream = tokio_stream::Empty<Result<WatchQuestionsResponse, Status>>;

    async fn ask_question(
        &self,
        request: Request<AskQuestionRequest>,
    ) -> Result<Response<AskQuestionResponse>, Status> {
        let asked = request.get_ref().clone();
        self.take(&request, Rpc::Ask, |state| Ok(state.ask(asked))).await
    }

    async fn answer_question(
        &self,
        request: Request<AnswerQuestionRequest>,
    ) -> Result<Response<AnswerQuestionResponse>, Status> {
        let answered = request.get_ref().clone();
        self.take(&request, Rpc::Answer, |state| state.answer(answered)).await
    }

    async fn cancel_question(
        &self,
        _: Request<CancelQuestionRequest>,
    ) -> Result<Response<CancelQuestionResponse>, Status> {
        Err(Status::unimplemented("CancelQuestion"))
    }

    async fn get_question(
        &self,
        _: Request<GetQuestionRequest>,
    ) -> Result<Response<GetQuestionResponse>, Status> {
        Err(Status::unimplemented("GetQuestion"))
    }

    async fn list_questions(
        &self,
        _: Request<ListQuestionsRequest>,
    ) -> Result<Response<ListQuestionsResponse>, Status> {
        Err(Status::unimplemented("ListQuestions"))
    }

    async fn watch_questions(
        &self,
        _: Request<WatchQuestionsRequest>,
    ) -> Result<Response<Self::WatchQuestionsStream>, Status> {
        Err(Status::unimplemented("WatchQuestions"))
    }
}
