//! Commands of claude other than turns: the login, plugins, its version.

use std::process::Output;

use hive_tests::scripted::script::Step;
use hive_tests::scripted::{auth, plugins};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::rig::{Rig, run};

fn command(rig: &Rig, line: &str) -> Command {
    let mut command = Command::new(hive_tests::binary::find("hive-scripted", "scripted-claude"));
    command
        .args(line.split(' '))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", rig.path("home"));
    command
}

async fn outcome(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().await.expect("it runs");
    (
        status.code(),
        String::from_utf8_lossy(&stdout).into_owned(),
        String::from_utf8_lossy(&stderr).into_owned(),
    )
}

/// A home that needs a login with this code.
fn locked(rig: &Rig, code: &str) {
    std::fs::create_dir(rig.path("home/.claude")).expect("a directory");
    std::fs::write(rig.path("home").join(auth::CODE_FILE), code).expect("a file");
}

async fn login(rig: &Rig, typed: &str) -> (Option<i32>, String) {
    let mut command = command(rig, "auth login");
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("piped").write_all(typed.as_bytes()).await.expect("it listens");
    let output = child.wait_with_output().await.expect("it ends");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test]
async fn without_a_login_no_turn_succeeds_and_the_right_code_brings_one() {
    let rig = Rig::new().await;
    assert_eq!(
        outcome(&mut command(&rig, "auth status")).await.0,
        Some(0),
        "nothing says that one is needed"
    );
    locked(&rig, "good#code\n");
    let (code, status, _) = outcome(&mut command(&rig, "auth status")).await;
    let status: Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!((code, &status["loggedIn"]), (Some(1), &false.into()));
    let turn = run(&mut rig.scripted(None), "Message 17 from agent bob:\n| hi\n").await;
    assert_eq!(
        (turn.code, &turn.result()["result"]),
        (Some(1), &"Not logged in · Please run /login".into())
    );

    let (code, words) = login(&rig, "nonsense\nother#code\n").await;
    assert_eq!(code, Some(1), "{words}");
    assert!(
        words.contains("That doesn't look like the full code") && words.contains("Couldn't log in"),
        "{words}"
    );
    assert!(!auth::credentials(&rig.path("home")).exists());
    assert_eq!(login(&rig, "").await.0, Some(130), "nothing was typed");

    let (code, words) = login(&rig, "good#code\n").await;
    assert!(
        code == Some(0) && words.contains(auth::URL) && words.ends_with("Login successful.\n"),
        "{words}"
    );
    assert_eq!(outcome(&mut command(&rig, "auth status")).await.0, Some(0));
    assert_eq!(
        run(&mut rig.scripted(None), "Message 17 from agent bob:\n| hi\n").await.code,
        Some(0)
    );
}

#[tokio::test]
async fn the_real_one_reports_a_missing_login_by_the_same_exit_code_and_fields() {
    let rig = Rig::new().await;
    let real = hive_tests::claude::find().unwrap_or_else(|error| panic!("{error}"));
    let mut asked = Command::new(real);
    asked
        .args(["auth", "status"])
        .env_clear()
        .envs(hive_tests::claude::environment(&rig.path("home"), "http://127.0.0.1:1"));
    let (with_key, _, _) = outcome(&mut asked).await;
    let (code, status, _) = outcome(asked.env_remove("ANTHROPIC_API_KEY")).await;
    assert_eq!((with_key, code), (Some(0), Some(1)));
    let scripted = Rig::new().await;
    locked(&scripted, "good#code");
    let (_, told, _) = outcome(&mut command(&scripted, "auth status")).await;
    let [real, scripted]: [Value; 2] =
        [status, told].map(|text| serde_json::from_str(&text).expect("JSON"));
    for (name, _) in scripted.as_object().expect("an object") {
        assert!(real.get(name).is_some(), "the real one has no {name}: {real}");
    }
    assert_eq!(scripted["loggedIn"], real["loggedIn"]);
    assert_eq!(scripted["authMethod"], real["authMethod"]);
}

#[tokio::test]
async fn plugins_are_added_and_installed_in_files() {
    let rig = Rig::new().await;
    let (code, _, words) = outcome(&mut command(&rig, "plugin install hello@market")).await;
    assert!(code == Some(1) && words.contains("not found in marketplace \"market\""), "{words}");
    let (code, _, words) =
        outcome(&mut command(&rig, "plugin marketplace add /no/such/place")).await;
    assert_eq!((code, words.as_str()), (Some(1), "✘ Path does not exist: /no/such/place\n"));
    for line in [
        "plugin marketplace add owner/market",
        "plugin marketplace update",
        "plugin install hello@market",
    ] {
        let (code, words, _) = outcome(&mut command(&rig, line)).await;
        assert!(code == Some(0) && words.contains('✔'), "{line}: {words}");
    }
    let read = |file: &str| std::fs::read_to_string(rig.path("home").join(file)).expect("a file");
    assert!(read(plugins::MARKETPLACES_FILE).contains("owner/market"));
    assert!(read(plugins::INSTALLED_FILE).contains("hello@market"));
}

#[tokio::test]
async fn a_script_decides_about_commands() {
    let rig = Rig::new().await;
    let fail = vec![Step::Stderr { stderr: "✘ no network".to_owned() }, Step::Exit { exit: 1 }];
    let once = Step::First { first: rig.path("once"), steps: fail.clone() };
    let script = rig.script([
        ("", vec![Step::Exit { exit: 9 }]),
        ("$ plugin install", fail),
        ("$ auth status", vec![once]),
    ]);
    let scripted = |line: &str| {
        let mut command = command(&rig, line);
        command.env("SCRIPTED_CLAUDE_FILE", &script);
        command
    };
    assert_eq!(
        outcome(&mut scripted("plugin install a@b")).await,
        (Some(1), String::new(), "✘ no network\n".to_owned())
    );
    assert_eq!(outcome(&mut scripted("plugin marketplace add a/b")).await.0, Some(0));
    assert_eq!(outcome(&mut scripted("auth status")).await.0, Some(1));
    assert_eq!(outcome(&mut scripted("auth status")).await.0, Some(0), "the first time only");
}

#[tokio::test]
async fn it_can_appear_as_another_version() {
    let rig = Rig::new().await;
    let (_, words, _) =
        outcome(command(&rig, "--version").env("SCRIPTED_CLAUDE_VERSION", "9.9.9")).await;
    assert_eq!(words, "9.9.9 (Claude Code)\n");
    let turn = run(
        rig.scripted(None).env("SCRIPTED_CLAUDE_VERSION", "9.9.9"),
        "Message from self:\n| continue\n",
    )
    .await;
    assert_eq!(turn.init()["claude_code_version"], "9.9.9");
}
