//! Real commands in real process groups, and a server on the loopback.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hive_core::config::Notify;
use hive_core::secret::{Place, Secret};
use hive_core::time::WallTime;
use rustix::process::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::net::unix::pipe::{OpenOptions, Receiver};

use super::command::Command;
use super::webhook::Webhook;
use super::{Notifier, NotifyError, SetUpError, item};
use crate::engine::mail::outbox::{Item, Kind};

/// Longer than anything here takes.
const GUARD: Duration = Duration::from_secs(20);

fn an_item() -> Item {
    Item {
        row: 1,
        kind: Kind::DeadLetter,
        agent: "bob".to_owned(),
        id: 42,
        text: "two\nlines, \"quoted\" $(touch x)\0.".to_owned(),
        create_time: WallTime(1_800_000_000_250),
        failures: 0,
    }
}

const JSON: &str = "{\"kind\":\"dead_letter\",\"agent\":\"bob\",\"id\":42,\"text\":\"two\\nlines, \\\"quoted\\\" $(touch x)\\u0000.\",\
                    \"create_time\":\"2027-01-15T08:00:00.250Z\"}";

/// A shell script as a command; `$1` is a directory of its own.
struct Script {
    dir: tempfile::TempDir,
    command: Command,
}

impl Script {
    fn new(script: &str) -> Self {
        Self::with_env(script, std::env::vars_os().filter(|(name, _)| name == "PATH"))
    }

    fn with_env(script: &str, env: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let words =
            ["sh", "-c", script, "script", &dir.path().display().to_string()].map(str::to_owned);
        Self { command: Command::new(words.to_vec(), env), dir }
    }

    async fn run(&self) -> Result<(), NotifyError> {
        tokio::time::timeout(GUARD, self.command.run(&an_item())).await.expect("it ends")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the script wrote it")
    }

    /// A pipe by which the script says something.
    fn pipe(&self) -> Pipe {
        let path = self.path("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU)
            .expect("a pipe with a name");
        // Open for writing, too, so that it has no end before it has a beginning.
        let open = OpenOptions::new().read_write(true).open_receiver(&path).expect("it opens");
        Pipe { open: tokio::io::BufReader::new(open), path }
    }
}

/// A named pipe, whose end shows that no process that has it open is alive.
struct Pipe {
    open: tokio::io::BufReader<Receiver>,
    path: PathBuf,
}

impl Pipe {
    async fn line(&mut self) -> String {
        let mut line = String::new();
        let read = tokio::time::timeout(GUARD, self.open.read_line(&mut line)).await;
        read.expect("something is said").expect("it is a pipe");
        line.trim().to_owned()
    }

    /// Waits until all processes that have it open are dead.
    async fn all_dead(self) {
        let mut open = OpenOptions::new().open_receiver(&self.path).expect("it opens");
        drop(self.open);
        let end = async { while open.read(&mut [0; 64]).await.expect("it is a pipe") > 0 {} };
        tokio::time::timeout(GUARD, end).await.expect("its writers die");
    }
}

#[tokio::test]
async fn a_command_gets_the_item_on_stdin_and_in_variables() {
    let script = Script::new("cat > $1/stdin; env > $1/env");
    script.run().await.expect("it worked");
    assert_eq!(script.read("stdin"), JSON);
    let env = script.read("env");
    for line in
        ["HIVE_ATTENTION_KIND=dead_letter", "HIVE_ATTENTION_AGENT=bob", "HIVE_ATTENTION_ID=42"]
    {
        assert!(env.lines().any(|found| found == line), "{line}: {env}");
    }
    assert!(
        env.contains("HIVE_ATTENTION_TEXT=two\nlines, \"quoted\" $(touch x)\u{fffd}.\n"),
        "{env}"
    );
    assert!(!Path::new("x").exists(), "nothing of the text is run");
}

#[tokio::test]
async fn a_command_gets_only_the_needed_part_of_the_brokers_environment() {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let env =
        [("PATH", own), ("HOME", "/h".into()), ("LANG", "C".into()), ("DISPLAY", ":7".into())];
    let secrets = [
        ("ANTHROPIC_API_KEY", "s".into()),
        ("HIVE_LOG", "debug".into()),
        ("NOTIFY_SOCKET", "/n".into()),
    ];
    let env = env.into_iter().chain(secrets).map(|(name, value)| (OsString::from(name), value));
    let script =
        Script::with_env("env -0 | tr '\\n\\0' ' \\n' | cut -d= -f1 | sort > $1/names", env);
    script.run().await.expect("it worked");
    let names = script.read("names");
    let names: Vec<&str> =
        names.lines().filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name)).collect();
    let wanted = [
        "DISPLAY",
        "HIVE_ATTENTION_AGENT",
        "HIVE_ATTENTION_ID",
        "HIVE_ATTENTION_KIND",
        "HIVE_ATTENTION_TEXT",
        "HOME",
        "LANG",
        "PATH",
    ];
    assert_eq!(names, wanted);
}

#[tokio::test]
async fn the_error_of_a_failed_command_has_the_end_of_its_output() {
    let script =
        Script::new("head -c 100000 /dev/zero | tr '\\0' x; echo; echo out; echo bad >&2; exit 3");
    let error = script.run().await.expect_err("it failed");
    let NotifyError::Ended { program, status, tail } = &error else { panic!("{error}") };
    assert_eq!((program.as_str(), status.code(), tail.len()), ("sh", Some(3), 2 * 1024 - 1));
    assert!(tail.ends_with("x\nout\nbad"), "{tail}");
    assert!(
        error
            .to_string()
            .starts_with("`sh` ended with exit status: 3; the end of its output: \"xxx"),
        "{error}"
    );

    let error = Script::new("kill -TERM $$").run().await.expect_err("it died");
    assert_eq!(
        error.to_string(),
        "`sh` ended with signal: 15 (SIGTERM); the end of its output: \"\""
    );
}

#[tokio::test]
async fn the_error_of_a_missing_command_names_it() {
    let command = Command::new(vec!["/no/such/program".to_owned()], []);
    let error = command.run(&an_item()).await.expect_err("there is none");
    assert_eq!(
        error.to_string(),
        "`/no/such/program` cannot be started: No such file or directory (os error 2)"
    );
}

#[tokio::test]
async fn a_command_need_not_read_its_input() {
    Script::new("exec <&-; exit 0").run().await.expect("it worked");
    Script::new("exit 0").run().await.expect("it worked");
    let big = Item { text: "x".repeat(1024 * 1024), ..an_item() };
    let command = Command::new(
        ["sh", "-c", "exec <&-; sleep 0"].map(str::to_owned).to_vec(),
        std::env::vars_os(),
    );
    // Longer than a pipe or a variable may hold: such an item is never made, and would still do no
    // harm.
    assert!(matches!(command.run(&big).await, Err(NotifyError::Start { .. })));
}

#[tokio::test]
async fn a_command_that_hangs_is_killed_with_all_that_it_started() {
    let script =
        Script::new("exec 9> $1/pipe; echo before; echo after >&2; sleep 1000 & echo $! >&9; wait");
    let (mut pipe, item) = (script.pipe(), an_item());
    let running = async {
        let started = pipe.line().await;
        assert!(!started.is_empty());
        // From here on nothing happens but by time, which jumps to the limit.
        tokio::time::pause();
    };
    let (told, ()) = tokio::join!(script.command.run(&item), running);
    let error = told.expect_err("it hung");
    tokio::time::resume();
    assert_eq!(
        error.to_string(),
        "`sh` did not end within 30 s and was killed; the end of its output: \"before\\nafter\""
    );
    pipe.all_dead().await;
}

#[tokio::test]
async fn processes_of_a_commands_group_end_with_it() {
    let script = Script::new("exec 9> $1/pipe; sleep 1000 & echo $! >&9");
    let mut pipe = script.pipe();
    let (told, started) = tokio::join!(script.run(), pipe.line());
    told.expect("it worked");
    assert!(!started.is_empty());
    pipe.all_dead().await;
}

#[tokio::test]
async fn a_process_outside_the_group_with_open_output_delays_no_notification() {
    let script = Script::new(
        "exec 9> $1/pipe; setsid sh -c 'echo $$ >&9; exec sleep 1000' & read x < $1/go; echo why; exit 1",
    );
    let mut pipe = script.pipe();
    let go = script.path("go");
    rustix::fs::mkfifoat(rustix::fs::CWD, &go, rustix::fs::Mode::RWXU).expect("a pipe with a name");
    let running = async {
        let started = pipe.line().await;
        tokio::fs::write(&go, "go\n").await.expect("the script reads");
        started
    };
    let (told, started) = tokio::join!(script.run(), running);
    let error = told.expect_err("it failed");
    assert!(error.to_string().ends_with("the end of its output: \"why\""), "{error}");
    let started = started.parse().ok().and_then(Pid::from_raw).expect("a process id");
    rustix::process::kill_process(started, rustix::process::Signal::KILL)
        .expect("it lived on, as it wanted to");
    pipe.all_dead().await;
}

#[tokio::test]
async fn a_notification_that_is_dropped_ends_at_once() {
    let script = Script::new("exec 9> $1/pipe; sleep 1000 & echo $! >&9; wait");
    let (mut pipe, item) = (script.pipe(), an_item());
    tokio::select! {
        told = script.command.run(&item) => panic!("it hangs: {told:?}"),
        _ = pipe.line() => {}
    }
    pipe.all_dead().await;
}

/// A server that takes one request, and answers with this head; what it was sent.
async fn serve(answer: Option<&'static str>) -> (String, tokio::task::JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let host = listener.local_addr().expect("an address").to_string();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let mut bytes = Vec::new();
        let (head, body) = loop {
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).await.expect("a request");
            assert!(count > 0, "the request was cut off");
            bytes.extend_from_slice(&buffer[..count]);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && let Ok(body) = serde_json::from_str(body)
            {
                break (head.to_owned(), body);
            }
        };
        match answer {
            Some(answer) => {
                let answer = format!("HTTP/1.1 {answer}\r\nconnection: close\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.expect("the client reads");
                drop(stream);
            }
            None => {
                tokio::time::pause();
                // Held open until the client has had enough.
                let _ = stream.read(&mut [0]).await;
                tokio::time::resume();
            }
        }
        (head, body)
    });
    (host, serving)
}

/// Returns the notifier of a webhook whose URL is kept in a file, which ends with the directory.
fn webhook_of_a_file(text: &str) -> (tempfile::TempDir, Result<Notifier, SetUpError>) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("url");
    std::fs::write(&path, text).expect("a file");
    let notifier = Notifier::new(&Notify::Webhook(Secret::Kept(Place::File(path))));
    (dir, notifier)
}

#[test]
fn a_webhook_of_a_file_is_checked_as_one_of_the_configuration_and_not_shown() {
    let (_dir, notifier) = webhook_of_a_file("ftp://example.org/s3cret");
    let error = notifier.expect_err("no URL for a webhook").to_string();
    assert!(error.contains("must be a URL that begins with https:// or http://"), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
    let (dir, _) = webhook_of_a_file("x");
    let missing = Secret::Kept(Place::File(dir.path().join("none")));
    let error = anyhow::Error::from(Notifier::new(&Notify::Webhook(missing)).expect_err("none"));
    assert!(format!("{error:#}").contains("none cannot be read"), "{error:#}");
}

#[tokio::test]
async fn a_webhook_is_posted_the_item() {
    let (host, serving) = serve(Some("204 No Content")).await;
    // The line end is an editor's, and no part of the URL.
    let (_dir, notifier) = webhook_of_a_file(&format!("http://{host}/hook?token=secret\n"));
    let notifier = notifier.expect("it is set up");
    tokio::time::timeout(GUARD, notifier.notify(&an_item()))
        .await
        .expect("it ends")
        .expect("it worked");
    let (head, body) = serving.await.expect("a request");
    assert!(head.starts_with("POST /hook?token=secret HTTP/1.1\r\n"), "{head}");
    let head = head.to_ascii_lowercase();
    assert!(head.contains("\r\ncontent-type: application/json"), "{head}");
    assert!(head.contains(&format!("\r\nhost: {host}")), "{head}");
    assert_eq!(body, serde_json::from_str::<Value>(JSON).expect("JSON"));
    assert!(!format!("{notifier:?}").contains("secret"), "{notifier:?}");
}

#[tokio::test]
async fn only_2xx_is_success_and_redirects_are_not_followed() {
    for (answer, status) in [
        ("500 Internal Server Error\r\nx: y", "500 Internal Server Error"),
        ("302 Found\r\nlocation: http://127.0.0.1:1/", "302 Found"),
        ("404 Not Found", "404 Not Found"),
    ] {
        let (host, serving) = serve(Some(answer)).await;
        let webhook = Webhook::new(&format!("http://{host}/secret")).expect("it is set up");
        let error = webhook.post(&an_item()).await.expect_err(answer);
        assert_eq!(error.to_string(), format!("{host} answered {status}"));
        serving.await.expect("a request");
    }
}

#[tokio::test]
async fn the_error_of_a_missing_server_has_the_cause() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let host = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let error = Webhook::new(&format!("http://{host}/secret"))
        .expect("it is set up")
        .post(&an_item())
        .await
        .expect_err("nobody");
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("{host} could not be reached: "))
            && text.contains("Connection refused"),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let (host, serving) = serve(None).await;
    let error = Webhook::new(&format!("http://{host}"))
        .expect("it is set up")
        .post(&an_item())
        .await
        .expect_err("no answer");
    assert_eq!(error.to_string(), format!("{host} did not answer within 10 s"));
    serving.await.expect("a request");
}

#[tokio::test]
async fn an_https_webhook_begins_with_a_handshake_and_no_word_of_the_item() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let host = listener.local_addr().expect("an address").to_string();
    let webhook = match Webhook::new(&format!("https://{host}/secret")) {
        Ok(webhook) => webhook,
        // On a host without certificates, the setup fails with this error.
        Err(error) => return assert!(matches!(error, SetUpError::NoCertificates(_)), "{error}"),
    };
    let item = an_item();
    let server = async {
        let (mut stream, _) = listener.accept().await.expect("a client");
        stream.read_u8().await.expect("a first byte")
    };
    let (told, first) = tokio::join!(webhook.post(&item), server);
    let error = told.expect_err("there is no TLS");
    assert!(matches!(error, NotifyError::NotReached { .. }), "{error}");
    assert_eq!(first, 0x16, "the record of a handshake");
}

#[test]
fn kinds_have_words() {
    let words = [Kind::Question, Kind::Mail, Kind::DeadLetter, Kind::NeedsLogin].map(item::word);
    assert_eq!(json!(words), json!(["question", "mail", "dead_letter", "needs_login"]));
}
