//! `hive publish`: the loose ends of a program beside the agent, from stdin.
//!
//! Invariant: the set is published completely or not at all; an unreadable line publishes nothing.

use std::io::Read;

use crate::cli::PublishArgs;
use crate::exit::{self, Failure};
use crate::token;
use crate::wire::beside;

/// Maximum bytes read from stdin; the broker's own limits are far below it.
const STDIN_BYTES_MAX: u64 = 1024 * 1024;

/// Publishes the entries of stdin, which replace those that the label published before.
pub async fn run(args: PublishArgs) -> Result<(), Failure> {
    let PublishArgs { socket, from } = args;
    let loose_ends = read(&mut std::io::stdin().lock())?;
    let channel = hive_proto::connect::connect(&socket)
        .await
        .map_err(|error| Failure::unreachable(&error))?;
    beside::replace_loose_ends(channel, token::random(), &from, loose_ends)
        .await
        .map_err(|status| Failure::refused("the loose ends were not accepted", &status))
}

/// Reads the entries on stdin, one per line; blank lines are skipped.
fn read(stdin: &mut impl Read) -> Result<Vec<(String, String)>, Failure> {
    let mut bytes = Vec::new();
    let failed =
        |why: String, next: &str| Failure::new(exit::USAGE, "stdin cannot be published", why, next);
    let taken = stdin.take(STDIN_BYTES_MAX + 1).read_to_end(&mut bytes);
    taken.map_err(|error| failed(error.to_string(), "write lines of KEY<TAB>TEXT to stdin"))?;
    if bytes.len() as u64 > STDIN_BYTES_MAX {
        return Err(failed(
            format!("it is longer than {STDIN_BYTES_MAX} bytes"),
            "publish fewer or shorter entries",
        ));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        failed(
            format!("byte {at} is not valid UTF-8"),
            "convert it first, for example with iconv -t UTF-8",
        )
    })?;
    let mut loose_ends = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let Some((key, text)) = line.split_once('\t') else {
            return Err(failed(
                format!("line {} has no tab", number + 1),
                "write each entry as KEY<TAB>TEXT",
            ));
        };
        loose_ends.push((key.to_owned(), text.to_owned()));
    }
    Ok(loose_ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_an_entry() {
        let entries = read(&mut "pr-7\treview of the parser\r\n\n \npr-9\ta\tb\n".as_bytes())
            .expect("entries");
        let entries: Vec<(&str, &str)> =
            entries.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
        assert_eq!(entries, [("pr-7", "review of the parser"), ("pr-9", "a\tb")]);
        assert!(read(&mut &b""[..]).expect("an empty set").is_empty());
    }

    #[test]
    fn what_is_no_entry_is_refused_with_its_place() {
        for (stdin, says) in [(&b"a\tb\nno tab\n"[..], "line 2"), (b"ab\xff", "byte 2")] {
            let failure = read(&mut &*stdin).expect_err("refused");
            assert_eq!(failure.code(), exit::USAGE);
            assert!(failure.to_string().contains(says), "{failure}");
        }
    }
}
