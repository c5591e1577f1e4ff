//! The login dialogue, as the script has it: it asks for a code, and is content with `right`. Some
//! names stand for a refusal or an end.

use hive_core::reason::Reason;
use hive_proto::status::refusal;
use hive_proto::v1::login_request::Step as Said;
use hive_proto::v1::login_response::Step as Heard;
use hive_proto::v1::*;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Status;

use super::Script;
use super::people::Streaming;

/// What it asks.
pub(crate) const PROMPT: &str = "Paste the code: ";

fn heard(step: Heard) -> Result<LoginResponse, Status> {
    Ok(LoginResponse { step: Some(step) })
}

fn end(logged_in: bool, error: &str, exit_code: i32) -> Result<LoginResponse, Status> {
    heard(Heard::End(LoginEnd { logged_in, error: error.to_owned(), exit_code }))
}

impl Script {
    pub(super) async fn serve_login(
        &self,
        mut said: tonic::Streaming<LoginRequest>,
    ) -> Result<Streaming<LoginResponse>, Status> {
        let Some(LoginRequest { step: Some(Said::Start(start)) }) = said.message().await? else {
            return Err(Status::invalid_argument("the first is `start`"));
        };
        let LoginStart { agent, terminal } = start;
        let Terminal { rows, columns, kind } = terminal.expect("a terminal");
        self.change("", format!("login {agent}: {rows} lines, {columns} columns, {kind}"));
        let (tell, told) = mpsc::unbounded_channel();
        let say = |step| tell.send(step).expect("it is heard");
        match agent.as_str() {
            "bbo" => {
                return Err(refusal(
                    Reason::AgentNotFound,
                    "there is no agent `bbo`; did you mean `bob`?",
                    None,
                ));
            }
            "away" => {
                return Err(refusal(
                    Reason::HarnessOffline,
                    "no harness is attached for `away`",
                    None,
                ));
            }
            "taken" => {
                return Err(refusal(
                    Reason::LoginOpen,
                    "a login dialogue of `taken` is open",
                    None,
                ));
            }
            "busy" => say(end(false, "turn 21 runs; try again when it has ended\u{1b}[2J", 0)),
            "torn" => {
                say(heard(Heard::Output(PROMPT.into())));
                say(Err(Status::unavailable("transport lost")));
            }
            _ => say(heard(Heard::Output(PROMPT.into()))),
        }
        let (changes, watched) = (self.changes(), self.watched.clone());
        tokio::spawn(async move {
            let mut typed = Vec::new();
            while let Ok(Some(LoginRequest { step: Some(step) })) = said.message().await {
                match step {
                    Said::Start(_) => changes("start again".to_owned()),
                    Said::Terminal(Terminal { rows, columns, kind: _ }) => {
                        changes(format!("size: {rows} lines, {columns} columns"));
                    }
                    Said::Input(bytes) => {
                        changes(format!("typed {}", bytes.escape_ascii()));
                        let _ = tell.send(heard(Heard::Output(bytes.clone())));
                        typed.extend(bytes);
                    }
                }
                let _ = watched.send(());
                if typed.ends_with(b"\r") {
                    let right = typed.ends_with(b"right\r");
                    let _ = tell.send(end(right, "", i32::from(!right)));
                }
            }
            changes("the dialogue is over".to_owned());
            let _ = watched.send(());
        });
        Ok(Box::pin(UnboundedReceiverStream::new(told).map(|step| step)))
    }

    /// Writes down what a dialogue hears.
    fn changes(&self) -> impl Fn(String) + Send + Sync + use<> {
        let changes = std::sync::Arc::clone(&self.changes);
        move |change| changes.lock().expect("no panic").push((String::new(), change))
    }
}
