//! Plugin steps with a stand-in for claude.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use clap::Parser as _;

use super::*;
use crate::cli::{Cli, Command as Asked};

fn plan(more: &[&str]) -> Result<Plan, InvalidList> {
    let all = ["hive", "serve"].iter().chain(more);
    let Asked::Serve(args) = Cli::try_parse_from(all).expect("parses").command else {
        unreachable!("serve was asked for")
    };
    Plan::new(&args.extras)
}

/// A claude of this shell script, which finds `$DIR`; it is run by a shell, so that no file has to
/// be executable while others fork.
struct Stage {
    dir: tempfile::TempDir,
    environment: BTreeMap<OsString, OsString>,
}

impl Stage {
    fn set(script: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let program = dir.path().join("script");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("written");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("set");
        // By another process, so that no fork of another test has it open for writing.
        let copied = std::process::Command::new("install")
            .arg("-m755")
            .arg(&program)
            .arg(dir.path().join("claude"))
            .status();
        assert!(copied.expect("install runs").success());
        let environment = [("PATH", "/usr/bin:/bin".into()), ("DIR", dir.path().into())];
        Self {
            environment: environment
                .map(|(name, value): (&str, OsString)| (name.into(), value))
                .into(),
            dir,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    async fn install(&self, plan: &Plan, step_max: Duration) -> Vec<String> {
        install_within(
            &Program::plain(self.path("claude")),
            &self.environment,
            self.dir.path(),
            plan,
            step_max,
        )
        .await
    }
}

#[test]
fn the_official_marketplace_is_there_only_where_plugins_are_named() {
    assert!(plan(&[]).expect("valid").is_empty());
    assert!(plan(&["--plugins-auto-update", "1"]).expect("valid").steps().is_empty());
    let named = plan(&["--plugins", r#"["a@b"]"#]).expect("valid");
    assert_eq!(named.marketplaces, [OFFICIAL_MARKETPLACE]);
    let own = plan(&["--plugins", r#"["a@b"]"#, "--marketplaces", r#"["x/y"]"#]).expect("valid");
    assert_eq!(own.marketplaces, ["x/y"]);
    let none = plan(&["--plugins", r#"["a@b"]"#, "--marketplaces", "[]"]).expect("valid");
    assert!(none.marketplaces.is_empty() && !none.is_empty());
}

#[test]
fn lists_that_could_become_options_are_refused() {
    for wrong in ["", "x", "{}", "[1]", r#"["--scope"]"#, r#"[""]"#, r#"["a\nb"]"#] {
        let error = plan(&["--plugins", wrong]).expect_err(wrong).to_string();
        assert!(error.starts_with("HIVE_PLUGINS must be a JSON array"), "{error}");
        let error = plan(&["--marketplaces", wrong]).expect_err(wrong).to_string();
        assert!(error.starts_with("HIVE_MARKETPLACES must"), "{error}");
    }
}

#[tokio::test]
async fn steps_come_in_their_order_and_a_failure_ends_none_of_them() {
    let stage = Stage::set(
        r#"echo "$* $GIT_TERMINAL_PROMPT" >> "$DIR/calls"
        case "$*" in *broken*) echo "out"; printf '\033[31merr\n\n  why\n' >&2; exit 3;; *killed*) echo "last";  kill -9 $$;; esac"#,
    );
    let plan = Plan {
        marketplaces: vec!["broken/market".into(), "good/market".into()],
        plugins: vec!["killed@x".into(), "good@y".into()],
        auto_update: true,
    };
    let failures = stage.install(&plan, STEP_MAX).await;
    let calls = std::fs::read_to_string(stage.path("calls")).expect("called");
    let wanted = "plugin marketplace add broken/market 0\nplugin marketplace add good/market 0\nplugin marketplace update 0\n\
                  plugin install killed@x 0\nplugin install good@y 0\n";
    assert_eq!(calls, wanted);
    let wanted = [
        "`claude plugin marketplace add broken/market` failed with exit code 3: [31merr why",
        "`claude plugin install killed@x` was ended by a signal: last",
    ];
    assert_eq!(failures, wanted);
}

#[tokio::test]
async fn a_step_that_hangs_is_ended_with_all_that_it_started() {
    let stage = Stage::set(
        r#"mkfifo "$DIR/pipe"; (exec 3<> "$DIR/alive"; cat "$DIR/pipe") & cat "$DIR/pipe""#,
    );
    let alive = stage.path("alive");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &alive,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a pipe");
    let mut reader =
        tokio::net::unix::pipe::OpenOptions::new().open_receiver(&alive).expect("opens");
    let plan = Plan { plugins: vec!["a".into()], ..Plan::default() };
    let failures = stage.install(&plan, Duration::from_millis(500)).await;
    assert_eq!(failures, ["`claude plugin install a` did not end within 0.5 s"]);
    // The child of the step was the only writer: when it is dead, the pipe is at its end.
    let mut byte = [0];
    let end = tokio::time::timeout(Duration::from_secs(10), reader.read(&mut byte)).await;
    assert_eq!(end.expect("no process writes any more").expect("the end"), 0);
}

#[tokio::test]
async fn endless_output_is_bounded_and_many_failures_are_counted() {
    let stage = Stage::set("head -c 1000000 /dev/zero | tr '\\0' x; exit 1");
    let plan = Plan {
        plugins: (0..FAILURES_MAX + 2).map(|n| format!("p{n}")).collect(),
        ..Plan::default()
    };
    let failures = stage.install(&plan, STEP_MAX).await;
    assert_eq!(failures.len(), FAILURES_MAX + 1);
    assert!(failures[0].len() < WORDS_CHARS_MAX + 100, "{}", failures[0].len());
    assert_eq!(failures[FAILURES_MAX], "2 more steps failed; the harness's log names them");
}

#[tokio::test]
async fn a_claude_that_is_not_there_is_a_sentence() {
    let dir = tempfile::tempdir().expect("a directory");
    let plan = Plan { plugins: vec!["a".into()], ..Plan::default() };
    let failures =
        install(&Program::plain(dir.path().join("no")), &BTreeMap::new(), dir.path(), &plan).await;
    assert!(
        failures[0].starts_with("`claude plugin install a` cannot be started: "),
        "{failures:?}"
    );
}
