//! A shell completes `hivectl` in a hive of 1,000 agents: the real broker, the script as it is
//! printed, a real bash.

use std::process::Output;

use hive_tests::binary;
use hive_tests::rig::{Rig, soon};
use pty_process::Size;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

/// A shell waits for a quarter of a second; a test on a busy machine needs longer.
const PATIENT: (&str, &str) = ("HIVE_COMPLETION_MS", "60000");

/// A running hive of 998 agents `a0`, `a1`, …, one of another beginning, and one to be found by its
/// first letters.
async fn thousand() -> Rig {
    let mut config = "[hive]\nname = \"crowd\"\n[agents.b]\n[agents.lonely]\n".to_owned();
    config.extend((0..998).map(|number| format!("[agents.a{number}]\n")));
    let mut rig = Rig::new(&config);
    rig.start_broker().await;
    rig
}

/// Returns the names that begin with this text.
fn beginning(with: &str) -> Vec<String> {
    let mut names: Vec<String> = (0..998)
        .map(|number| format!("a{number}"))
        .chain(["b".to_owned(), "lonely".to_owned()])
        .collect();
    names.retain(|name| name.starts_with(with));
    names.sort();
    names
}

/// Builds a program with the environment of a user at a prompt of this hive.
fn at_prompt(rig: &Rig, program: &str) -> Command {
    let hivectl = binary::find("hivectl", "hivectl");
    let bin = hivectl.parent().expect("a program lies in a directory").display().to_string();
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", format!("{bin}:/usr/bin:/bin"))
        .env("HIVE_SOCKET", rig.operator_socket())
        .envs([PATIENT]);
    command.kill_on_drop(true);
    command
}

/// Returns the candidates for the end of a line with their descriptions, as fish asks for them;
/// never an error.
async fn offered(rig: &Rig, words: &[&str]) -> Vec<String> {
    let mut command = at_prompt(rig, "hivectl");
    let output = command
        .env("COMPLETE", "fish")
        .args(["--", "hivectl"])
        .args(words)
        .output()
        .await
        .expect("hivectl runs");
    lines(output)
}

fn lines(output: Output) -> Vec<String> {
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn exactly_the_names_with_that_beginning_are_offered() {
    let mut rig = thousand().await;
    for with in ["a", "a9", "a99", "b", "lon", "c"] {
        let mut names = offered(&rig, &["send", with]).await;
        names.sort();
        assert_eq!(names, beginning(with), "{with}");
    }
    assert_eq!(beginning("a").len(), 998);

    rig.stop_broker().await;
    assert_eq!(offered(&rig, &["send", "a"]).await, [""; 0], "who is away offers nothing");
}

#[tokio::test]
async fn ids_are_offered_with_descriptions() {
    let rig = thousand().await;
    let operator = rig.operator().await;
    let message = operator.send("a7", "What is left?").await;
    let asked = rig
        .hivectl(&["ask", "a7", "Is the build\ngreen?", "--option", "yes", "--option", "not yet"])
        .await;
    let question = asked.stdout.trim().to_owned();
    let told = [format!("{question}\toperator asks a7: Is the build⏎green?")];
    for words in [&["answer", ""][..], &["questions", "cancel", ""]] {
        let offered: Vec<String> =
            offered(&rig, words).await.into_iter().filter(|line| !line.starts_with('-')).collect();
        assert_eq!(offered, told, "{words:?}");
    }
    let choices = offered(&rig, &["answer", &question, "--choice", ""]).await;
    assert_eq!(choices, ["yes", "2\tnot yet"], "what would need quotes is offered by its number");
    let mail = offered(&rig, &["inbox", "read", "--agent", "a7", &message.to_string()]).await;
    assert_eq!(mail, [format!("{message}\tfrom operator: What is left?")]);
    rig.end().await;
}

/// The functions of the script, called as bash calls them.
#[tokio::test]
async fn the_script_fills_bashs_list() {
    let rig = thousand().await;
    let line = "source <(hivectl completions bash); COMP_WORDS=(hivectl send a99); COMP_CWORD=2; COMP_TYPE=9; \
                _clap_complete_hivectl hivectl a99 send; printf '%s\\n' \"${COMPREPLY[@]}\"; complete -p hivectl";
    let mut filled = lines(
        at_prompt(&rig, "bash").args(["--norc", "-c", line]).output().await.expect("bash runs"),
    );
    let registered = filled.pop().expect("bash knows the function");
    assert!(registered.ends_with("-F _clap_complete_hivectl hivectl"), "{registered}");
    filled.sort();
    assert_eq!(filled, beginning("a99"));
    rig.end().await;
}

/// A user types, presses Tab, and sends the line that bash has made of it.
#[tokio::test]
async fn tab_completes_the_line() {
    let rig = thousand().await;
    let (mut pty, side) = pty_process::open().expect("the kernel has terminals");
    pty.resize(Size::new(24, 200)).expect("a size");
    let hivectl = binary::find("hivectl", "hivectl");
    let bin = hivectl.parent().expect("a program lies in a directory").display().to_string();
    let bash = pty_process::Command::new("bash")
        .args(["--norc", "--noprofile", "-i"])
        .env_clear()
        .kill_on_drop(true);
    let bash = bash
        .env("PATH", format!("{bin}:/usr/bin:/bin"))
        .env("HIVE_SOCKET", rig.operator_socket())
        .envs([PATIENT]);
    let mut bash = bash
        .env("TERM", "dumb")
        .env("PS1", "ready> ")
        .env("HISTFILE", "/dev/null")
        .spawn(side)
        .expect("bash runs");
    let mut shown = String::new();
    // Typed text waits in the terminal until bash reads it, but bash reads keys as keys only at the
    // prompt.
    shows(&mut pty, &mut shown, "ready> ").await;
    pty.write_all(b"source <(hivectl completions bash); echo sou''rced\n")
        .await
        .expect("bash reads");
    shows(&mut pty, &mut shown, "sourced\r\nready> ").await;
    pty.write_all(b"hivectl sen\tlon\thello\n").await.expect("bash reads");
    shows(&mut pty, &mut shown, "accepted, 1 recipient").await;
    pty.write_all(b"exit\n").await.expect("bash reads");
    soon("bash ends", bash.wait()).await.expect("it can be waited for");
    let said = rig.operator().await.deliveries("lonely", &[]).await;
    let bodies: Vec<&str> =
        said.iter().filter_map(|delivery| Some(delivery.message.as_ref()?.body.as_str())).collect();
    assert_eq!(bodies, ["hello"]);
    rig.end().await;
}

/// Reads on until this is shown.
async fn shows(pty: &mut pty_process::Pty, shown: &mut String, what: &str) {
    let read = async {
        while !shown.contains(what) {
            let mut bytes = [0; 4096];
            let count = pty.read(&mut bytes).await.unwrap_or(0);
            assert!(count > 0, "bash ended without showing `{what}`:\n{shown}");
            shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        shown.clear();
    };
    soon(&format!("bash shows `{what}`"), read).await;
}
