//! `hivectl login`: claude's login dialogue for an agent, in this terminal.
//!
//! ```text
//!   terminal  --keys, size-->  broker  -->  harness  -->  claude auth login
//!             <-----output---          <--           <--
//! ```
//!
//! What it is not: a parser of the dialogue. It copies bytes; only the key that leaves is handled
//! here.
//!
//! Invariant: however it ends, the terminal is as it was before.

mod raw;

use std::io::{self, IsTerminal as _};

use clap::Args;
use hive_proto::v1::login_request::Step as Said;
use hive_proto::v1::login_response::Step as Heard;
use hive_proto::v1::{LoginEnd, LoginRequest, LoginResponse, LoginStart, Terminal};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use self::raw::{RESET, Raw};
use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::input::typed;
use crate::output::progress::Progress;
use crate::output::text::visible_line;
use crate::output::{Output, note};

/// Steps that may wait for the broker.
const STEPS_WAITING: usize = 64;
/// Most characters of a terminal's kind; a limit of the contract.
const KIND_CHARS: usize = 64;
/// Ctrl-], as a byte and as terminals report it that encode keys.
const LEAVE: [&[u8]; 2] = [b"\x1d", b"\x1b[93;5u"];

/// Log an agent's claude in, by claude's own dialogue in this terminal.
///
/// `claude auth login` runs in the agent's environment, with its home, on the host of its harness.
/// This terminal shows its output, and sends it all keys, Ctrl-C too. Ctrl-] leaves. The harness
/// must be attached and run no turn. Once claude has a login, the agent's turns continue.
///
/// Needs a terminal. Ends with 0 if claude has a valid login then, and with 1 if not.
#[derive(Args, Debug)]
pub(crate) struct Login {
    /// The agent
    #[arg(add = complete::agents())]
    agent: String,
}

enum Ended {
    /// The harness reported it.
    There(LoginEnd),
    /// The dialogue ended here, for this reason.
    Here(&'static str),
}

impl Login {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let Self { agent } = self;
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Err(Failure::LoginNeedsTerminal);
        }
        let broker = context.broker().await?;
        let (requests, said) = mpsc::channel(STEPS_WAITING);
        let kind = std::env::var("TERM").unwrap_or_default().chars().take(KIND_CHARS).collect();
        let start =
            LoginStart { agent: agent.clone(), terminal: Some(Terminal { kind, ..size() }) };
        requests.try_send(step(Said::Start(start))).expect("there is room for the first one");
        let asking =
            Progress::begin(&visible_line(&format!("waiting for the harness of {agent} ...")));
        // All that can fail at once fails before the terminal is taken.
        let responses = broker.read(broker.admin().login(ReceiverStream::new(said))).await;
        drop(asking);
        let responses = responses?;
        note(&visible_line(&format!("claude's login dialogue for {agent}; Ctrl-] leaves it")));
        match run_in_raw_mode(&mut context.out, requests, responses).await? {
            Ended::There(LoginEnd { logged_in: true, .. }) => {
                context.out.line(&visible_line(&format!("claude is logged in for {agent}")))
            }
            Ended::There(LoginEnd { logged_in: false, error, exit_code }) => {
                let why = if error.is_empty() {
                    format!("its dialogue ended with code {exit_code}")
                } else {
                    error
                };
                Err(Failure::NotLoggedIn { agent, why })
            }
            Ended::Here(why) => Err(Failure::NotLoggedIn { agent, why: why.to_owned() }),
        }
    }
}

/// Runs the dialogue in raw mode, and restores the terminal.
async fn run_in_raw_mode(
    out: &mut Output,
    requests: Sender<LoginRequest>,
    responses: Streaming<LoginResponse>,
) -> Result<Ended, Failure> {
    let mut signals = Signals::listen().map_err(Failure::Input)?;
    let raw = Raw::open().map_err(Failure::Input)?;
    let ended = match typed() {
        Ok(keys) => dialogue(out, keys, &mut signals, requests, responses).await,
        Err(error) => Err(Failure::Input(error)),
    };
    // A terminal that is gone needs no reset, so the error is ignored.
    let _ = out.bytes(RESET);
    drop(raw);
    note("");
    ended
}

/// Signals that end it, and that of a new size. The keys that make signals elsewhere are the
/// dialogue's here.
///
/// Handlers are set before the terminal is in raw mode: a signal without a handler would end the
/// process and leave the terminal as it is.
struct Signals {
    resized: Signal,
    interrupt: Signal,
    terminate: Signal,
    quit: Signal,
    hung_up: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            resized: signal(SignalKind::window_change())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            hung_up: signal(SignalKind::hangup())?,
        })
    }
}

/// Copies bytes between the terminal and the harness.
async fn dialogue(
    out: &mut Output,
    mut keys: Receiver<Vec<u8>>,
    signals: &mut Signals,
    requests: Sender<LoginRequest>,
    mut responses: Streaming<LoginResponse>,
) -> Result<Ended, Failure> {
    loop {
        tokio::select! {
            response = responses.message() => match response {
                Ok(Some(LoginResponse { step: Some(Heard::Output(bytes)) })) => out.bytes(&bytes).map_err(Failure::Output)?,
                Ok(Some(LoginResponse { step: Some(Heard::End(end)) })) => return Ok(Ended::There(end)),
                // A step that this version does not know.
                Ok(Some(LoginResponse { step: None })) => {}
                Ok(None) => return Err(Failure::Incomplete { field: "end" }),
                Err(status) if hive_proto::status::is_transient(&status) => return Err(Failure::LoginLost(Box::new(status))),
                Err(status) => return Err(status.into()),
            },
            typed = keys.recv() => match typed {
                None => return Ok(Ended::Here("the terminal is gone")),
                Some(bytes) if leaves(&bytes) => return Ok(Ended::Here("you left the dialogue")),
                Some(bytes) => send(&requests, Said::Input(bytes)),
            },
            _ = signals.resized.recv() => send(&requests, Said::Terminal(size())),
            _ = signals.hung_up.recv() => return Ok(Ended::Here("the terminal is gone")),
            _ = signals.interrupt.recv() => return Ok(Ended::Here("interrupted")),
            _ = signals.terminate.recv() => return Ok(Ended::Here("interrupted")),
            _ = signals.quit.recv() => return Ok(Ended::Here("interrupted")),
        }
    }
}

/// Sends a step without waiting, so that the person can always leave. If the broker does not read,
/// keys are lost.
fn send(requests: &Sender<LoginRequest>, said: Said) {
    let _ = requests.try_send(step(said));
}

fn leaves(bytes: &[u8]) -> bool {
    LEAVE.iter().any(|key| bytes.windows(key.len()).any(|window| window == *key))
}

fn step(step: Said) -> LoginRequest {
    LoginRequest { step: Some(step) }
}

/// Returns the size of the terminal; 0 if it is unknown.
fn size() -> Terminal {
    let (rows, columns) = rustix::termios::tcgetwinsize(io::stdout())
        .map_or((0, 0), |size| (size.ws_row, size.ws_col));
    Terminal { rows: rows.into(), columns: columns.into(), kind: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_leaves_and_no_other() {
        assert!(leaves(b"\x1d") && leaves(b"abc\x1d") && leaves(b"\x1b[93;5u"));
        for stays in [&b"\x03"[..], b"\x04", b"]", b"\x1b", b"\x1b[93u", b"code#state\r"] {
            assert!(!leaves(stays), "{stays:?}");
        }
    }
}
