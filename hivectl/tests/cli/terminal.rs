//! A terminal for the binary: one side is its stdin or stdout, the test has the other.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A terminal that somebody sits at.
pub(crate) struct Terminal {
    ours: File,
    theirs: File,
}

impl Terminal {
    pub(crate) fn open() -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&ours).expect("ours");
        unlockpt(&ours).expect("ours");
        let name = ptsname(&ours, Vec::new()).expect("it has a name").into_string().expect("text");
        let theirs = File::options().read(true).write(true).open(name).expect("the other side");
        Self { ours: ours.into(), theirs }
    }

    /// Types something; it waits there for whoever reads.
    pub(crate) fn types(&self, text: &str) {
        (&self.ours).write_all(text.as_bytes()).expect("it takes it");
    }

    /// The side of the program.
    pub(crate) fn side(&self) -> Stdio {
        self.theirs.try_clone().expect("a descriptor").into()
    }

    /// All that was shown, once the program has ended.
    pub(crate) fn shown(self) -> String {
        let Self { mut ours, theirs } = self;
        drop(theirs);
        let mut shown = Vec::new();
        // The end of a terminal is an error on Linux; what was read until then is there.
        let _ = ours.read_to_end(&mut shown);
        String::from_utf8(shown).expect("text").replace("\r\n", "\n")
    }
}
