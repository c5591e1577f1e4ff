//! The extra traffic of an attached harness made of calls: commands, which it closes sooner or
//! later, and requests for a login dialogue; and the operator's side of both.
//!
//! Invariant: a dialogue is opened and ended, or broken off, and changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hive_history::{Answer, Op, Reply};
use hive_proto::in_session;
use hive_proto::v1::admin_service_client::AdminServiceClient;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use hive_proto::v1::{self, attach_response, login_request, login_response, serve_login_request};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::cast::CALLED;
use super::dice::Dice;
use super::other::parts;
use super::perform::Carried;
use super::players::Table;
use super::reads;
use super::voice::Voice;

/// Time for which a party in a dialogue waits for the other side.
const WORD_WAIT: Duration = Duration::from_millis(200);
/// The exit code that identifies a dialogue's end.
const EXIT_CODE: i32 = 7;
/// The output that a dialogue shows.
const OUTPUT: &[u8] = b"Log in?";

/// A task that reads an attachment; it ends with this value.
#[derive(Debug)]
pub(crate) struct Listening(tokio::task::JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reads an attachment. A command in `closed` before the harness requested it must not come again.
pub(crate) fn listen(
    mut stream: Streaming<v1::AttachResponse>,
    voice: &Voice,
    session: &str,
    table: &Arc<Table>,
    closed: BTreeSet<u64>,
    mut dice: Dice,
) -> Listening {
    let (voice, session, table) = (voice.clone(), session.to_owned(), Arc::clone(table));
    Listening(tokio::spawn(async move {
        while let Ok(Some(response)) = stream.message().await {
            match response.step {
                Some(attach_response::Step::Command(command)) => {
                    table.facts.heard(command.id, &closed);
                    // An open command is repeated at the next attachment.
                    if dice.chance(70) {
                        close(&voice, &session, &table, command.id, dice.chance(30)).await;
                    }
                }
                Some(attach_response::Step::LoginWanted(wanted)) => {
                    // A dialogue may break off.
                    drop(
                        serve_login(&voice, &session, &table, wanted.login_id, dice.chance(70))
                            .await,
                    );
                }
                Some(
                    attach_response::Step::Attached(_)
                    | attach_response::Step::AgentChanged(_)
                    | attach_response::Step::KinChanged(_),
                )
                | None => {}
            }
        }
    }))
}

/// Closes a command as refused or done.
async fn close(voice: &Voice, session: &str, table: &Table, command: u64, refuse: bool) {
    let content = parts(&[session, &command.to_string(), if refuse { "not now" } else { "" }]);
    let op = Op::Other { rpc: "AckCommand".to_owned(), content };
    if let Answer::Ok(_) = voice.once("", &op, &Carried::default()).await {
        table.facts.close(command);
    }
}

/// Plays the harness's side of a dialogue: sends output, waits for input, and ends.
async fn serve_login(
    voice: &Voice,
    session: &str,
    table: &Table,
    login_id: u64,
    to_its_end: bool,
) -> Result<(), Status> {
    use serve_login_request::Step;
    let (sender, requests) = mpsc::channel(4);
    let start = v1::ServeLoginStart { login_id };
    for step in [Step::Start(start), Step::Output(OUTPUT.to_vec())] {
        // The channel has room for these.
        drop(sender.try_send(v1::ServeLoginRequest { step: Some(step) }));
    }
    let requests = in_session(ReceiverStream::new(requests), session);
    let serving = TurnServiceClient::new(voice.channel()).serve_login(requests).await;
    let mut typed = serving?.into_inner();
    table.facts.answered("ServeLogin");
    if let Ok(word) = tokio::time::timeout(WORD_WAIT, typed.message()).await {
        word?;
    }
    if to_its_end {
        let end = v1::LoginEnd { exit_code: EXIT_CODE, ..v1::LoginEnd::default() };
        drop(sender.send(v1::ServeLoginRequest { step: Some(Step::End(end)) }).await);
        drop(tokio::time::timeout(WORD_WAIT, typed.message()).await);
    }
    Ok(())
}

/// Plays the operator's side of a dialogue: reads the output, types input, and waits for the end,
/// or breaks off.
pub(crate) async fn login(voice: &Voice, table: &Table, dice: &mut Dice) {
    use login_request::Step;
    let (sender, requests) = mpsc::channel(4);
    let start = v1::LoginStart { agent: CALLED.to_owned(), terminal: None };
    for step in [Step::Start(start), Step::Input(b"yes\n".to_vec())] {
        drop(sender.try_send(v1::LoginRequest { step: Some(step) }));
    }
    let mut admin = AdminServiceClient::new(voice.channel());
    let Ok(Ok(opened)) =
        tokio::time::timeout(WORD_WAIT, admin.login(ReceiverStream::new(requests))).await
    else {
        return;
    };
    table.facts.answered("Login");
    let mut said = opened.into_inner();
    if dice.chance(30) {
        return;
    }
    while let Ok(Ok(Some(response))) = tokio::time::timeout(2 * WORD_WAIT, said.message()).await {
        match response.step {
            Some(login_response::Step::Output(output)) => {
                table.facts.hold(output == OUTPUT, || format!("a login dialogue shows {output:?}"));
            }
            Some(login_response::Step::End(end)) => {
                let own = end.exit_code == EXIT_CODE || !end.error.is_empty();
                table.facts.hold(own && !end.logged_in, || {
                    format!("a login dialogue ended otherwise than it did: {end:?}")
                });
            }
            None => table.facts.wrong("a step of a login dialogue is nothing".to_owned()),
        }
    }
}

/// Sends a harness a command other than cancel.
pub(crate) async fn give(voice: &Voice, table: &Table, dice: &mut Dice, agent: &str) {
    let word = *dice.pick(&["new session", "model", "restart", "compact"]);
    let model =
        if word == "model" { format!("model-{}", dice.below(1_000)) } else { String::new() };
    let op = Op::Other { rpc: "SendCommand".to_owned(), content: parts(&[agent, word, &model]) };
    let Answer::Ok(Reply::Done(id)) = voice.insist(&op, &Carried::default()).await else { return };
    if agent == CALLED {
        table.facts.given(id.parse().expect("a command's id is a number"));
    }
    // Only this operator sets models.
    if word == "model"
        && let Ok(read) = reads::agent(voice, agent).await
    {
        table.facts.hold(read.model == model, || {
            format!("{agent} was set to {model}, and has {}", read.model)
        });
    }
}
