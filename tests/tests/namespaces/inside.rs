//! The program in a sandbox: this very test binary, run again where the peer is. It reads orders
//! from its stdin and says what came of each.
//!
//! What it is not: a test of its own; without the environment of a peer it does nothing. Invariant:
//! it asserts nothing; the test outside judges.

use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use hive_proto::status;
use hive_tests::rig::raw::{self, Answer};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::Status;
use tonic::metadata::{AsciiMetadataKey, MetadataMap};
use tonic::transport::{Channel, Endpoint, Uri};

/// Makes this program one of these.
pub(crate) const ROLE_ENV: &str = "HIVE_NAMESPACES_ROLE";
/// The beginning of every line of its report.
pub(crate) const MARK: &str = "SAID ";
/// Reads orders until its stdin ends.
pub(crate) const PEER: &str = "peer";
/// Connects to the socket of its first order, hands the connection to a [`HEIR`], and ends.
pub(crate) const GHOST: &str = "ghost";
/// Calls on the connection that is its stdin what its environment names.
const HEIR: &str = "heir";
/// The RPC that an heir calls.
const RPC_ENV: &str = "HIVE_NAMESPACES_RPC";

/// The arguments with which the test binary becomes this program.
pub(crate) fn arguments() -> [&'static str; 4] {
    ["--ignored", "--exact", "--nocapture", "inside::orders_are_carried_out"]
}

#[tokio::test]
#[ignore = "the tests of namespaces run it where a peer is"]
async fn orders_are_carried_out() {
    match std::env::var(ROLE_ENV).as_deref() {
        Ok(PEER) => peer().await,
        Ok(GHOST) => ghost(),
        Ok(HEIR) => heir().await,
        _ => {}
    }
}

fn say(words: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{MARK}{words}").expect("the test reads");
    out.flush().expect("the test reads");
}

/// The outcome of a call in words: `ok`, or the code and the reason.
fn outcome<T>(answer: &Result<T, Status>) -> String {
    match answer {
        Ok(_) => "ok".to_owned(),
        Err(refusal) => {
            let reason =
                status::reason(refusal).map(hive_core::reason::Reason::as_str).unwrap_or_default();
            let waits = if status::retry_after(refusal).is_some() { " later" } else { "" };
            format!("{:?} {reason}{waits}: {}", refusal.code(), refusal.message())
        }
    }
}

/// Calls an RPC with bytes in hexadecimal digits and, where there is one, metadata as `KEY=VALUE`.
async fn call(
    channel: &Channel,
    rpc: &str,
    message: &str,
    token: Option<&str>,
) -> Result<Answer, Status> {
    let mut metadata = MetadataMap::new();
    if let Some((key, value)) = token.and_then(|token| token.split_once('=')) {
        let key = AsciiMetadataKey::from_bytes(key.as_bytes()).expect("a key");
        metadata.insert(key, value.parse().expect("plain text"));
    }
    raw::call(channel, rpc, metadata, bytes(message)).await
}

/// Bytes from hexadecimal digits.
pub(crate) fn bytes(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("digits")).collect()
}

/// Carries out orders: `call SOCKET RPC MESSAGE [KEY=VALUE]`, `below` with the same in a pid
/// namespace of its own, `answer` for the bytes of the last answer, and `end` for the end of the
/// stream behind it.
async fn peer() {
    say("ready");
    let mut last: Option<Answer> = None;
    for line in std::io::stdin().lines() {
        let line = line.expect("the test writes");
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["below", ..] => say(&below(line.trim_start_matches("below "))),
            ["end"] => {
                let answer = last.take().expect("a stream is open");
                say(&format!("ended {}", outcome(&answer.end().await)));
            }
            ["answer"] => {
                let bytes =
                    last.as_ref().and_then(|answer| answer.first.as_deref()).unwrap_or_default();
                say(&bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
            }
            ["call", socket, rpc, message, ref token @ ..] => {
                let channel = match hive_proto::connect::connect(Path::new(socket)).await {
                    Ok(channel) => channel,
                    Err(error) => {
                        say(&format!("unreachable: {error}"));
                        continue;
                    }
                };
                let answer =
                    call(&channel, rpc, message.trim_start_matches('='), token.first().copied())
                        .await;
                say(&outcome(&answer));
                last = answer.ok();
            }
            _ => say("no such order"),
        }
    }
}

/// Carries out one order in a pid namespace below this one, as a shell task would.
fn below(order: &str) -> String {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-current-user", "--pid", "--fork", "--kill-child", "--"]);
    command.arg(std::env::current_exe().expect("this program")).args(arguments());
    let mut task =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("unshare starts");
    let mut orders = task.stdin.take().expect("a pipe");
    writeln!(orders, "{order}").expect("it reads");
    drop(orders);
    let said = task.wait_with_output().expect("it ends").stdout;
    let last = said
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix(MARK).map(str::to_owned))
        .last();
    last.unwrap_or_default()
}

/// Connects, hands the connection on, and ends before the broker has looked at it.
fn ghost() {
    let mut order = String::new();
    std::io::stdin().read_line(&mut order).expect("the test writes");
    let (socket, rpc) = order.trim_end().split_once(' ').expect("a socket and an RPC");
    let connection = std::os::unix::net::UnixStream::connect(socket).expect("the socket is there");
    let mut heir = Command::new(std::env::current_exe().expect("this program"));
    heir.args(arguments()).env(ROLE_ENV, HEIR).env(RPC_ENV, rpc);
    heir.stdin(Stdio::from(std::os::fd::OwnedFd::from(connection)));
    // The heir continues by itself: the end of its output shows its end.
    drop(heir.spawn().expect("it starts"));
}

/// Speaks on a connection that another process has made.
async fn heir() {
    let rpc = std::env::var(RPC_ENV).expect("an RPC");
    let connection = rustix::io::dup(std::io::stdin()).expect("a connection");
    let connection = std::os::unix::net::UnixStream::from(connection);
    connection.set_nonblocking(true).expect("a socket");
    let mut connection = Some(UnixStream::from_std(connection).expect("a socket"));
    let connector = tower::service_fn(move |_: Uri| {
        let connection = connection.take();
        async move {
            connection
                .map(TokioIo::new)
                .ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotConnected))
        }
    });
    let endpoint = Endpoint::from_static("http://localhost");
    let channel = endpoint.connect_with_connector(connector).await.expect("the broker accepts");
    say(&outcome(&call(&channel, &rpc, "", None).await));
}
