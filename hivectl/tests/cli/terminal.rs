//! A terminal for the binary: one side is its stdin or stdout, the test has the other.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

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

    /// Types a text, which stays in the terminal's buffer until a program reads it.
    pub(crate) fn types(&self, text: &str) {
        (&self.ours).write_all(text.as_bytes()).expect("it takes it");
    }

    pub(crate) fn side(&self) -> Stdio {
        self.theirs.try_clone().expect("a descriptor").into()
    }

    /// Sets the size. The kernel signals it only to programs whose controlling terminal this is.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.theirs, size).expect("a terminal");
    }

    pub(crate) fn modes(&self) -> String {
        let Termios { input_modes, output_modes, control_modes, local_modes, .. } =
            tcgetattr(&self.theirs).expect("a terminal");
        format!("{input_modes:?} {output_modes:?} {control_modes:?} {local_modes:?}")
    }

    /// Returns whether every key goes to the program unchanged.
    pub(crate) fn is_raw(&self) -> bool {
        let modes = tcgetattr(&self.theirs).expect("a terminal").local_modes;
        !modes.intersects(LocalModes::ICANON | LocalModes::ISIG | LocalModes::ECHO)
    }

    /// Reads the output up to these words.
    pub(crate) fn until(&mut self, words: &str) -> String {
        let mut shown = Vec::new();
        let mut byte = [0];
        while !shown.ends_with(words.as_bytes()) {
            self.ours
                .read_exact(&mut byte)
                .unwrap_or_else(|error| panic!("{error}: {}", shown.escape_ascii()));
            shown.push(byte[0]);
        }
        String::from_utf8(shown).expect("text")
    }

    /// Returns the whole output, once the program has ended.
    pub(crate) fn shown(self) -> String {
        let Self { mut ours, theirs } = self;
        drop(theirs);
        let mut shown = Vec::new();
        // On Linux the end of a terminal is an error; earlier output was read.
        let _ = ours.read_to_end(&mut shown);
        String::from_utf8(shown).expect("text").replace("\r\n", "\n")
    }
}
