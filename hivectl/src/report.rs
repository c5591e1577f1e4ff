//! The report of a failure on stderr: the sentence, the reason, and the command that helps next.
//!
//! Invariant: nothing in it can steer the terminal, and nothing of it is on stdout.

use std::io;
use std::process::ExitCode;

use crate::error::Failure;
use crate::exit::Exit;
use crate::output::text::visible_block;

/// Prints the failure to stderr and answers with its exit code.
pub(crate) fn report(failure: &Failure) -> ExitCode {
    let exit = failure.exit();
    if exit != Exit::Ok {
        // Where stderr is gone too, the exit code is all that is left to say.
        let _ = write_report(&mut io::stderr().lock(), failure);
    }
    exit.into()
}

fn write_report(stderr: &mut impl io::Write, failure: &Failure) -> io::Result<()> {
    writeln!(stderr, "error: {}", visible_block(&failure.in_one_line()))?;
    if let Some(reason) = failure.reason() {
        writeln!(stderr, "reason: {reason}")?;
    }
    if let Some(hint) = failure.hint() {
        writeln!(stderr, "hint: {}", visible_block(&hint))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
