//! `hive fence` with real programs: what the kernel refuses to them, and what it does not.

use std::io::Write as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use hive_harness::isolation::raw::{ATTEMPTS, CLONE3};

/// Names the abstract socket that is tried from inside.
const SOCKET_ENV: &str = "FENCE_TEST_SOCKET";
const USER_NAMESPACES: &[&str] = &["--user-namespaces"];

fn fence(options: &[&str], program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hive"));
    command.arg("fence").args(options).arg("--").arg(program).args(args).stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Runs a shell script inside the fence and returns its output.
fn shell(script: &str) -> String {
    said(&fence(&[], "sh", &["-c", script]).output().expect("it runs"))
}

/// A copy of `host::allows` of the crate `hive-tests`, which cannot be used here.
fn allows(what: &str, possible: bool) -> bool {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    assert!(
        possible || !(is("CI", "true") || is("HIVE_TEST_STRICT", "1")),
        "this host does not allow {what}"
    );
    if !possible {
        drop(writeln!(std::io::stderr().lock(), "NOT TESTED: this host does not allow {what}"));
    }
    possible
}

/// Whether the kernel has Landlock with scopes.
fn has_scopes() -> bool {
    let apply = || hive_harness::fence::domain::apply(false).expect("applied");
    let domain = std::thread::spawn(apply).join().expect("ended");
    allows(
        "Landlock with scopes (Linux 6.12)",
        domain == hive_harness::fence::domain::Domain::Scoped,
    )
}

/// Not a test: the tests below start it inside the fence. Prints the result of each attempt.
#[test]
#[ignore = "started by other tests"]
#[expect(clippy::print_stdout, reason = "the other tests read it")]
fn attempts() {
    for (number, attempt) in ATTEMPTS.iter().enumerate() {
        let errno = attempt.run().and_then(|error| error.raw_os_error()).unwrap_or(0);
        println!("attempt-{number} {errno}");
    }
    let address = SocketAddr::from_abstract_name(std::env::var(SOCKET_ENV).unwrap_or_default())
        .expect("short");
    println!("socket {}", UnixStream::connect_addr(&address).is_ok());
    // A test process has threads; this one starts a program.
    let child = Command::new("sh")
        .args(["-c", "grep ^Seccomp: /proc/self/status"])
        .output()
        .expect("it runs");
    println!("child {}", said(&child).replace(['\t', '\n'], " "));
}

/// Returns the results of the attempts.
fn attempted(options: &[&str], socket: &str) -> Vec<(String, String)> {
    let own = std::env::current_exe().expect("this program has a path");
    let args = ["--exact", "fence::attempts", "--ignored", "--nocapture", "--test-threads=2"];
    let output = fence(options, own.to_str().expect("plain"), &args)
        .env(SOCKET_ENV, socket)
        .output()
        .expect("it runs");
    let words = said(&output);
    assert!(output.status.success(), "{words}");
    let pairs: Vec<_> = words
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .collect();
    pairs
        .into_iter()
        .filter(|(name, _)| name == "socket" || name == "child" || name.starts_with("attempt-"))
        .collect()
}

#[test]
fn the_kernel_refuses_what_the_fence_forbids() {
    let name = format!("hive-fence-{}", std::process::id());
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).expect("short"))
        .expect("bound");
    let found = attempted(&[], &name);
    assert_eq!(found.len(), ATTEMPTS.len() + 2, "{found:?}");
    for (number, (attempt, (tried, errno))) in ATTEMPTS.iter().zip(&found).enumerate() {
        let refusal = if attempt.name == CLONE3 { libc::ENOSYS } else { libc::EPERM };
        let wanted = (format!("attempt-{number}"), refusal.to_string());
        assert_eq!(wanted, (tried.clone(), errno.clone()), "{}", attempt.name);
    }
    let rest: Vec<_> = found[ATTEMPTS.len()..].iter().map(|(_, value)| value.trim()).collect();
    assert_eq!(rest[1], "Seccomp: 2");
    if has_scopes() {
        assert_eq!(rest[0], "false");
    }
}

#[test]
fn user_namespaces_lift_only_the_limits_on_namespaces() {
    let found = attempted(USER_NAMESPACES, "none");
    for (attempt, (_, errno)) in ATTEMPTS.iter().zip(&found) {
        let is_refused = *errno == libc::EPERM.to_string() || *errno == libc::ENOSYS.to_string();
        assert_eq!(is_refused, attempt.is_always_refused, "{attempt:?}: {errno}");
    }
    let makes = |options: &[&str]| {
        fence(options, "unshare", &["-U", "true"]).output().expect("it runs").status.success()
    };
    let is_possible = Command::new("unshare")
        .args(["-U", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    if allows("user namespaces", is_possible) {
        assert!(makes(USER_NAMESPACES) && !makes(&[]));
    }
}

/// The user that root becomes for a test: the kernel lets root of the host read what a domain
/// hides.
const NOBODY: u32 = 65_534;

#[test]
fn processes_outside_can_neither_be_read_nor_signalled_and_those_inside_can() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).expect("set");
    let hive = dir.path().join("hive");
    std::fs::copy(env!("CARGO_BIN_EXE_hive"), &hive).expect("copied");
    let start = |command: &mut Command| {
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts")
    };
    let mut outside = start(Command::new("sleep").arg("1000").env("SECRET", "x"));
    let mut beside =
        start(Command::new(&hive).args(["fence", "--", "sh", "-c", "echo; exec sleep 1000"]));
    // The process prints only after it has entered its own fence.
    let mut line = [0; 1];
    std::io::Read::read_exact(beside.stdout.as_mut().expect("a pipe"), &mut line).expect("printed");
    let script = "for pid in $1 $2; do cat /proc/$pid/environ >/dev/null 2>&1 || echo no environment; (exec 3</proc/$pid/mem) 2>/dev/null || echo no memory;
                  kill -0 $pid 2>/dev/null || echo no signal; done
                  sleep 1000 & cat /proc/$!/environ >/dev/null && kill $! && wait $! 2>/dev/null; echo inside $?";
    let [first, second] = [&outside, &beside].map(|child| child.id().to_string());
    let words =
        start(Command::new(&hive).args(["fence", "--", "sh", "-c", script, "sh", &first, &second]))
            .wait_with_output();
    for child in [&mut outside, &mut beside] {
        child.kill().expect("it lives");
        child.wait().expect("it ends");
    }
    if has_scopes() {
        let one = "no environment\nno memory\nno signal\n";
        assert_eq!(said(&words.expect("it ends")), format!("{one}{one}inside 143\n"));
    }
}

#[test]
fn files_can_be_moved_and_linked_between_directories() {
    let dir = tempfile::tempdir().expect("a directory");
    let script = format!(
        "cd {} && mkdir -p a b/c && echo x > a/f && mv a/f b/c/f && ln b/c/f a/g && mv b/c a/c && cat a/c/f a/g",
        dir.path().display()
    );
    assert_eq!(shell(&script), "x\nx\n");
}

#[test]
fn a_program_of_another_architecture_is_killed() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    // The smallest 32-bit program: `exit(0)` by `int 0x80`.
    let mut program: Vec<u8> = Vec::new();
    program.extend(b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0");
    for half in [2_u16, 3] {
        program.extend(half.to_le_bytes());
    }
    for word in [1_u32, 0x0804_8054, 52, 0, 0] {
        program.extend(word.to_le_bytes());
    }
    for half in [52_u16, 32, 1, 0, 0, 0] {
        program.extend(half.to_le_bytes());
    }
    for word in [1_u32, 0, 0x0804_8000, 0x0804_8000, 0x60, 0x60, 5, 0x1000] {
        program.extend(word.to_le_bytes());
    }
    program.extend(b"\x31\xdb\xb8\x01\0\0\0\xcd\x80\0\0\0");
    let dir = tempfile::tempdir().expect("a directory");
    let (bytes, path) = (dir.path().join("bytes"), dir.path().join("exit"));
    std::fs::write(&bytes, &program).expect("written");
    // Another process writes the program: a child that another test forks at this moment would have
    // a copy of our descriptor, and a file that is open for writing cannot be executed.
    let copied = Command::new("install").arg("-m755").args([&bytes, &path]).status();
    assert!(copied.expect("`install` runs").success());
    let runs = Command::new(&path).status().is_ok_and(|status| status.success());
    if allows("32-bit programs", runs) {
        let status = fence(&[], path.to_str().expect("plain"), &[]).status().expect("it runs");
        assert_eq!(status.signal(), Some(libc::SIGSYS), "{status}");
    }
}

#[test]
fn the_usual_programs_run_inside() {
    let programs: [(&str, &[&str], &str); 5] = [
        ("bash", &["-c", "echo $(( $(ulimit -n) <= 65536 )) $(( $(ulimit -u) <= 4096 ))"], "1 1"),
        (
            "python3",
            &[
                "-c",
                "import threading as t; x = t.Thread(target=print, args=('threads',)); x.start(); x.join()",
            ],
            "threads",
        ),
        (
            "node",
            &[
                "-e",
                "require('fs').promises.readFile('/etc/passwd').then(() => console.log('read'))",
            ],
            "read",
        ),
        ("gdb", &["-batch", "-ex", "run", "--args", "true"], "exited normally"),
        ("cargo", &["--version"], "cargo 1"),
    ];
    for (program, args, wanted) in programs {
        let is_there = Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success());
        if is_there {
            let words = said(&fence(&[], program, args).output().expect("it runs"));
            assert!(words.contains(wanted), "{program}: {words}");
        }
    }
}

#[test]
fn the_program_has_the_same_process_group_pipes_arguments_and_exit_code() {
    let script = r#"read -r line; echo "$$ $line $1,$2"; exit 41"#;
    let mut command = fence(&[], "sh", &["-c", script, "sh", "--user-namespaces", ""]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    child.stdin.take().expect("a pipe").write_all(b"hello\n").expect("written");
    let pid = child.id();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("{pid} hello --user-namespaces,\n")
    );
    assert_eq!(output.status.code(), Some(41));
}

#[test]
fn a_program_that_does_not_run_is_an_error_with_the_codes_of_a_shell() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = dir.path().join("text");
    std::fs::write(&text, "no program").expect("written");
    std::fs::set_permissions(&text, std::fs::Permissions::from_mode(0o644)).expect("set");
    for (program, code) in [(Path::new("/no/such/program"), 127), (text.as_path(), 126)] {
        let output = fence(&[], program.to_str().expect("plain"), &[]).output().expect("it runs");
        let words = said(&output);
        assert_eq!(output.status.code(), Some(code), "{words}");
        assert!(
            words.contains("hive fence cannot run")
                && words.contains(&program.display().to_string()),
            "{words}"
        );
    }
    assert_eq!(fence(&[], "--", &[]).output().expect("it runs").status.code(), Some(127));
}
