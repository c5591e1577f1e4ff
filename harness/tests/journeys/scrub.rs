//! `hive scrub` with real programs: what reaches them, and what is said where they do not run.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The program, with an environment full of keys.
fn scrub(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hive"));
    command.arg("scrub").args(args).env_clear();
    for (name, value) in [
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/h"),
        ("LC_TIME", "C"),
        ("ANTHROPIC_API_KEY", "key"),
        ("CLAUDE_CODE_MESSAGING_TOKEN", "key"),
        ("AWS_SECRET_ACCESS_KEY", "key"),
        ("HIVE_PROCESS_TOKEN", "key"),
        ("NOTES_KEY", "kept"),
    ] {
        command.env(name, value);
    }
    command
}

#[test]
fn keys_are_removed_and_kept_variables_arrive() {
    let output =
        scrub(&["--keep=NOTES_KEY", "--keep", "NOT_SET", "--", "env"]).output().expect("it runs");
    let mut told: Vec<&str> = std::str::from_utf8(&output.stdout).expect("text").lines().collect();
    told.sort_unstable();
    assert_eq!(told, ["HOME=/h", "LC_TIME=C", "NOTES_KEY=kept", "PATH=/usr/bin:/bin"]);
}

#[test]
fn the_program_has_the_same_process_pipes_arguments_and_exit_code() {
    let script = r#"read -r line; echo "$$ $line $1,$2"; exit 41"#;
    let mut command = scrub(&["--", "sh", "-c", script, "sh", "--keep=x", ""]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    child.stdin.take().expect("a pipe").write_all(b"hello\n").expect("written");
    let pid = child.id();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{pid} hello --keep=x,\n"));
    assert_eq!(output.status.code(), Some(41));
}

#[test]
fn a_program_that_does_not_run_is_reported_with_the_codes_of_a_shell() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = dir.path().join("text");
    std::fs::write(&text, "no program").expect("written");
    for (program, code, words) in [
        (Path::new("no-such-program"), 127, "check `command` of the MCP server"),
        (Path::new("/no/such/program"), 127, "check `command` of the MCP server"),
        (text.as_path(), 126, "check that the file is a program"),
        (dir.path(), 126, "check that the file is a program"),
    ] {
        let output = scrub(&["--", program.to_str().expect("plain")]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(
            said.contains(words)
                && said.contains(&format!("`{}`", program.display()))
                && said.lines().count() == 1,
            "{said}"
        );
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn without_a_program_it_is_called_in_a_wrong_way() {
    for args in [&[][..], &["--"][..], &["--keep", "A"][..], &["env"][..]] {
        assert_eq!(scrub(args).output().expect("it runs").status.code(), Some(2), "{args:?}");
    }
}
