//! claude's login dialogue for an operator: a pseudo-terminal here, theirs at the other end of the
//! broker.
//!
//! Invariant: the dialogue ends with the operator's connection, leaves no process, and nothing that
//! goes through it is logged.

use std::sync::Arc;
use std::time::Duration;

use hive_proto::v1;
use hive_proto::v1::serve_login_request::Step;
use hive_proto::v1::serve_login_response::Step as Said;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use pty_process::{Command, OwnedReadPty, OwnedWritePty, Size};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::config::Config;
use crate::driver::launch::Runner;
use crate::driver::link::Link;
use crate::driver::look;
use crate::driver::prepare::{self, environment, private, temporary};
use crate::exit::describe;
use crate::process::child;
use crate::turn::output::Signal;

/// How long the dialogue has to end when the operator has gone.
const END_PATIENCE: Duration = Duration::from_secs(3);
/// How long its last words may take when it has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How long nothing may be typed: mail waits as long as the dialogue is open.
const SILENCE_MAX: Duration = Duration::from_secs(15 * 60);
/// Most bytes that wait for the dialogue to read them.
const TYPED_MAX: usize = 64 * 1024;
const LEFT: &str = "the operator left before the dialogue was over";

/// Holds the dialogue to its end; whether claude says that it went well.
pub async fn hold(
    link: Link,
    config: Arc<Config>,
    runner: Runner,
    wanted: v1::LoginWanted,
) -> bool {
    // It has the login of before.
    runner.end_resident().await;
    let terminal = wanted.terminal.unwrap_or_default();
    let Some((said, mut from_operator)) = connect(link, wanted.login_id).await else {
        return false;
    };
    let end = match start(&config, &terminal) {
        Ok((child, read, write)) => {
            talk(&config, &runner, child, (read, write), &said, &mut from_operator).await
        }
        Err(error) => v1::LoginEnd {
            error: format!("claude's login dialogue cannot be started: {error}"),
            ..v1::LoginEnd::default()
        },
    };
    tracing::info!(
        logged_in = end.logged_in,
        exit_code = end.exit_code,
        "the login dialogue is over"
    );
    let went_well = end.logged_in && end.exit_code == 0 && end.error.is_empty();
    last_word(said, from_operator, end).await;
    went_well
}

/// Tells the operator why there is no dialogue now.
pub async fn refuse(link: Link, login_id: u64, words: String) {
    if let Some((said, from_operator)) = connect(link, login_id).await {
        last_word(said, from_operator, v1::LoginEnd { error: words, ..v1::LoginEnd::default() })
            .await;
    }
}

/// Tells the operator, who may have gone, how it ended.
async fn last_word(
    said: ToOperator,
    mut from_operator: Streaming<v1::ServeLoginResponse>,
    end: v1::LoginEnd,
) {
    if said.send(request(Step::End(end))).await.is_ok() {
        drop(said);
        // It is there when the broker ends the stream; whoever lets go of it before takes the word
        // back.
        let _ = timeout(END_PATIENCE, async {
            while let Ok(Some(_)) = from_operator.message().await {}
        })
        .await;
    }
}

type ToOperator = mpsc::Sender<v1::ServeLoginRequest>;

fn request(step: Step) -> v1::ServeLoginRequest {
    v1::ServeLoginRequest { step: Some(step) }
}

async fn connect(
    mut link: Link,
    login_id: u64,
) -> Option<(ToOperator, Streaming<v1::ServeLoginResponse>)> {
    let session_token = link.token().await;
    let (said, stream) = mpsc::channel(16);
    said.send(request(Step::Start(v1::ServeLoginStart { session_token, login_id }))).await.ok()?;
    match TurnServiceClient::new(link.channel.clone())
        .serve_login(ReceiverStream::new(stream))
        .await
    {
        Ok(answer) => Some((said, answer.into_inner())),
        Err(status) => {
            tracing::warn!(reason = %describe(&status), "nobody waits for the login dialogue any more");
            None
        }
    }
}

fn start(
    config: &Config,
    terminal: &v1::Terminal,
) -> Result<(Child, OwnedReadPty, OwnedWritePty), Box<dyn std::error::Error + Send + Sync>> {
    let temporary = temporary(config);
    private(&temporary)?;
    let (pty, pts) = pty_process::open()?;
    pty.resize(size(terminal))?;
    let kind = if terminal.kind.is_empty() { "xterm-256color" } else { &terminal.kind };
    for remark in prepare::guard_home(config)? {
        tracing::warn!("{remark}");
    }
    let program = prepare::program(config)?;
    let child = Command::new(&program.path)
        .args(&program.first)
        .args(["auth", "login"])
        .env_clear()
        .envs(environment(config, &temporary))
        .env("TERM", kind)
        .current_dir(&config.home_dir)
        .kill_on_drop(true)
        .spawn(pts)?;
    let (read, write) = pty.into_split();
    Ok((child, read, write))
}

fn size(terminal: &v1::Terminal) -> Size {
    let bounded = |count: u32, default: u16| {
        u16::try_from(count).ok().filter(|count| *count > 0).unwrap_or(default)
    };
    Size::new(bounded(terminal.rows, 24), bounded(terminal.columns, 80))
}

async fn talk(
    config: &Config,
    runner: &Runner,
    mut child: Child,
    (mut read, mut write): (OwnedReadPty, OwnedWritePty),
    said: &ToOperator,
    from_operator: &mut Streaming<v1::ServeLoginResponse>,
) -> v1::LoginEnd {
    let group = child::group(&child);
    let mut buffer = vec![0; 8 * 1024];
    let mut typed: Vec<u8> = Vec::new();
    let mut silent_until = Instant::now() + SILENCE_MAX;
    let (status, error) = loop {
        tokio::select! {
            // A terminal whose last process has gone fails to be read.
            count = read.read(&mut buffer) => match count {
                Ok(count @ 1..) => {
                    if said.send(request(Step::Output(buffer[..count].to_vec()))).await.is_err() {
                        break (None, LEFT);
                    }
                }
                Ok(0) | Err(_) => break (None, ""),
            },
            // Another process may hold the terminal longer than the dialogue lasts.
            status = child.wait() => break (status.ok(), ""),
            count = write.write(&typed), if !typed.is_empty() => {
                // A terminal that takes nothing any more is noticed above.
                typed.drain(..count.unwrap_or(typed.len()));
            }
            heard = from_operator.message(), if typed.len() < TYPED_MAX => match heard.ok().flatten().and_then(|heard| heard.step) {
                Some(Said::Input(bytes)) => {
                    silent_until = Instant::now() + SILENCE_MAX;
                    typed.extend_from_slice(&bytes);
                }
                Some(Said::Terminal(terminal)) => {
                    let _ = write.resize(size(&terminal));
                }
                None => break (None, LEFT),
            },
            () = sleep_until(silent_until) => break (None, "nothing was typed for 15 minutes"),
        }
    };
    if !error.is_empty() {
        child::send(group, Signal::Terminate);
    }
    let status = match status {
        Some(status) => Some(status),
        None => timeout(END_PATIENCE, child.wait()).await.ok().and_then(Result::ok),
    };
    // What it said last is in the terminal still.
    while let Ok(Ok(count @ 1..)) = timeout(LAST_WORDS, read.read(&mut buffer)).await {
        if said.send(request(Step::Output(buffer[..count].to_vec()))).await.is_err() {
            break;
        }
    }
    child::send(group, Signal::Kill);
    let status = match status {
        Some(status) => Some(status),
        None => child.wait().await.ok(),
    };
    runner.end_strays().await;
    let exit_code = status.and_then(|status| status.code()).unwrap_or(-1);
    v1::LoginEnd { logged_in: look::is_logged_in(config).await, error: error.to_owned(), exit_code }
}
