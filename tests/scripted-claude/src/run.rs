//! The process from its arguments to its exit code, signals included.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::args::Args;
use super::commands;
use super::events::Events;
use super::files::{self, Files, Unusable};
use super::resident;
use super::script::{self, FILE_ENV, Rule, ScriptError};
use super::servers::Servers;
use super::session::Session;
use super::signals::{Heard, Signals, TERMINATED};
use super::turn::{Conversation, Deaf, End};

/// Runs claude; returns the exit code.
pub fn run(args: &Args) -> u8 {
    if args.version {
        return super::events::raw(&format!("{} (Claude Code)", super::events::version()))
            .map_or(1, |()| 0);
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let code = runtime.block_on(work(args));
    code.unwrap_or_else(|error| {
        complain(&error.to_string());
        1
    })
}

#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Unusable(#[from] Unusable),
    #[error("scripted-claude: {0}")]
    Script(#[from] ScriptError),
    #[error("scripted-claude: {0}")]
    Io(#[from] io::Error),
}

async fn work(args: &Args) -> Result<u8, Stopped> {
    let rules = || {
        std::env::var_os(FILE_ENV).map_or(Ok(Vec::new()), |path| script::read(&PathBuf::from(path)))
    };
    if let Some(command) = &args.command {
        return Ok(commands::run(command, &home(), &rules()?).await?);
    }
    let files = files::read(args)?;
    if args.is_resident() {
        return Ok(resident::serve(args, &files, &rules()?).await?);
    }
    let prompt = prompt()?;
    Ok(once(args, &files, &prompt, &rules()?).await?)
}

fn prompt() -> Result<String, Unusable> {
    let mut bytes = Vec::new();
    // Input that cannot be read counts as empty.
    let _ = io::stdin().read_to_end(&mut bytes);
    let prompt = String::from_utf8_lossy(&bytes).into_owned();
    match prompt.trim() {
        "" if prompt.is_empty() => Err(Unusable::NoInput),
        "" => Err(Unusable::BlankInput),
        _ => Ok(prompt),
    }
}

/// Runs a process of one turn.
async fn once(args: &Args, files: &Files, prompt: &str, rules: &[Rule]) -> io::Result<u8> {
    let deaf = Deaf::default();
    let mut signals = Signals::listen(&deaf)?;
    let Some(mut conversation) = begin(args, files, &deaf, &mut signals).await? else {
        return Ok(TERMINATED);
    };
    let ended = tokio::select! {
        end = conversation.turn(prompt, rules) => Ok(end?),
        heard = signals.heard() => Err(heard),
    };
    match ended {
        Ok(End::Exit(code) | End::Result(code)) => {
            conversation.servers.stop().await;
            Ok(code)
        }
        Err(Heard::Terminate) => {
            conversation.servers.interrupt();
            Ok(TERMINATED)
        }
        Err(Heard::Interrupt) => {
            conversation.interrupted().await?;
            conversation.servers.stop().await;
            Ok(0)
        }
    }
}

/// Opens the conversation and starts the servers; returns `None` if a signal came first.
pub(super) async fn begin(
    args: &Args,
    files: &Files,
    deaf: &Deaf,
    signals: &mut Signals,
) -> io::Result<Option<Conversation>> {
    let home = home();
    let session = Session::open(&home, &std::env::current_dir()?, args.continues);
    let events = Events::new(&session.id, &args.model, session.cost());
    let servers = tokio::select! {
        servers = Servers::start(&files.servers) => servers,
        _ = signals.heard() => return Ok(None),
    };
    Ok(Some(Conversation {
        home,
        events,
        session,
        servers,
        builtin_tools: files.builtin_tools.clone(),
        allowed: args.allowed_tools.clone(),
        deaf: deaf.clone(),
        said: String::new(),
        in_tool: None,
    }))
}

fn home() -> PathBuf {
    std::env::var_os("HOME").map_or_else(std::env::temp_dir, |home| Path::new(&home).to_path_buf())
}

/// Writes a line to stderr.
pub fn complain(line: &str) {
    // If stderr is closed, the line is lost.
    let _ = writeln!(io::stderr().lock(), "{line}");
}
