//! A terminal for programs under test: a real one of the kernel, with what is on its screen.
//!
//! Invariant: it waits on what the program writes and on nothing else, and fails with the screen
//! when that does not come.

use std::num::NonZeroU16;
use std::process::ExitStatus;

use hive_tests::binary;
use hive_tests::rig::{Rig, soon};
use pty_process::{Command, Pty, Size};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{InputModes, LocalModes, OutputModes, tcgetattr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;
use vt100::{Color, Parser};

/// Modes of a terminal that a program may change, and has to restore.
type Modes = (InputModes, OutputModes, LocalModes);

/// A terminal in which `hivectl` runs.
pub(crate) struct Terminal {
    pty: Pty,
    child: Child,
    parser: Parser,
    before: Modes,
    /// Whether the program's side is closed.
    closed: bool,
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).expect("a terminal has some")
}

impl Terminal {
    /// Runs `hivectl` with these arguments on this hive, on this many columns and lines.
    pub(crate) fn open(
        rig: &Rig,
        (columns, lines): (u16, u16),
        env: &[(&str, &str)],
        args: &[&str],
    ) -> Self {
        let (pty, programs_side) = pty_process::open().expect("the kernel has terminals");
        pty.resize(Size::new(lines, columns)).expect("a size");
        let before = modes(&pty);
        let command = Command::new(binary::find("hivectl", "hivectl"))
            .env_clear()
            .env("TERM", "xterm-256color")
            .env("TZ", "UTC");
        let command = command.envs(env.iter().copied()).kill_on_drop(true);
        let command = command.arg("--socket").arg(rig.operator_socket()).args(args);
        let child = command.spawn(programs_side).expect("hivectl starts");
        Self {
            pty,
            child,
            parser: Parser::new(cells(lines), cells(columns), 0),
            before,
            closed: false,
        }
    }

    /// Types.
    pub(crate) async fn types(&mut self, keys: &str) {
        self.pty.write_all(keys.as_bytes()).await.expect("the program reads");
    }

    /// Changes the size; the kernel notifies the program.
    pub(crate) fn resize(&mut self, (columns, lines): (u16, u16)) {
        self.parser.screen_mut().set_size(cells(lines), cells(columns));
        self.pty.resize(Size::new(lines, columns)).expect("a size");
    }

    /// Sends the program a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid =
            self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).expect("it runs");
        kill_process(pid, signal).expect("it runs");
    }

    pub(crate) fn screen(&self) -> String {
        self.parser.screen().contents()
    }

    /// Whether the program's own screen is shown, and not what was there before.
    pub(crate) fn is_alternate(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    /// Whether any cell has a colour.
    pub(crate) fn is_colored(&self) -> bool {
        let screen = self.parser.screen();
        let (lines, columns) = screen.size();
        let cells = (0..lines.get()).flat_map(|line| {
            (0..columns.get()).filter_map(move |column| screen.cell(line, column))
        });
        cells
            .into_iter()
            .any(|cell| cell.fgcolor() != Color::Default || cell.bgcolor() != Color::Default)
    }

    /// Waits until the screen has all of this, and none of that.
    pub(crate) async fn shows(&mut self, all: &[&str], none: &[&str]) {
        let fits = |screen: &str| {
            all.iter().all(|text| screen.contains(text))
                && !none.iter().any(|text| screen.contains(text))
        };
        let waited = tokio::time::timeout(hive_tests::rig::PATIENCE, async {
            while !fits(&self.screen()) {
                assert!(
                    self.read().await,
                    "hivectl ended with this on its screen, but not {all:?}:\n{}",
                    self.screen()
                );
            }
        });
        let waited = waited.await;
        assert!(
            waited.is_ok(),
            "the screen does not have all of {all:?} and none of {none:?}:\n{}",
            self.screen()
        );
    }

    /// Waits until the screen has one of these; which.
    pub(crate) async fn shows_any(&mut self, any: &[&str]) -> usize {
        let seen = |screen: &str| any.iter().position(|text| screen.contains(text));
        let waited = tokio::time::timeout(hive_tests::rig::PATIENCE, async {
            loop {
                if let Some(number) = seen(&self.screen()) {
                    return number;
                }
                assert!(
                    self.read().await,
                    "hivectl ended with this on its screen, but none of {any:?}:\n{}",
                    self.screen()
                );
            }
        });
        let waited = waited.await;
        waited.unwrap_or_else(|_| panic!("the screen has none of {any:?}:\n{}", self.screen()))
    }

    /// Waits until the program ends, and sees that the terminal is as it was.
    pub(crate) async fn ends(mut self) -> ExitStatus {
        soon("hivectl closes its terminal", async { while self.read().await {} }).await;
        let status = soon("hivectl ends", self.child.wait()).await.expect("it can be waited for");
        let screen = self.parser.screen();
        assert!(
            !screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste(),
            "the screen is not given back"
        );
        assert_eq!(modes(&self.pty), self.before, "the terminal's modes are not given back");
        status
    }

    /// The terminal goes away, as with a connection that breaks; waits until the program has ended
    /// too.
    pub(crate) async fn hangs_up(mut self) {
        drop(self.pty);
        soon("hivectl ends", self.child.wait()).await.expect("it can be waited for");
    }

    /// Takes in what the program wrote; `false` when it closed its side.
    async fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        // The kernel reports the end of a terminal as an error.
        let count = if self.closed { 0 } else { self.pty.read(&mut bytes).await.unwrap_or(0) };
        self.closed = count == 0;
        self.parser.process(&bytes[..count]);
        !self.closed
    }
}

fn modes(pty: &Pty) -> Modes {
    let modes = tcgetattr(pty).expect("a terminal has modes");
    (modes.input_modes, modes.output_modes, modes.local_modes)
}
