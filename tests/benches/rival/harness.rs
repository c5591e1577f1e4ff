//! A harness of Hive at rest: attached, with one `BeginTurn` that waits for mail.
//!
//! What it is not: the rig's harness, whose waits have an end. Invariant: it stays attached for as
//! long as it lives.

use hive_proto::in_session;
use hive_proto::v1::attach_response::Step;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use hive_proto::v1::{AttachRequest, AttachResponse};
use hive_tests::rig::request;
use tonic::Streaming;
use tonic::transport::Channel;

/// A harness.
#[derive(Debug)]
pub(crate) struct Harness {
    session: String,
    turns: TurnServiceClient<Channel>,
    _stream: Box<Streaming<AttachResponse>>,
}

impl Harness {
    pub(crate) async fn attach(channel: Channel) -> anyhow::Result<Self> {
        let mut turns = TurnServiceClient::new(channel);
        let attach = AttachRequest { take_over: false, revision: "bench".to_owned() };
        let mut stream = turns.attach(attach).await?.into_inner();
        match stream.message().await?.and_then(|first| first.step) {
            Some(Step::Attached(first)) => {
                let session = first.session_token;
                Ok(Self { session, turns, _stream: Box::new(stream) })
            }
            step => anyhow::bail!("the harness is not attached: {step:?}"),
        }
    }

    /// Waits until a turn has begun.
    pub(crate) async fn begun(&mut self) -> anyhow::Result<()> {
        self.turns.begin_turn(in_session(request::begin(), &self.session)).await?;
        Ok(())
    }
}
