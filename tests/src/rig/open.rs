//! Open items between agents, by short calls of a [`Client`]: questions, reminders, schedules,
//! loose ends.

use hive_proto::v1::create_reminder_request::Due;
use hive_proto::v1::loose_end_service_client::LooseEndServiceClient;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::reminder_service_client::ReminderServiceClient;
use hive_proto::v1::schedule_service_client::ScheduleServiceClient;
use hive_proto::v1::watch_questions_response::Step;
use hive_proto::v1::{
    AnswerQuestionRequest, AskQuestionRequest, Delivery, DeliveryState, GetQuestionRequest,
    ListLooseEndsRequest, ListQuestionsRequest, ListRemindersRequest, ListSchedulesRequest,
    LooseEnd, PublishedLooseEnd, Question, QuestionState, Reminder, ReminderState,
    ReplaceLooseEndsRequest, Schedule, ScheduleState, WatchQuestionsRequest,
};
use prost_types::Timestamp;
use tonic::Status;

use super::{Client, fresh_id, request, soon};

impl Client {
    fn question_service(&self) -> QuestionServiceClient<tonic::transport::Channel> {
        QuestionServiceClient::new(self.channel())
    }

    /// Asks a question; its id.
    pub async fn ask(&self, target: &str, text: &str) -> u64 {
        self.question_of(request::ask(target, text)).await
    }

    /// Asks by this request; the question's id.
    pub async fn question_of(&self, request: AskQuestionRequest) -> u64 {
        let asked = self.question_service().ask_question(self.request(request)).await;
        asked.expect("the question is accepted").into_inner().question.expect("a question").id
    }

    pub async fn withdraw(&self, question: u64) {
        let request = self.request(request::withdraw(question));
        self.question_service().cancel_question(request).await.expect("it is withdrawn");
    }

    /// Answers a question with a text; the question as it is then, or the refusal.
    pub async fn try_answer(
        &self,
        request_id: &str,
        question: u64,
        text: &str,
    ) -> Result<Question, Status> {
        let request = AnswerQuestionRequest {
            request_id: request_id.to_owned(),
            ..request::answer(question, text)
        };
        let answered = self.question_service().answer_question(self.request(request)).await?;
        Ok(answered.into_inner().question.expect("a question"))
    }

    pub async fn answer(&self, question: u64, text: &str) {
        self.try_answer(&fresh_id(), question, text).await.expect("the question is answered");
    }

    pub async fn question(&self, id: u64) -> Question {
        let found = self
            .question_service()
            .get_question(self.request(GetQuestionRequest { question_id: id }))
            .await;
        found.expect("the question is found").into_inner().question.expect("a question")
    }

    /// All questions that the caller may see, oldest first.
    pub async fn questions(&self) -> Vec<Question> {
        let request = ListQuestionsRequest { page_size: 500, ..ListQuestionsRequest::default() };
        let listed = self.question_service().list_questions(self.request(request)).await;
        let mut questions = listed.expect("questions are listed").into_inner().questions;
        questions.reverse();
        questions
    }

    /// Waits until this agent, or the operator, has an open question, and returns it.
    pub async fn asked(&self, target: &str) -> Question {
        let request =
            WatchQuestionsRequest { target: target.to_owned(), ..WatchQuestionsRequest::default() };
        self.seen(request, &format!("{target} is asked"), QuestionState::Open).await
    }

    /// Waits until a question is closed; how it is then.
    pub async fn closed(&self, id: u64, state: QuestionState) -> Question {
        let request = WatchQuestionsRequest { question_id: id, ..WatchQuestionsRequest::default() };
        self.seen(request, &format!("question {id} is closed"), state).await
    }

    async fn seen(
        &self,
        request: WatchQuestionsRequest,
        what: &str,
        state: QuestionState,
    ) -> Question {
        let stream = self.question_service().watch_questions(self.request(request)).await;
        let mut stream = stream.expect("questions are watched").into_inner();
        soon(what, async {
            loop {
                let step =
                    stream.message().await.expect("the watch goes on").expect("the watch goes on");
                let questions = match step.step {
                    Some(Step::Snapshot(part)) => part.questions,
                    Some(Step::Batch(batch)) => batch.questions,
                    Some(Step::Progress(_)) | None => Vec::new(),
                };
                let mut questions = questions.into_iter();
                if let Some(question) = questions.find(|question| question.state() == state) {
                    return question;
                }
            }
        })
        .await
    }

    /// Sets a reminder for the agent of this socket.
    pub async fn remind(&self, body: &str, due: Timestamp) -> Reminder {
        let request = request::remind(body, Due::DueTime(due));
        let set =
            ReminderServiceClient::new(self.channel()).create_reminder(self.request(request)).await;
        set.expect("the reminder is set").into_inner().reminder.expect("a reminder")
    }

    /// All reminders of an agent, by id.
    pub async fn reminders(&self, agent: &str) -> Vec<Reminder> {
        let states = [ReminderState::Pending, ReminderState::Fired, ReminderState::Cancelled]
            .map(i32::from)
            .to_vec();
        let request = ListRemindersRequest {
            page_size: 500,
            page_token: String::new(),
            agent: agent.to_owned(),
            states,
        };
        let listed =
            ReminderServiceClient::new(self.channel()).list_reminders(self.request(request)).await;
        listed.expect("reminders are listed").into_inner().reminders
    }

    /// All schedules of an owner, by id, in whatever state.
    pub async fn schedules(&self, owner: &str) -> Vec<Schedule> {
        let states = [ScheduleState::Active, ScheduleState::Paused, ScheduleState::Ended]
            .map(i32::from)
            .to_vec();
        let request = ListSchedulesRequest {
            page_size: 500,
            page_token: String::new(),
            agent: owner.to_owned(),
            states,
        };
        let listed =
            ScheduleServiceClient::new(self.channel()).list_schedules(self.request(request)).await;
        listed.expect("schedules are listed").into_inner().schedules
    }

    /// The loose ends of an agent, by id.
    pub async fn loose_ends(&self, agent: &str) -> Vec<LooseEnd> {
        let request = ListLooseEndsRequest {
            page_size: 500,
            page_token: String::new(),
            agent: agent.to_owned(),
        };
        let listed =
            LooseEndServiceClient::new(self.channel()).list_loose_ends(self.request(request)).await;
        listed.expect("loose ends are listed").into_inner().loose_ends
    }

    /// Publishes a whole set of loose ends, each a key and a text, as a co-process does.
    pub async fn publish(&self, label: &str, set: &[(&str, &str)]) {
        let entry = |(key, text): &(&str, &str)| PublishedLooseEnd {
            key: (*key).to_owned(),
            text: (*text).to_owned(),
        };
        let request = ReplaceLooseEndsRequest {
            request_id: fresh_id(),
            label: label.to_owned(),
            loose_ends: set.iter().map(entry).collect(),
        };
        let set = LooseEndServiceClient::new(self.channel())
            .replace_loose_ends(self.request(request))
            .await;
        set.expect("the set is published");
    }

    /// Everything that is or was in an inbox, whatever its state, by message.
    pub async fn all_deliveries(&self, agent: &str) -> Vec<Delivery> {
        let all: Vec<DeliveryState> =
            (1..=7).filter_map(|number| DeliveryState::try_from(number).ok()).collect();
        let mut deliveries = self.deliveries(agent, &all).await;
        deliveries
            .sort_by_key(|delivery| delivery.message.as_ref().map_or(0, |message| message.id));
        deliveries
    }
}
