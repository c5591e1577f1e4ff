//! The event log: every decision, call, answer, commit and crash as a line, and one hash over all
//! lines.
//!
//! Invariant: a line contains nothing that differs between two runs of one seed: no pointer, no
//! path, no real time.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::io::Write as _;

use sha2::{Digest as _, Sha256};

/// The output of lines in addition to the hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Echo {
    /// Nowhere.
    #[default]
    Hash,
    /// To standard output.
    Print,
}

struct Inner {
    hash: Sha256,
    line: String,
    lines: u64,
}

pub(crate) struct Log {
    inner: RefCell<Inner>,
    echo: Echo,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines", self.inner.borrow().lines)
    }
}

impl Log {
    pub(crate) fn new(echo: Echo) -> Self {
        Self {
            inner: RefCell::new(Inner { hash: Sha256::new(), line: String::new(), lines: 0 }),
            echo,
        }
    }

    pub(crate) fn line(&self, at: i64, what: fmt::Arguments<'_>) {
        let mut inner = self.inner.borrow_mut();
        let Inner { hash, line, lines } = &mut *inner;
        line.clear();
        writeln!(line, "{at:>9} {what}").expect("writing to a string succeeds");
        hash.update(line.as_bytes());
        *lines += 1;
        if self.echo == Echo::Print {
            // A reader that has closed the pipe has read enough.
            drop(std::io::stdout().lock().write_all(line.as_bytes()));
        }
    }

    pub(crate) fn hash(&self) -> String {
        let digest = self.inner.borrow().hash.clone().finalize();
        digest.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a string succeeds");
            text
        })
    }
}
