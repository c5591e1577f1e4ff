//! Candidates for a shell's cursor: the real binary, called as by the scripts of the shells.

use std::path::Path;
use std::process::Stdio;

use tokio::net::{UnixListener, UnixStream};

use super::hive::Hive;
use super::run::{Ran, assert_contains, hivectl, ran};

/// Long enough for a slow machine; a shell waits for a quarter of a second.
const PATIENT: &str = "60000";

async fn complete(socket: &Path, variables: &[(&str, &str)], line: &str) -> Ran {
    let mut command = hivectl(socket);
    command.envs(variables.iter().copied()).args(["--", "hivectl"]).args(line.split(' '));
    ran(command.output().await.expect("the binary runs"))
}

/// Completes a line whose last word is at the cursor, as fish does: each candidate with its
/// description.
pub(crate) async fn fish(socket: &Path, line: &str) -> String {
    let ran =
        complete(socket, &[("COMPLETE", "fish"), ("HIVE_COMPLETION_MS", PATIENT)], line).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line}");
    ran.out
}

async fn offered(socket: &Path, line: &str) -> Vec<String> {
    let output = fish(socket, line).await;
    output.lines().filter_map(|line| line.split('\t').next()).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_completed_wherever_an_agent_can_stand() {
    let hive = Hive::start().await;
    for line in [
        "send a",
        "ask a",
        "inbox a",
        "inbox list a",
        "inbox ack 3 --agent a",
        "inbox ack 3 --agent=a",
        "inbox ack 3 --agent = a",
        "questions --asker a",
        "questions list --target a",
        "reminders a",
        "schedules --agent a",
        "loose-ends a",
        "search green --agent a",
        "events --agent a",
        "dead-letters --agent a",
        "dead-letters redrive 5 --agent a",
        "agent show a",
        "agent retire a",
        "agent set-parent a",
        "agent set-parent bob a",
        "agent set-policy a",
        "agent set-policy bob --allow a",
        "agent set-policy bob --allow bob --allow a",
        "agent create cy --parent a",
        "turn list a",
        "turn cancel a",
        "turn model a",
        "turn compact a",
        "turn show a",
        "stats a",
        "login a",
        "turn release a",
    ] {
        let mut offered = offered(&hive.socket(), line).await;
        // A verb may begin so too.
        offered.retain(|word| !["ack", "all"].contains(&word.as_str()));
        let option = line
            .rsplit(' ')
            .next()
            .and_then(|word| word.strip_suffix("=a"))
            .map(|option| format!("{option}="));
        assert_eq!(offered, [format!("{}ada", option.unwrap_or_default())], "{line}");
    }
    for line in [
        "inbox o",
        "questions --asker o",
        "loose-ends o",
        "agent set-parent bob o",
        "events --agent o",
    ] {
        assert_eq!(offered(&hive.socket(), line).await, ["operator"], "{line}");
    }
    assert_eq!(
        offered(&hive.socket(), "send o").await,
        [""; 0],
        "the operator sends no mail to the operator"
    );
    assert_eq!(offered(&hive.socket(), "agent create a").await, [""; 0], "a new name is new");
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_offered_with_a_description() {
    let hive = Hive::start().await;
    let mut output = String::new();
    for line in [
        "answer 3",
        "questions show 3",
        "questions cancel 3",
        "questions cancel 37 3",
        "answer 37 --choice n",
        "answer 14 --choice l",
        "reminders cancel 5",
        "inbox read 3",
        "inbox ack 38 3",
        "inbox ack --agent ada 1",
        "send ada hello --reply-to 3",
        "dead-letters show 1",
        "dead-letters drop 1",
        "dead-letters redrive 12 1",
        "turn release ada 1",
        "turn drop ada 10 1",
        "turn show 1",
        "turn cancel ada --turn 3",
        "turn model ada o",
        "turn model ada ",
        "turn model bob ",
        "trace 1",
        "agent set-policy bob --tool-group m",
        "agent set-policy bob --tool-group d",
        "agent create cy --tool-group d",
        "agent set-policy bob --capability q",
        "questions --state e",
        "reminders --state f",
        "inbox --state d",
        "completions p",
    ] {
        output.push_str(&format!("$ hivectl {line}\n{}", fish(&hive.socket(), line).await));
    }
    insta::assert_snapshot!(output);
    assert!(hive.changes().is_empty(), "who completes changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_broker_of_the_line_is_asked_before_that_of_the_environment() {
    let (hive, other) = (Hive::start().await, Hive::empty());
    let socket = hive.socket();
    let socket = socket.to_str().expect("text");
    for line in [
        format!("--socket {socket} send a"),
        format!("send --socket={socket} a"),
        format!("send --socket = {socket} a"),
        format!("--timeout x send --socket {socket} a"),
    ] {
        assert_eq!(offered(&other.socket(), &line).await, ["ada"], "{line}");
    }
    assert_eq!(offered(&other.socket(), "send a").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_shell_gets_its_answer() {
    let hive = Hive::start().await;
    let output = "39{}ada asks: Merge?\n37{}ada asks: Deploy now?⏎The build is{}u{1b}[31m green.\n35{}operator asks ada: How long will it take?";
    let output = |between: &str, backslash: &str| {
        output.replacen("{}u", &format!("{backslash}u"), 1).replace("{}", between)
    };
    for (shell, separator, answer) in [
        ("bash", "\u{b}", "39\u{b}37\u{b}35".to_owned()),
        ("elvish", "\n", "39\n37\n35".to_owned()),
        ("zsh", "\n", output(":", "\\\\")),
        ("fish", "", output("\t", "\\") + "\n"),
        ("powershell", "", output("\t", "\\") + "\n"),
    ] {
        let variables = [
            ("COMPLETE", shell),
            ("HIVE_COMPLETION_MS", PATIENT),
            ("_CLAP_IFS", separator),
            ("_CLAP_COMPLETE_INDEX", "2"),
        ];
        let ran = complete(&hive.socket(), &variables, "answer 3").await;
        assert_eq!((ran.code, ran.err.as_str(), ran.out), (0, "", answer), "{shell}");
    }
}

/// Completes `send a` with what would break a shell's line if it came: an error, a hang, a word on
/// stderr.
async fn nothing_is_offered(socket: &Path, patience: Option<&str>) {
    let patience = patience.map(|patience| ("HIVE_COMPLETION_MS", patience));
    let variables: Vec<_> = [("COMPLETE", "fish")].into_iter().chain(patience).collect();
    let ran = complete(socket, &variables, "send a").await;
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_broker_nothing_is_offered_and_nothing_is_said() {
    nothing_is_offered(Path::new("/nonexistent/hived.sock"), Some(PATIENT)).await;
    nothing_is_offered(Path::new(&format!("/{}", "x".repeat(120))), Some(PATIENT)).await;
    let dir = tempfile::tempdir().expect("a directory");
    nothing_is_offered(dir.path(), Some(PATIENT)).await;
    // A peer that hangs up is no broker.
    let rude = dir.path().join("rude.sock");
    let listener = UnixListener::bind(&rude).expect("a socket");
    let hanging_up = tokio::spawn(async move {
        while let Ok((peer, _)) = listener.accept().await {
            drop(peer);
        }
    });
    nothing_is_offered(&rude, Some(PATIENT)).await;
    hanging_up.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_does_not_answer_is_not_waited_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let mute = dir.path().join("mute.sock");
    let listener = UnixListener::bind(&mute).expect("a socket");
    let (heard, mut hears) = tokio::sync::mpsc::unbounded_channel::<UnixStream>();
    let holding = tokio::spawn(async move {
        while let Ok((peer, _)) = listener.accept().await {
            heard.send(peer).expect("the test runs");
        }
    });
    // The peer never answers, so only the time limit ends this.
    nothing_is_offered(&mute, None).await;
    nothing_is_offered(&mute, Some("1")).await;
    assert!(hears.recv().await.is_some(), "it was asked");
    holding.abort();
}

#[tokio::test]
async fn a_line_that_makes_no_sense_is_no_error() {
    let nowhere = Path::new("/nonexistent/hived.sock");
    for (index, line) in
        [("9", "send a"), ("1", "--help send a"), ("3", "sned a b"), ("0", ""), ("2", "-- a")]
    {
        let variables = [("COMPLETE", "bash"), ("_CLAP_COMPLETE_INDEX", index)];
        let ran = complete(nowhere, &variables, line).await;
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line}");
    }
    let ran =
        ran(hivectl(nowhere).env("COMPLETE", "tcsh").output().await.expect("the binary runs"));
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(
        ran.err.contains("unknown shell `tcsh`"),
        "the error does not name the shell: {}",
        ran.err
    );
}

#[tokio::test]
async fn the_script_calls_the_program_as_it_was_called() {
    let nowhere = Path::new("/nonexistent/hived.sock");
    for (shell, word) in [
        ("bash", "complete -o nospace -o bashdefault -o nosort -F _clap_complete_hivectl hivectl"),
        ("elvish", "set edit:completion:arg-completer[hivectl]"),
        ("fish", "complete --keep-order --exclusive --command hivectl"),
        ("powershell", "Register-ArgumentCompleter -Native -CommandName hivectl"),
        ("zsh", "#compdef hivectl"),
    ] {
        let program = env!("CARGO_BIN_EXE_hivectl");
        let ran = ran(hivectl(nowhere)
            .args(["completions", shell])
            .output()
            .await
            .expect("the binary runs"));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{shell}");
        assert!(ran.out.contains(word) && ran.out.contains(program), "{shell}: {}", ran.out);
    }
    let mut by_name = hivectl(nowhere);
    by_name.arg0("hivectl").args(["completions", "bash"]).stdin(Stdio::null());
    let ran = ran(by_name.output().await.expect("the binary runs"));
    assert_contains(&ran.out, "\"hivectl\" -- \"${words[@]}\"");
}
