//! What comes from stdin: a text in place of an argument, or the line of a person who was asked.
//!
//! Invariant: nobody is asked where stdin is no terminal.

use std::io::{self, IsTerminal as _, Read as _, Write as _};

use crate::error::Failure;
use crate::interrupt::until_interrupted;
use crate::output::note;

/// An argument, or for `-` all of stdin, without one final line break.
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
    let mut text =
        String::from_utf8(bytes).map_err(|error| Failure::BodyNotText { valid_up_to: error.utf8_error().valid_up_to() })?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// Whether somebody sits there who can be asked.
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// The next line that is typed, without its line break; `None` at the end of the input, and where Ctrl-C ends the question.
pub(crate) async fn line(prompt: &str) -> Result<Option<String>, Failure> {
    let mut stderr = io::stderr();
    // Where the prompt cannot be shown, the terminal is still there to type on.
    let _ = stderr.write_all(prompt.as_bytes()).and_then(|()| stderr.flush());
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|bytes| (bytes > 0).then_some(line))
    });
    let Some(read) = until_interrupted(read).await else { return Ok(None) };
    let line = read.expect("reading does not panic").map_err(Failure::Input)?;
    Ok(line.map(|line| line.trim_end_matches(['\n', '\r']).to_owned()))
}
