//! claude's login dialogue for an operator: a pseudo-terminal here, the operator's terminal at the
//! other end of the broker.
//!
//! Invariant: the dialogue ends with the operator's connection, leaves no process, and none of its
//! content is logged.

use std::sync::Arc;
use std::time::Duration;

use pty_process::{Command, OwnedReadPty, OwnedWritePty, Size};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;
use tokio::time::{Instant, sleep_until, timeout};

use crate::config::Config;
use crate::driver::check;
use crate::driver::launch::Runner;
use crate::driver::link::Link;
use crate::driver::prepare::{self, environment, private, temporary};
use crate::exit::describe;
use crate::process::child;
use crate::turn::input::{LoginWanted, Terminal};
use crate::turn::output::Signal;
use crate::wire::login::{Dialogue, LoginEnd, OperatorAction};

/// Maximum time for the dialogue to end when the operator has gone.
const END_PATIENCE: Duration = Duration::from_secs(3);
/// Maximum time for its last output when it has ended.
const OUTPUT_PATIENCE: Duration = Duration::from_millis(200);
/// Longest time without input: mail waits while the dialogue is open.
const SILENCE_MAX: Duration = Duration::from_secs(15 * 60);
/// Maximum bytes of input that wait for the dialogue.
const TYPED_MAX: usize = 64 * 1024;
const LEFT: &str = "the operator left before the dialogue was over";

/// Runs the dialogue to its end; returns whether claude reports success.
pub async fn hold(link: Link, config: Arc<Config>, runner: Runner, wanted: LoginWanted) -> bool {
    // The resident claude has the previous login.
    runner.end_resident().await;
    let Some(mut dialogue) = connect(link, wanted.login_id).await else {
        return false;
    };
    let end = match start(&config, &wanted.terminal) {
        Ok((child, read, write)) => {
            talk(&config, &runner, child, (read, write), &mut dialogue).await
        }
        Err(error) => LoginEnd {
            error: format!("claude's login dialogue cannot be started: {error}"),
            ..LoginEnd::default()
        },
    };
    tracing::info!(
        logged_in = end.logged_in,
        exit_code = end.exit_code,
        "the login dialogue is over"
    );
    let went_well = end.logged_in && end.exit_code == 0 && end.error.is_empty();
    dialogue.end(end, END_PATIENCE).await;
    went_well
}

/// Notifies the operator why there is no dialogue now.
pub async fn refuse(link: Link, login_id: u64, reason: String) {
    if let Some(dialogue) = connect(link, login_id).await {
        dialogue.end(LoginEnd { error: reason, ..LoginEnd::default() }, END_PATIENCE).await;
    }
}

async fn connect(mut link: Link, login_id: u64) -> Option<Dialogue> {
    let session_token = link.token().await;
    let dialogue = Dialogue::open(link.channel.clone(), session_token, login_id).await;
    dialogue
        .inspect_err(|status| {
            tracing::warn!(reason = %describe(status), "no operator waits for the login dialogue any more");
        })
        .ok()
}

fn start(
    config: &Config,
    terminal: &Terminal,
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

fn size(terminal: &Terminal) -> Size {
    let size_or = |count: u32, default: u16| {
        u16::try_from(count).ok().filter(|count| *count > 0).unwrap_or(default)
    };
    Size::new(size_or(terminal.rows, 24), size_or(terminal.columns, 80))
}

async fn talk(
    config: &Config,
    runner: &Runner,
    mut child: Child,
    (mut read, mut write): (OwnedReadPty, OwnedWritePty),
    dialogue: &mut Dialogue,
) -> LoginEnd {
    let group = child::group(&child);
    let mut buffer = vec![0; 8 * 1024];
    let mut typed: Vec<u8> = Vec::new();
    let mut silent_until = Instant::now() + SILENCE_MAX;
    let (status, error) = loop {
        tokio::select! {
            // Reading a terminal fails when its last process has gone.
            count = read.read(&mut buffer) => match count {
                Ok(count @ 1..) => {
                    if !dialogue.show(&buffer[..count]).await {
                        break (None, LEFT);
                    }
                }
                Ok(0) | Err(_) => break (None, ""),
            },
            // Another process may hold the terminal longer than the dialogue lasts.
            status = child.wait() => break (status.ok(), ""),
            count = write.write(&typed), if !typed.is_empty() => {
                // The read above notices a terminal that accepts no more input.
                typed.drain(..count.unwrap_or(typed.len()));
            }
            act = dialogue.next(), if typed.len() < TYPED_MAX => match act {
                Some(OperatorAction::Input(bytes)) => {
                    silent_until = Instant::now() + SILENCE_MAX;
                    typed.extend_from_slice(&bytes);
                }
                Some(OperatorAction::Resize(terminal)) => {
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
    // Its last output may still be in the terminal.
    while let Ok(Ok(count @ 1..)) = timeout(OUTPUT_PATIENCE, read.read(&mut buffer)).await {
        if !dialogue.show(&buffer[..count]).await {
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
    LoginEnd { logged_in: check::is_logged_in(config).await, error: error.to_owned(), exit_code }
}
