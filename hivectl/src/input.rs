//! Input from stdin: a text in place of an argument, a line of a person, or keys.
//!
//! Invariant: if stdin is no terminal, no question is asked.

use std::io::{self, IsTerminal as _, Read as _, Write as _};

use rustix::io::Errno;
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::error::Failure;
use crate::interrupt::until_interrupted;
use crate::output::note;

/// Reads that are buffered until a caller takes them.
const READS_WAITING: usize = 16;

/// Returns an argument, or for `-` all of stdin, without one final line break.
pub(crate) fn text_or_stdin(argument: String) -> Result<String, Failure> {
    if argument == "-" { from_stdin() } else { Ok(argument) }
}

fn from_stdin() -> Result<String, Failure> {
    let mut stdin = io::stdin().lock();
    if stdin.is_terminal() {
        note("type the text; Ctrl-D ends it");
    }
    let mut bytes = Vec::new();
    stdin.read_to_end(&mut bytes).map_err(Failure::Input)?;
    let mut text = String::from_utf8(bytes)
        .map_err(|error| Failure::BodyNotText { valid_up_to: error.utf8_error().valid_up_to() })?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// Returns whether a person can be asked.
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Returns the next line that is typed, without its line break; `None` at the end of the input, and
/// where Ctrl-C ends the question.
pub(crate) async fn line(prompt: &str) -> Result<Option<String>, Failure> {
    let mut stderr = io::stderr();
    // Without a prompt a person can still type.
    let _ = stderr.write_all(prompt.as_bytes()).and_then(|()| stderr.flush());
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|bytes| (bytes > 0).then_some(line))
    });
    let Some(read) = until_interrupted(read).await else { return Ok(None) };
    let line = read.expect("reading does not panic").map_err(Failure::Input)?;
    Ok(line.map(|line| line.trim_end_matches(['\n', '\r']).to_owned()))
}

/// Asks a yes or no question at the terminal; anything but `y` or `yes` is a no.
pub(crate) async fn confirm(question: &str) -> Result<bool, Failure> {
    let answer = line(&format!("{question} (y/n) ")).await?.unwrap_or_default();
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Returns the bytes that are typed on the terminal that stdin is; the channel closes with the
/// terminal.
///
/// A thread reads it, because a read of a terminal waits, and the descriptor's mode is left alone:
/// other programs share it. The thread ends with the terminal, or with the process.
pub(crate) fn typed() -> io::Result<Receiver<Vec<u8>>> {
    let (sender, read) = mpsc::channel(READS_WAITING);
    std::thread::Builder::new().name("keys".to_owned()).spawn(move || listen(&sender))?;
    Ok(read)
}

/// Reads until the terminal is gone, or the receiver is dropped.
fn listen(sender: &Sender<Vec<u8>>) {
    let mut bytes = [0; 4096];
    loop {
        match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
            Ok(0) => return,
            Ok(count) => {
                if sender.blocking_send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Calls a function before the message of a panic, such as one that restores the terminal.
pub(crate) fn before_panic(restore: fn()) {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        default_hook(panic);
    }));
}
