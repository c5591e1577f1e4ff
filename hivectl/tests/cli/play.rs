//! An agent that the test plays: its harness, and the claude of its turn.
//!
//! Invariant: it does nothing by itself; orders and login dialogues wait until the test takes them.

use hive_proto::in_session;
use hive_proto::v1::TurnEventStream::Stdout;
use hive_proto::v1::attach_response::Step;
use hive_proto::v1::command::Command as Order;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use hive_proto::v1::{
    AckCommandRequest, AttachRequest, AttachResponse, BeginTurnRequest, EndTurnRequest,
    LoginWanted, ReportTurnEventsRequest, TurnEvent, TurnEventStream, TurnKind, TurnOutcome,
};
use hive_tests::rig::{Client, fresh_id, request, soon};
use tonic::Streaming;
use tonic::transport::Channel;

use super::hive::Hive;

pub(crate) struct Player {
    name: String,
    pub(crate) session: String,
    pub(crate) turns: TurnServiceClient<Channel>,
    steps: Streaming<AttachResponse>,
    /// The open turn, or the last one.
    pub(crate) turn: u64,
    line: u64,
}

impl Player {
    pub(crate) async fn attach(hive: &Hive, name: &str) -> Self {
        Self::attach_again(hive, name, String::new()).await
    }

    /// Attaches again in the same session.
    pub(crate) async fn comes_back(self, hive: &Hive) -> Self {
        let Self { name, session, turn, line, .. } = self;
        Self { turn, line, ..Self::attach_again(hive, &name, session).await }
    }

    async fn attach_again(hive: &Hive, name: &str, session_token: String) -> Self {
        let mut turns = TurnServiceClient::new(hive.client(name).await.channel());
        let revision = "0.1.0".to_owned();
        let attach = in_session(AttachRequest { take_over: false, revision }, &session_token);
        let mut steps = turns.attach(attach).await.expect("it may attach").into_inner();
        match steps.message().await.expect("a step").and_then(|first| first.step) {
            Some(Step::Attached(attached)) => Self {
                name: name.to_owned(),
                session: attached.session_token,
                turns,
                steps,
                turn: 0,
                line: 0,
            },
            step => panic!("{step:?}"),
        }
    }

    /// Begins the turn for which mail waits.
    pub(crate) async fn begin(&mut self) -> &mut Self {
        let process_token = self.token();
        let request = BeginTurnRequest { process_token, ..request::begin() };
        let request = in_session(request, &self.session);
        let begun = soon("a turn begins", self.turns.begin_turn(request)).await;
        self.opened(begun.expect("it may begin").into_inner().turn.expect("a turn").id)
    }

    pub(crate) async fn open(&mut self, kind: TurnKind) -> &mut Self {
        let request =
            BeginTurnRequest { process_token: self.token(), kind: kind.into(), ..request::begin() };
        let request = in_session(request, &self.session);
        let begun = self.turns.begin_turn(request).await.expect("it may begin");
        self.opened(begun.into_inner().turn.expect("a turn").id)
    }

    fn opened(&mut self, turn: u64) -> &mut Self {
        (self.turn, self.line) = (turn, 0);
        self
    }

    fn token(&self) -> String {
        format!("process-token-of-{}", self.name)
    }

    pub(crate) async fn claude(&self, hive: &Hive) -> Client {
        hive.client(&self.name).await.with_process(&self.token())
    }

    pub(crate) async fn print(&mut self, lines: &[(TurnEventStream, &str)]) {
        let mut events = Vec::new();
        for (stream, line) in lines {
            self.line += 1;
            let (stream, line) = (i32::from(*stream), (*line).to_owned());
            events.push(TurnEvent { sequence: self.line, stream, line, time: None });
        }
        let report = ReportTurnEventsRequest { turn_id: self.turn, events };
        let reports = in_session(tokio_stream::once(report), &self.session);
        self.turns.report_turn_events(reports).await.expect("lines are kept");
    }

    pub(crate) async fn say(&mut self, words: &str) {
        let content = serde_json::json!([{ "type": "text", "text": words }]);
        let line = serde_json::json!({ "type": "assistant", "message": { "content": content } });
        self.print(&[(Stdout, &line.to_string())]).await;
    }

    pub(crate) async fn end(&mut self, outcome: TurnOutcome, how: EndTurnRequest) {
        let request = EndTurnRequest {
            request_id: fresh_id(),
            turn_id: self.turn,
            outcome: outcome.into(),
            ..how
        };
        let request = in_session(request, &self.session);
        self.turns.end_turn(request).await.expect("it may end");
    }

    /// Waits for the next order; its id.
    pub(crate) async fn order(&mut self) -> (u64, Order) {
        loop {
            if let Step::Command(command) = self.step().await {
                return (command.id, command.command.expect("an order"));
            }
        }
    }

    /// Closes an order; without an error it is carried out.
    pub(crate) async fn closes(&mut self, command_id: u64, error: &str) {
        let request = AckCommandRequest { command_id, error: error.to_owned() };
        let request = in_session(request, &self.session);
        self.turns.ack_command(request).await.expect("it is closed");
    }

    /// Waits until a login dialogue is wanted.
    pub(crate) async fn login_wanted(&mut self) -> LoginWanted {
        loop {
            if let Step::LoginWanted(wanted) = self.step().await {
                return wanted;
            }
        }
    }

    async fn step(&mut self) -> Step {
        let step = soon("a step", self.steps.message()).await.expect("it stays attached");
        step.and_then(|step| step.step).expect("a step")
    }
}
