//! The standard input of `hive wake` and `hive publish`: a text of limited length.

use std::io::Read;

use crate::exit::{self, Failure};

/// Why the standard input cannot be used, and what to do next.
pub(crate) struct Refusal {
    pub(crate) why: String,
    pub(crate) next: String,
}

impl Refusal {
    pub(crate) fn new(why: impl Into<String>, next: &str) -> Self {
        Self { why: why.into(), next: next.to_owned() }
    }

    pub(crate) fn failure(self, what: &str) -> Failure {
        Failure::new(exit::USAGE, what, self.why, self.next)
    }
}

/// Reads a text of at most `bytes_max` bytes; `too_long` says what to do with a longer one, and
/// `unreadable` if reading fails.
pub(crate) fn read(
    stdin: &mut impl Read,
    bytes_max: u64,
    too_long: &str,
    unreadable: &str,
) -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    let read = stdin.take(bytes_max + 1).read_to_end(&mut bytes);
    read.map_err(|error| Refusal::new(error.to_string(), unreadable))?;
    if bytes.len() as u64 > bytes_max {
        return Err(Refusal::new(format!("it is longer than {bytes_max} bytes"), too_long));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let next = "convert it first, for example with iconv -t UTF-8";
        Refusal::new(format!("byte {at} is not valid UTF-8"), next)
    })
}
