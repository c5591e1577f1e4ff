//! A harness that only speaks the contract: it attaches, begins turns and ends them as the test
//! says.

use hive_proto::in_session;
use hive_proto::v1::attach_response::Step;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use hive_proto::v1::{
    AttachRequest, AttachResponse, BeginTurnRequest, BeginTurnResponse, EndTurnResponse, TurnKind,
    TurnOutcome,
};
use tonic::Streaming;
use tonic::transport::Channel;

use super::{process_token, request, soon};

/// A harness that is attached for as long as this lives.
#[derive(Debug)]
pub struct Harness {
    pub session: String,
    turns: TurnServiceClient<Channel>,
    _stream: Streaming<AttachResponse>,
}

impl Harness {
    /// Attaches one to the agent of this socket.
    pub async fn attach(channel: &Channel, take_over: bool) -> Self {
        let mut turns = TurnServiceClient::new(channel.clone());
        let attach = AttachRequest { take_over, revision: "test".to_owned() };
        let attached = soon("an answer to Attach", turns.attach(attach)).await;
        let mut stream = attached.expect("it may attach").into_inner();
        let first = soon("the first step", stream.message()).await.expect("a step");
        match first.and_then(|first| first.step) {
            Some(Step::Attached(first)) => {
                Self { session: first.session_token, turns, _stream: stream }
            }
            step => panic!("{step:?}"),
        }
    }

    /// Begins the turn for which mail waits; its beginning and its process.
    pub async fn begin(&self) -> (BeginTurnResponse, String) {
        let process_token = process_token();
        (self.begin_as(&process_token).await, process_token)
    }

    /// Begins a turn for a process with this token.
    pub async fn begin_as(&self, process_token: &str) -> BeginTurnResponse {
        let process_token = process_token.to_owned();
        let request = BeginTurnRequest { process_token, ..request::begin() };
        let request = in_session(request, &self.session);
        let begun = soon("a turn begins", self.turns.clone().begin_turn(request)).await;
        begun.expect("it may begin").into_inner()
    }

    /// Begins a turn without a delivery, for a process with this token; its id.
    pub async fn open(&self, process_token: &str) -> u64 {
        let request = BeginTurnRequest {
            process_token: process_token.to_owned(),
            kind: TurnKind::Continue.into(),
            ..request::begin()
        };
        let request = in_session(request, &self.session);
        let begun = soon("a turn begins", self.turns.clone().begin_turn(request)).await;
        begun.expect("it may begin").into_inner().turn.expect("a turn").id
    }

    pub async fn end(&self, turn_id: u64, outcome: TurnOutcome) -> EndTurnResponse {
        let request = in_session(request::end_turn(turn_id, outcome), &self.session);
        let ended = soon("a turn ends", self.turns.clone().end_turn(request)).await;
        ended.expect("it may end").into_inner()
    }
}
