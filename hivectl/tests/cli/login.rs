//! `hivectl login` in a real terminal: bytes go to and fro, and however it ends the terminal is as
//! it was.

use rustix::process::Signal;
use tokio::process::Child;

use super::fake::{Broker, PROMPT};
use super::run::{Ran, hivectl, ran, run};
use super::terminal::Terminal;

/// Somebody who logs in.
struct Dialogue {
    broker: Broker,
    terminal: Terminal,
    /// How the terminal was before.
    modes: String,
    child: Child,
}

impl Dialogue {
    /// Begins one with the claude of `agent`.
    fn begin(agent: &str) -> Self {
        let (broker, terminal) = (Broker::start(), Terminal::open());
        terminal.resize(24, 80);
        let modes = terminal.modes();
        let mut command = hivectl(&broker.socket());
        command
            .args(["login", agent])
            .env("TERM", "xterm-256color")
            .stdin(terminal.side())
            .stdout(terminal.side());
        let child = command.spawn().expect("the binary runs");
        Self { broker, terminal, modes, child }
    }

    /// Begins one that asks.
    fn asked(agent: &str) -> Self {
        let mut dialogue = Self::begin(agent);
        dialogue.terminal.until(PROMPT);
        assert!(dialogue.terminal.is_raw());
        dialogue
    }

    /// Types something, and waits until the dialogue has heard it.
    async fn types(&mut self, text: &str) {
        self.terminal.types(text);
        self.broker.watched().await;
    }

    fn signal(&self, signal: Signal) {
        super::run::signal(&self.child, signal);
    }

    /// Waits for its end; the terminal is as it was before.
    async fn ends(self) -> (Ran, Broker) {
        let Self { broker, terminal, modes, child } = self;
        let mut ran = ran(child.wait_with_output().await.expect("it ends"));
        assert_eq!(terminal.modes(), modes);
        ran.out = terminal.shown();
        (ran, broker)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_go_to_the_dialogue_and_its_end_is_told() {
    let mut dialogue = Dialogue::asked("ada");
    // Ctrl-C, Ctrl-Z, Ctrl-D and Ctrl-Q are keys as all others.
    dialogue.types("\u{3}").await;
    dialogue.types("\u{1a}\u{4}\u{11}").await;
    dialogue.types("right").await;
    dialogue.types("\r").await;
    let (ran, broker) = dialogue.ends().await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.err, "claude's login dialogue for ada; Ctrl-] leaves it\n\n");
    assert!(
        ran.out.contains("right") && ran.out.ends_with("claude is logged in for ada\n"),
        "{:?}",
        ran.out
    );
    assert_eq!(
        broker.changes()[..5],
        [
            "login ada: 24 lines, 80 columns, xterm-256color",
            "typed \\x03",
            "typed \\x1a\\x04\\x11",
            "typed right",
            "typed \\r"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_1_a_dialogue_that_ends_without_a_login_says_why() {
    let mut dialogue = Dialogue::asked("ada");
    dialogue.types("wrong\r").await;
    let (ran, _) = dialogue.ends().await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains(
            "error: claude is not logged in for ada: its dialogue ended with code 1\nhint: "
        ),
        "{}",
        ran.err
    );
    let (ran, _) = Dialogue::begin("busy").ends().await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains(
            "not logged in for busy: turn 21 runs; try again when it has ended\\u{1b}[2J\n"
        ),
        "{}",
        ran.err
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_size_is_told() {
    let mut dialogue = Dialogue::asked("ada");
    dialogue.terminal.resize(50, 132);
    dialogue.signal(Signal::WINCH);
    dialogue.broker.watched().await;
    assert_eq!(
        dialogue.broker.changes().last().map(String::as_str),
        Some("size: 50 lines, 132 columns")
    );
    dialogue.types("right\r").await;
    assert_eq!(dialogue.ends().await.0.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_leaves_and_the_other_side_is_told() {
    for key in ["\u{1d}", "\u{1b}[93;5u"] {
        let mut dialogue = Dialogue::asked("ada");
        dialogue.terminal.types(key);
        dialogue.broker.watched().await;
        let (ran, broker) = dialogue.ends().await;
        assert_eq!(ran.code, 1);
        assert!(
            ran.err.contains("not logged in for ada: you left the dialogue\nhint: `hivectl login ada` begins anew"),
            "{}",
            ran.err
        );
        assert_eq!(broker.changes().last().map(String::as_str), Some("the dialogue is over"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_and_a_connection_that_breaks_give_the_terminal_back() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
        let dialogue = Dialogue::asked("ada");
        dialogue.signal(signal);
        let (ran, _) = dialogue.ends().await;
        assert_eq!(ran.code, 1, "{signal:?}: {}", ran.err);
        assert!(
            ran.out.ends_with("\u{1b}[>4m\r"),
            "what the dialogue may have changed is set back: {:?}",
            ran.out
        );
    }
    let (ran, _) = Dialogue::begin("torn").ends().await;
    assert_eq!(ran.code, 7);
    assert!(ran.err.contains("error: the login dialogue broke off: "), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_tell_what_helps_and_leave_the_terminal_alone() {
    let mut told = String::new();
    for agent in ["bbo", "away", "taken"] {
        let (ran, _) = Dialogue::begin(agent).ends().await;
        assert_eq!(ran.out, "", "{agent}");
        told.push_str(&ran.all());
    }
    insta::assert_snapshot!(told);
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_2_without_a_terminal_on_both_sides() {
    let (broker, terminal) = (Broker::start(), Terminal::open());
    let neither = run(&broker.socket(), &["login", "ada"]).await;
    let output = hivectl(&broker.socket())
        .args(["login", "ada"])
        .stdin(terminal.side())
        .output()
        .await
        .expect("the binary runs");
    for ran in [neither, ran(output)] {
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        assert!(
            ran.err.starts_with(
                "error: `login` is a dialogue, and needs a terminal on stdin and on stdout\nhint: "
            ),
            "{}",
            ran.err
        );
    }
    assert!(broker.changes().is_empty(), "nobody is asked");
}
