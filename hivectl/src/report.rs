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
        // Without stderr, only the exit code is left.
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
mod tests {
    use std::path::PathBuf;

    use hive_core::reason::Reason;
    use tonic::Status;

    use super::*;

    fn reported(failure: &Failure) -> String {
        let mut text = Vec::new();
        write_report(&mut text, failure).expect("a vector takes everything");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn a_refusal_shows_message_reason_and_hint() {
        let status = hive_proto::status::refusal(
            Reason::AgentNotFound,
            "there is no agent `bbo`; did you mean `bob`?",
            None,
        );
        insta::assert_snapshot!(reported(&status.into()), @r"
        error: there is no agent `bbo`; did you mean `bob`?
        reason: AGENT_NOT_FOUND
        hint: `hivectl agents` lists them
        ");
    }

    #[test]
    fn an_error_without_a_reason_of_the_broker_shows_a_hint() {
        let io = || io::Error::other("broken");
        let path = PathBuf::from("/nowhere");
        for failure in [
            Failure::Runtime(io()),
            Failure::Output(io()),
            Failure::Input(io()),
            Failure::BodyNotText { valid_up_to: 3 },
            Failure::Incomplete { field: "agent" },
            Failure::FileUnreadable { path, source: io() },
            Status::internal("it broke").into(),
            Status::invalid_argument("no").into(),
            hive_proto::status::refusal(Reason::FieldInvalid, "`name` is empty", None).into(),
            hive_proto::status::refusal(Reason::BodyTooLarge, "the body is too large", None).into(),
        ] {
            let reported = reported(&failure);
            assert!(reported.lines().any(|line| line.starts_with("hint: ")), "{reported}");
        }
    }

    #[test]
    fn a_retry_delay_is_shown_where_it_helps() {
        let wait = Some(std::time::Duration::from_millis(1500));
        let status =
            hive_proto::status::refusal(Reason::RateLimited, "600 a minute are allowed", wait);
        assert!(reported(&status.into()).ends_with("hint: try again in 1.5 s\n"));
    }

    #[test]
    fn what_the_broker_says_cannot_steer_the_terminal() {
        let status = hive_proto::status::refusal(Reason::Internal, "\u{1b}[2J", None);
        assert!(!reported(&status.into()).contains('\u{1b}'));
    }

    #[test]
    fn a_closed_pipe_is_no_error() {
        assert_eq!(Failure::Output(io::ErrorKind::BrokenPipe.into()).exit(), Exit::Ok);
    }
}
