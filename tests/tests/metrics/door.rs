//! The socket of the page: who may read it, and what a bad collector can do.

use std::fs::Permissions;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use hive_tests::rig::{DUO, Rig, host, soon};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::scrape::{GET, Page, ask_port, exchange, scrape, unix};

const METRICS: &str = "[broker.metrics]\nsocket = \"metrics.sock\"\n";

async fn hive() -> (Rig, PathBuf) {
    let mut rig = Rig::new(&format!("{METRICS}{DUO}"));
    rig.start_broker().await;
    let socket = rig.path("metrics.sock");
    (rig, socket)
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("the socket").permissions().mode() & 0o7777
}

/// An address of loopback that no other test has.
fn address() -> String {
    let mut bytes = [0u8; 5];
    getrandom::fill(&mut bytes).expect("random numbers");
    let [a, b, c, high, low] = bytes;
    format!("127.{a}.{b}.{}:{}", c.clamp(1, 254), u16::from_be_bytes([high, low]) | 0x4000)
}

#[tokio::test]
async fn a_port_of_loopback_serves_the_same_page() {
    let address = address();
    let mut rig = Rig::new(&format!("[broker.metrics]\nlisten = \"{address}\"\n{DUO}"));
    rig.start_broker().await;
    for host in [address.as_str(), "localhost:9464", "127.0.0.1", "[::1]:9464"] {
        let page = Page::of(&ask_port(&address, host).await);
        assert_eq!(page.value("hive_agents{state=\"offline\"}"), 2.0, "{host}");
    }
    // A page of another host, in a browser of this one, cannot read it by a name that leads here.
    for host in ["evil.example:9464", "localhost.evil.example", "127.0.0.1.evil.example", "::"] {
        let response = ask_port(&address, host).await;
        assert!(response.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{host}: {response}");
        assert!(!response.contains("hive_"), "{host}: {response}");
    }
    rig.end().await;
}

/// Any local user can take a port before the broker does.
#[tokio::test]
async fn a_port_that_is_taken_keeps_no_broker_from_starting_and_is_opened_when_it_is_free() {
    let address = address();
    let taken = std::net::TcpListener::bind(&address).expect("it is free");
    let mut rig = Rig::new(&format!("[broker.metrics]\nlisten = \"{address}\"\n{DUO}"));
    rig.start_broker().await;
    rig.agent("ada").await.send("bob", "sent meanwhile").await;
    drop(taken);
    soon("the port is opened", async {
        while tokio::net::TcpStream::connect(&address).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let page = Page::of(&ask_port(&address, &address).await);
    assert_eq!(page.value("hive_inbox_deliveries{agent=\"bob\"}"), 1.0);
    let said = rig.broker().log();
    assert_eq!(said.matches("the metrics cannot be offered").count(), 1, "said once: {said}");
    rig.end().await;
}

#[tokio::test]
async fn without_the_key_there_is_no_socket() {
    let mut rig = Rig::new(DUO);
    rig.start_broker().await;
    let is_socket = |path: PathBuf| {
        path.metadata().is_ok_and(|found| found.file_type().is_socket()).then_some(path)
    };
    let here = std::fs::read_dir(rig.path("")).expect("a directory").flatten();
    let run = std::fs::read_dir(rig.path("run")).expect("a directory").flatten();
    let mut sockets: Vec<_> = here.chain(run).filter_map(|entry| is_socket(entry.path())).collect();
    // The test's own, at which the broker says that it is ready.
    sockets.retain(|socket| *socket != rig.path("notify"));
    assert_eq!(sockets, [rig.operator_socket()]);
    // No port either: the broker's own TCP sockets.
    let pid = rig.broker().pid().as_raw_nonzero();
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).expect("the table");
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("its files").flatten();
    let own: Vec<String> = fds
        .filter_map(|fd| std::fs::read_link(fd.path()).ok())
        .filter_map(|link| {
            let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some(inode.to_owned())
        })
        .collect();
    let is_own = |line: &str| {
        line.split_whitespace().nth(9).is_some_and(|inode| own.iter().any(|own| own == inode))
    };
    assert_eq!(table.lines().filter(|line| is_own(line)).count(), 0, "{table}");
    rig.end().await;
}

#[tokio::test]
async fn only_the_owner_may_read_and_with_a_group_the_group() {
    let (rig, socket) = hive().await;
    assert_eq!(mode(&socket), 0o600);
    if host::is_root() {
        // The directory lets everyone in, so that the socket alone decides.
        std::fs::set_permissions(rig.path(""), Permissions::from_mode(0o755)).expect("a mode");
        let path = socket.clone();
        let refused = host::as_user(65534, move || async move { UnixStream::connect(path).await });
        let kind = refused.expect_err("another user").kind();
        assert_eq!(kind, std::io::ErrorKind::PermissionDenied);
    }
    rig.end().await;
    if host::is_root() {
        // The directory has another group, and hands it down or not.
        for (own, dir_mode, wanted) in [
            ("", 0o750, 65534),
            ("", 0o2750, 1),
            ("group = \"root\"\n", 0o750, 0),
            ("group = \"root\"\n", 0o2750, 0),
        ] {
            let text = format!("[broker]\nsocket_group = \"nogroup\"\n{METRICS}{own}{DUO}");
            let mut rig = Rig::new(&text);
            chown(rig.path(""), None, Some(1)).expect("root may");
            let permissions = Permissions::from_mode(dir_mode);
            std::fs::set_permissions(rig.path(""), permissions).expect("a mode");
            rig.start_broker().await;
            let socket = rig.path("metrics.sock");
            assert_eq!(mode(&socket), 0o660);
            let group = socket.metadata().expect("the socket").gid();
            assert_eq!(group, wanted, "{own:?} {dir_mode:o}");
            rig.end().await;
        }
    }
}

#[tokio::test]
async fn the_file_of_a_killed_broker_is_replaced_and_a_clean_end_removes_it() {
    let (mut rig, socket) = hive().await;
    rig.crash_broker().await;
    scrape(&socket).await;
    rig.stop_broker().await;
    assert!(!socket.exists(), "a clean end removes it");
    // Any other file stays, and the broker says so.
    std::fs::write(&socket, "notes").expect("a file");
    let failed = rig.refused_broker().await;
    assert!(failed.contains("is there and is no socket; move it away"), "{failed}");
    assert!(failed.contains("broker.metrics.socket"), "{failed}");
    assert_eq!(std::fs::read_to_string(&socket).expect("the file"), "notes");
    rig.end().await;
}

#[tokio::test]
async fn other_requests_get_a_reason() {
    let (rig, socket) = hive().await;
    for (request, status, reason) in [
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "404 Not Found", "The metrics are at /metrics."),
        ("POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "405 Method Not Allowed", "Use GET."),
        ("GET /metrics?name[]=x HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", "hive_build_info"),
        ("nonsense\r\n\r\n", "400 Bad Request", ""),
    ] {
        let response = exchange(unix(&socket).await, request.as_bytes()).await;
        assert!(response.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request}: {response}");
        assert!(response.contains(reason), "{request}: {response}");
    }
    let head = exchange(unix(&socket).await, b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    rig.end().await;
}

#[tokio::test]
async fn a_head_without_end_is_refused() {
    let (rig, socket) = hive().await;
    let endless = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(1 << 20));
    let response = exchange(unix(&socket).await, endless.as_bytes()).await;
    assert!(
        response.is_empty() || response.starts_with("HTTP/1.1 431 "),
        "a megabyte was read: {response}"
    );
    let many: String = (0..5000).map(|number| format!("X-{number}: y\r\n")).collect();
    let many = format!("GET /metrics HTTP/1.1\r\n{many}\r\n");
    let response = exchange(unix(&socket).await, many.as_bytes()).await;
    assert!(!response.starts_with("HTTP/1.1 200"), "{response}");
    // A body is not read.
    let body = "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n";
    let response = exchange(unix(&socket).await, body.as_bytes()).await;
    assert!(response.starts_with("HTTP/1.1 405 "), "{response}");
    scrape(&socket).await;
    rig.end().await;
}

#[tokio::test]
async fn collectors_that_are_silent_are_cut_off_and_the_next_one_is_served() {
    let (mut rig, socket) = hive().await;
    let pid = rig.broker().pid().as_raw_nonzero();
    let files = || std::fs::read_dir(format!("/proc/{pid}/fd")).expect("its files").count();
    // The first page opens the database for reading, and it stays open.
    scrape(&socket).await;
    let before = files();
    // Some send nothing, some half a head, and some do not read.
    let mut silent = Vec::new();
    for number in 0..18 {
        let mut stream = unix(&socket).await;
        let part = match number % 3 {
            0 => "",
            1 => "GET /metr",
            _ => GET,
        };
        stream.write_all(part.as_bytes()).await.expect("the kernel takes it");
        silent.push(stream);
    }
    // More than eight are never taken at a time; the others wait in the kernel.
    assert!(files() <= before + 8, "{} files, {before} before", files());
    let answered = soon("a collector behind them is served", scrape(&socket)).await;
    assert!(answered.value("hive_build_info{version=\"0.1.0\",commit=\"\"}") > 0.0);
    for mut stream in silent {
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        drop(soon("a silent connection is ended", ended).await);
    }
    rig.end().await;
}
