//! The process from its arguments to its exit code, signals included.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::args::Args;
use super::events::Events;
use super::files::{self, Files, Unusable};
use super::script::{self, FILE_ENV, Rule};
use super::servers::Servers;
use super::session::Session;
use super::turn::{Deaf, Turn};

/// How claude exits on SIGTERM.
const TERMINATED: u8 = 143;

/// Runs one turn; gives the exit code.
pub fn run(args: &Args) -> u8 {
    if args.version {
        return super::events::raw(&format!("{} (Claude Code)", crate::claude::VERSION)).map_or(1, |()| 0);
    }
    let prepared = files::read(args).and_then(|files| Ok((files, prompt()?)));
    let rules = std::env::var_os(FILE_ENV).map_or(Ok(Vec::new()), |path| script::read(&PathBuf::from(path)));
    match (prepared, rules) {
        (Err(unusable), _) => {
            complain(&unusable.to_string());
            1
        }
        (_, Err(error)) => {
            complain(&format!("scripted-claude: {error}"));
            1
        }
        (Ok((files, prompt)), Ok(rules)) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(turn(args, &files, &prompt, &rules)).unwrap_or_else(|error| {
                complain(&format!("scripted-claude: {error}"));
                1
            })
        }
    }
}

fn prompt() -> Result<String, Unusable> {
    let mut bytes = Vec::new();
    // What cannot be read is not there.
    let _ = io::stdin().read_to_end(&mut bytes);
    let prompt = String::from_utf8_lossy(&bytes).into_owned();
    match prompt.trim() {
        "" if prompt.is_empty() => Err(Unusable::NoInput),
        "" => Err(Unusable::BlankInput),
        _ => Ok(prompt),
    }
}

async fn turn(args: &Args, files: &Files, prompt: &str, rules: &[Rule]) -> io::Result<u8> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let deaf = Deaf::default();
    let session = Session::open(&home(), &std::env::current_dir()?, args.continues);
    let events = Events::new(&session.id, &args.model);
    let servers = tokio::select! {
        servers = Servers::start(&files.servers) => servers,
        () = heard(&mut terminate, || true) => return Ok(TERMINATED),
    };
    let mut tools = files.builtin_tools.clone();
    tools.extend(servers.tools());
    events.init(&tools, &servers.states())?;

    let cost_before = session.cost();
    let allowed = args.allowed_tools.clone();
    let mut turn = Turn { events, session, servers, allowed, deaf: deaf.clone(), cost_before, said: String::new() };
    let steps = script::steps(rules, prompt);
    let ended = {
        let work = async {
            if steps.is_none() && prompt.starts_with('/') { command(&mut turn, prompt) } else { turn.run(prompt, steps).await }
        };
        tokio::select! {
            code = work => Ended::ByItself(code?),
            () = heard(&mut terminate, || !deaf.to_sigterm.load(Ordering::SeqCst)) => Ended::Terminated,
            () = heard(&mut interrupt, || !deaf.to_sigint.load(Ordering::SeqCst)) => Ended::Interrupted,
        }
    };
    match ended {
        Ended::ByItself(code) => {
            turn.servers.stop().await;
            Ok(code)
        }
        Ended::Terminated => {
            turn.servers.interrupt();
            Ok(TERMINATED)
        }
        Ended::Interrupted => {
            let aborted = [
                ("subtype", json!("error_during_execution")),
                ("is_error", json!(true)),
                ("terminal_reason", json!("aborted_tools")),
            ];
            turn.result(&aborted.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())?;
            turn.servers.stop().await;
            Ok(0)
        }
    }
}

enum Ended {
    ByItself(u8),
    Terminated,
    Interrupted,
}

/// Waits for a signal that `counts`.
async fn heard(signal: &mut Signal, counts: impl Fn() -> bool) {
    while signal.recv().await.is_some() {
        if counts() {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// A prompt that begins with a slash is no prompt but a command; only `/compact` does something here.
fn command(turn: &mut Turn, prompt: &str) -> io::Result<u8> {
    let name = prompt.trim_start_matches('/').split_whitespace().next().unwrap_or_default().to_owned();
    if name == "compact" {
        let nothing = turn.session.lines.is_empty();
        let status = |status: Value, result: Map<String, Value>| {
            let mut event = json!({"type": "system", "subtype": "status", "status": status});
            event.as_object_mut().expect("it is an object").extend(result);
            event
        };
        turn.events.line(status(json!("compacting"), Map::new()))?;
        let outcome = if nothing {
            json!({"compact_result": "failed", "compact_error": "Error: No messages to compact"})
        } else {
            json!({"compact_result": "success"})
        };
        turn.events.line(status(Value::Null, outcome.as_object().cloned().unwrap_or_default()))?;
        if !nothing {
            let metadata = json!({"trigger": "manual", "pre_tokens": 3832, "post_tokens": 527});
            turn.events.line(json!({"type": "system", "subtype": "compact_boundary", "compact_metadata": metadata}))?;
        }
    }
    turn.said.clear();
    turn.result(&Map::from_iter([("local_command".to_owned(), json!(name))]))
}

fn home() -> PathBuf {
    std::env::var_os("HOME").map_or_else(std::env::temp_dir, PathBuf::from)
}

/// Writes a line to stderr.
pub fn complain(line: &str) {
    // Nobody is left to be told if that fails.
    let _ = writeln!(io::stderr().lock(), "{line}");
}
