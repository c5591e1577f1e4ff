//! `hive wake`: sends one message to the agent's own inbox.
//!
//! Invariant: an id is printed only after the broker confirmed that the message is on disk.

use std::io::{Read, Write as _};

use crate::cli::WakeArgs;
use crate::exit::{self, Failure};
use crate::wire::{self, beside};
use crate::{stdin, token};

/// Maximum bytes read from stdin; the broker's own limit is far below it.
const STDIN_BYTES_MAX: u64 = 3 * 1024 * 1024;

/// Sends the message and prints its receipt.
pub async fn run(args: WakeArgs) -> Result<(), Failure> {
    let WakeArgs { socket, from, body, key } = args;
    let body = if body == "-" { read_body(&mut std::io::stdin().lock())? } else { body };
    if body.is_empty() {
        return Err(Failure::new(
            exit::USAGE,
            "the body is empty",
            "",
            "say something with --body TEXT",
        ));
    }
    let channel = hive_proto::connect::connect_as(wire::PROGRAM, &socket)
        .await
        .map_err(|error| Failure::unreachable(&error))?;
    let (request_id, key) = (token::random(), key.unwrap_or_default());
    let trace = std::env::var(hive_proto::TRACEPARENT_ENV).ok();
    let receipt =
        beside::wake(channel, String::new(), request_id, from.as_str(), &key, body, trace)
            .await
            .map_err(|status| Failure::refused("the wake-up was not accepted", &status))?;
    // A closed stdout does not undo the receipt.
    let _ = writeln!(std::io::stdout(), "{}", receipt.message_id);
    Ok(())
}

fn read_body(stdin: &mut impl Read) -> Result<String, Failure> {
    let too_long = "put it into a file and send its path";
    stdin::read(stdin, STDIN_BYTES_MAX, too_long, "pass the text with --body TEXT")
        .map_err(|refusal| refusal.failure("the body on stdin cannot be used"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_utf8_is_refused_with_its_position() {
        let failure = read_body(&mut &b"ab\xff"[..]).expect_err("refused");
        assert_eq!(failure.code(), exit::USAGE);
        assert!(failure.to_string().contains("byte 2"), "{failure}");
        assert_eq!(read_body(&mut "grüße\n".as_bytes()).expect("fine"), "grüße\n");
    }
}
