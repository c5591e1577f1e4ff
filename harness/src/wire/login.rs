//! The stream of a login dialogue.

use std::time::Duration;

use hive_proto::handshake::Channel;
use hive_proto::in_session;
use hive_proto::v1;
use hive_proto::v1::serve_login_request::Step;
use hive_proto::v1::serve_login_response::Step as ResponseStep;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::session::terminal;
use crate::turn::input::Terminal;

/// Maximum steps that wait for the broker.
const QUEUE_MAX: usize = 16;

/// The end of a dialogue.
#[derive(Clone, Debug, Default)]
pub struct LoginEnd {
    /// Whether claude has a login now.
    pub logged_in: bool,
    /// Why the dialogue did not take place or broke off; empty if claude ended it.
    pub error: String,
    /// claude's exit code; 0 if it did not run.
    pub exit_code: i32,
}

#[derive(Clone, Debug)]
pub enum OperatorAction {
    /// Input of the terminal.
    Input(Vec<u8>),
    /// A new size of the terminal.
    Resize(Terminal),
}

/// The connection with the operator.
#[derive(Debug)]
pub struct Dialogue {
    to_operator: mpsc::Sender<v1::ServeLoginRequest>,
    from_operator: Streaming<v1::ServeLoginResponse>,
}

impl Dialogue {
    /// Connects to the operator of this dialogue.
    pub async fn open(
        channel: Channel,
        session_token: String,
        login_id: u64,
    ) -> Result<Self, Status> {
        let (to_operator, steps) = mpsc::channel(QUEUE_MAX);
        let start = request(Step::Start(v1::ServeLoginStart { login_id }));
        // The receiver is in this function, and its queue is empty.
        let _ = to_operator.try_send(start);
        let requests = in_session(ReceiverStream::new(steps), &session_token);
        let answer = TurnServiceClient::new(channel).serve_login(requests).await?;
        Ok(Self { to_operator, from_operator: answer.into_inner() })
    }

    /// Shows the operator what the dialogue wrote; returns whether the operator is there.
    pub async fn show(&self, output: &[u8]) -> bool {
        self.to_operator.send(request(Step::Output(output.to_vec()))).await.is_ok()
    }

    /// Waits for an action of the operator; `None`: the operator is gone, or the action is unknown
    /// to this version.
    pub async fn next(&mut self) -> Option<OperatorAction> {
        Some(match self.from_operator.message().await.ok().flatten()?.step? {
            ResponseStep::Input(bytes) => OperatorAction::Input(bytes),
            ResponseStep::Terminal(size) => OperatorAction::Resize(terminal(size)),
        })
    }

    /// Sends the end, and waits until the broker has it. A stream that is dropped earlier
    /// would lose the end.
    pub async fn end(self, end: LoginEnd, patience: Duration) {
        let Self { to_operator, mut from_operator } = self;
        let LoginEnd { logged_in, error, exit_code } = end;
        let end = v1::LoginEnd { logged_in, error, exit_code };
        if to_operator.send(request(Step::End(end))).await.is_ok() {
            drop(to_operator);
            let confirmed = async { while let Ok(Some(_)) = from_operator.message().await {} };
            // A broker that does not confirm may be gone.
            let _ = tokio::time::timeout(patience, confirmed).await;
        }
    }
}

fn request(step: Step) -> v1::ServeLoginRequest {
    v1::ServeLoginRequest { step: Some(step) }
}
