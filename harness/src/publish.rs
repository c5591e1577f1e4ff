//! `hive publish`: the loose ends of a program beside the agent, from stdin.
//!
//! Invariant: the set is published completely or not at all; an unreadable line publishes nothing.

use std::io::Read;

use crate::cli::PublishArgs;
use crate::exit::Failure;
use crate::stdin::{self, Refusal};
use crate::token;
use crate::wire::{self, beside};

/// Maximum bytes read from stdin; the broker's own limits are far below it.
const STDIN_BYTES_MAX: u64 = 1024 * 1024;

/// Publishes the entries of stdin, which replace those that the label published before.
pub async fn run(args: PublishArgs) -> Result<(), Failure> {
    let PublishArgs { socket, from } = args;
    let loose_ends = read(&mut std::io::stdin().lock())
        .map_err(|refusal| refusal.failure("stdin cannot be published"))?;
    let channel = hive_proto::connect::connect_as(wire::PROGRAM, &socket)
        .await
        .map_err(|error| Failure::unreachable(&error))?;
    beside::replace_loose_ends(channel, token::random(), &from, loose_ends)
        .await
        .map_err(|status| Failure::refused("the loose ends were not accepted", &status))
}

/// Reads the entries on stdin, one per line; blank lines are skipped.
fn read(stdin: &mut impl Read) -> Result<Vec<(String, String)>, Refusal> {
    let too_long = "publish fewer or shorter entries";
    let text =
        stdin::read(stdin, STDIN_BYTES_MAX, too_long, "write lines of KEY<TAB>TEXT to stdin")?;
    let entry = |(number, line): (usize, &str)| {
        let (key, text) = line.split_once('\t').ok_or_else(|| {
            let why = format!("line {} has no tab", number + 1);
            Refusal::new(why, "write each entry as KEY<TAB>TEXT")
        })?;
        Ok((key.to_owned(), text.to_owned()))
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;

    #[test]
    fn each_line_is_an_entry() {
        let text = "pr-7\treview of the parser\r\n\n \npr-9\ta\tb\n";
        let entries = read(&mut text.as_bytes()).ok().expect("entries");
        let entries: Vec<(&str, &str)> =
            entries.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
        assert_eq!(entries, [("pr-7", "review of the parser"), ("pr-9", "a\tb")]);
        assert!(read(&mut &b""[..]).ok().expect("an empty set").is_empty());
    }

    #[test]
    fn an_invalid_entry_is_refused_with_its_position() {
        for (stdin, says) in [(&b"a\tb\nno tab\n"[..], "line 2"), (b"ab\xff", "byte 2")] {
            let refusal = read(&mut &*stdin).map(drop).map_err(|refusal| refusal.failure("stdin"));
            let failure = refusal.expect_err("refused");
            assert_eq!(failure.code(), exit::USAGE);
            assert!(failure.to_string().contains(says), "{failure}");
        }
    }
}
