//! `hivectl login` in a real terminal: bytes go to and fro, and however it ends the terminal is as
//! it was.

use hive_proto::in_session;
use hive_proto::v1::serve_login_request::Step as Said;
use hive_proto::v1::serve_login_response::Step as Heard;
use hive_proto::v1::{
    LoginEnd, LoginWanted, ServeLoginRequest, ServeLoginResponse, ServeLoginStart,
};
use rustix::process::Signal;
use tokio::process::Child;
use tokio::sync::mpsc::UnboundedSender;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Streaming;

use super::hive::Hive;
use super::play::Player;
use super::run::{Ran, assert_contains, assert_starts, ended};
use super::terminal::Terminal;

/// Ada, with an attached harness, and bob, without one.
const DUO: &str = "[agents.ada]\n[agents.bob]";

const PROMPT: &str = "Paste the code: ";

struct Dialogue {
    terminal: Terminal,
    /// The modes of the terminal before the dialogue.
    modes: String,
    child: Child,
}

impl Dialogue {
    /// Begins one with the claude of `agent`.
    fn begin(hive: &Hive, agent: &str) -> Self {
        let terminal = Terminal::open();
        terminal.resize(24, 80);
        let modes = terminal.modes();
        let mut command = hive.hivectl(&["login", agent]);
        command.env("TERM", "xterm-256color").stdin(terminal.side()).stdout(terminal.side());
        let child = command.spawn().expect("the binary runs");
        Self { terminal, modes, child }
    }

    fn signal(&self, signal: Signal) {
        super::run::signal(&self.child, signal);
    }

    /// Waits for its end; the terminal is as it was before.
    async fn ends(self) -> Ran {
        let Self { terminal, modes, child } = self;
        let mut ran = ended(child).await;
        assert_eq!(terminal.modes(), modes);
        ran.out = terminal.shown();
        ran
    }
}

struct Served {
    wanted: LoginWanted,
    say: UnboundedSender<ServeLoginRequest>,
    hear: Streaming<ServeLoginResponse>,
}

impl Served {
    async fn by(ada: &mut Player) -> Self {
        let wanted = ada.login_wanted().await;
        let (say, said) = tokio::sync::mpsc::unbounded_channel();
        let start = Said::Start(ServeLoginStart { login_id: wanted.login_id });
        say.send(ServeLoginRequest { step: Some(start) }).expect("it is read");
        let said = in_session(UnboundedReceiverStream::new(said), &ada.session);
        let hear = ada.turns.serve_login(said).await;
        Self { wanted, say, hear: hear.expect("it may serve").into_inner() }
    }

    fn says(&self, step: Said) {
        self.say.send(ServeLoginRequest { step: Some(step) }).expect("it is read");
    }

    fn ends(&self, logged_in: bool, error: &str, exit_code: i32) {
        self.says(Said::End(LoginEnd { logged_in, error: error.to_owned(), exit_code }));
    }

    /// Returns the next input that it receives; `None` at the end.
    async fn hears(&mut self) -> Option<Heard> {
        self.hear.message().await.ok().flatten().and_then(|response| response.step)
    }
}

/// A hive, a dialogue with ada's claude that has asked, and its other side.
async fn asked() -> (Hive, Dialogue, Served) {
    let mut hive = Hive::attended(DUO).await;
    let mut dialogue = Dialogue::begin(&hive, "ada");
    let served = Served::by(hive.ada()).await;
    served.says(Said::Output(PROMPT.into()));
    dialogue.terminal.until(PROMPT);
    assert!(dialogue.terminal.is_raw());
    (hive, dialogue, served)
}

/// Types a text, waits until the harness has received it, and echoes it.
async fn types(dialogue: &Dialogue, served: &mut Served, text: &str) {
    dialogue.terminal.types(text);
    let mut heard = Vec::new();
    while heard.len() < text.len() {
        match served.hears().await {
            Some(Heard::Input(bytes)) => heard.extend(bytes),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(heard, text.as_bytes());
    served.says(Said::Output(heard));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_go_to_the_dialogue_and_its_end_is_reported() {
    let (_hive, dialogue, mut served) = asked().await;
    let terminal = served.wanted.terminal.as_ref().expect("it says on what");
    assert_eq!((terminal.rows, terminal.columns), (24, 80));
    assert_eq!(terminal.kind, "xterm-256color");
    // Ctrl-C, Ctrl-Z, Ctrl-D and Ctrl-Q are keys as all others.
    for text in ["\u{3}", "\u{1a}\u{4}\u{11}", "right", "\r"] {
        types(&dialogue, &mut served, text).await;
    }
    served.ends(true, "", 0);
    let ran = dialogue.ends().await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.err, "claude's login dialogue for ada; Ctrl-] leaves it\n\n");
    assert!(
        ran.out.contains("right") && ran.out.ends_with("claude is logged in for ada\n"),
        "{:?}",
        ran.out
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_1_a_dialogue_that_ends_without_a_login_says_why() {
    for (error, why) in [
        ("", "its dialogue ended with code 1\nhint: "),
        (
            "turn 21 runs; try again when it has ended\u{1b}[2J",
            "turn 21 runs; try again when it has ended\\u{1b}[2J\n",
        ),
    ] {
        let (_hive, dialogue, served) = asked().await;
        served.ends(false, error, 1);
        let ran = dialogue.ends().await;
        assert_eq!(ran.code, 1);
        let why = format!("error: claude is not logged in for ada: {why}");
        assert_contains(&ran.err, &why);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_terminal_size_is_sent() {
    let (_hive, dialogue, mut served) = asked().await;
    dialogue.terminal.resize(50, 132);
    dialogue.signal(Signal::WINCH);
    match served.hears().await {
        Some(Heard::Terminal(size)) => assert_eq!((size.rows, size.columns), (50, 132)),
        other => panic!("{other:?}"),
    }
    types(&dialogue, &mut served, "right\r").await;
    served.ends(true, "", 0);
    assert_eq!(dialogue.ends().await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_leaves_and_the_other_side_is_notified() {
    for key in ["\u{1d}", "\u{1b}[93;5u"] {
        let (_hive, dialogue, mut served) = asked().await;
        dialogue.terminal.types(key);
        assert_eq!(served.hears().await, None, "the dialogue is over");
        let ran = dialogue.ends().await;
        assert_eq!(ran.code, 1);
        assert_contains(
            &ran.err,
            "not logged in for ada: you left the dialogue\nhint: `hivectl login ada` begins anew",
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_and_a_connection_that_breaks_give_the_terminal_back() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
        let (_hive, dialogue, _served) = asked().await;
        dialogue.signal(signal);
        let ran = dialogue.ends().await;
        assert_eq!(ran.code, 1, "{signal:?}: {}", ran.err);
        assert!(
            ran.out.ends_with("\u{1b}[>4m\r"),
            "what the dialogue may have changed is set back: {:?}",
            ran.out
        );
    }
    let (mut hive, dialogue, _served) = asked().await;
    hive.broker().kill();
    let ran = dialogue.ends().await;
    assert_eq!(ran.code, 7);
    assert_contains(&ran.err, "error: the login dialogue broke off: ");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_show_a_hint_and_leave_the_terminal_alone() {
    let (hive, _dialogue, _served) = asked().await;
    let mut output = String::new();
    for agent in ["bbo", "bob", "ada"] {
        let ran = Dialogue::begin(&hive, agent).ends().await;
        assert_eq!(ran.out, "", "{agent}");
        output.push_str(&ran.all());
    }
    insta::assert_snapshot!(output);
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_2_without_a_terminal_on_both_sides() {
    let (hive, terminal) = (Hive::new(DUO), Terminal::open());
    let neither = hive.run(&["login", "ada"]).await;
    let mut command = hive.hivectl(&["login", "ada"]);
    let child = command.stdin(terminal.side()).spawn().expect("the binary runs");
    for ran in [neither, ended(child).await] {
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        assert_starts(
            &ran.err,
            "error: `login` is a dialogue, and needs a terminal on stdin and on stdout\nhint: ",
        );
    }
    assert!(hive.changes().is_empty(), "no request reached the broker");
}
