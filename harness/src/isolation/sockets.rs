//! Sockets of the operator's session: those at known paths, and abstract ones.
//!
//! Invariant: a socket counts as reached only after a connection was accepted; nothing is sent over
//! it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hive_core::isolation::Finding;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::{broken, one_line, partly};

/// Maximum sockets that are named.
const NAMED_MAX: usize = 20;
/// Maximum abstract sockets that are tried.
const TRIED_MAX: usize = 500;

/// Finds sockets at known paths. A program that reaches a terminal multiplexer, a session bus or a
/// container engine can run programs as the operator.
pub(super) fn session_sockets() -> Vec<Finding> {
    let uid = rustix::process::getuid().as_raw();
    let runtime = PathBuf::from(format!("/run/user/{uid}"));
    let mut found = Vec::new();
    let mut judge = |paths: Vec<PathBuf>, what: &str, is_shell: bool| {
        for path in paths.into_iter().filter(|path| can_connect_path(path)) {
            let sentence = format!("can connect to {what} at {}", path.display());
            found.push(if is_shell { broken(sentence) } else { partly(sentence) });
        }
    };
    judge(below(format!("/tmp/tmux-{uid}"), |_| true), "tmux", true);
    judge(below(format!("/run/screen/S-{uid}"), |_| true), "screen", true);
    judge(
        [below(&runtime, |name| name == "bus"), below("/tmp", |name| name.starts_with("dbus-"))]
            .concat(),
        "the session bus",
        true,
    );
    judge(
        below(runtime.join("systemd"), |name| name == "private"),
        "the service manager of the user",
        true,
    );
    let engines = [
        PathBuf::from("/run/docker.sock"),
        "/run/podman/podman.sock".into(),
        runtime.join("docker.sock"),
        runtime.join("podman/podman.sock"),
    ];
    judge(engines.to_vec(), "a container engine", true);
    let agents = std::env::var_os("SSH_AUTH_SOCK").map(PathBuf::from).into_iter();
    let agents = agents
        .chain(sub("/tmp", "ssh-", "agent."))
        .chain(sub(&runtime, "keyring", "ssh"))
        .chain(below(&runtime, is_agent));
    judge(agents.collect(), "ssh-agent", false);
    judge(sub(&runtime, "gnupg", "S."), "gpg-agent", false);
    judge(below("/tmp/.X11-unix", |_| true), "the X server", false);
    judge(below(&runtime, |name| name.starts_with("wayland-")), "the Wayland compositor", false);
    judge(vec!["/run/dbus/system_bus_socket".into()], "the system bus", false);
    found
}

fn is_agent(name: &str) -> bool {
    name.starts_with("ssh-agent") || name.starts_with("openssh_agent")
}

/// Returns the entries of a directory whose names match.
fn below(dir: impl AsRef<Path>, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(&is_wanted))
        .map(|entry| entry.path())
        .collect()
}

/// Returns the entries of subdirectories whose names begin with the given prefixes.
fn sub(dir: impl AsRef<Path>, directory: &str, file: &str) -> Vec<PathBuf> {
    let dirs = below(dir, |name| name.starts_with(directory));
    dirs.into_iter().flat_map(|dir| below(dir, |name| name.starts_with(file))).collect()
}

fn can_connect_path(path: &Path) -> bool {
    let Ok(address) = SocketAddrUnix::new(path) else { return false };
    [SocketType::STREAM, SocketType::SEQPACKET, SocketType::DGRAM]
        .into_iter()
        .any(|kind| can_connect(&address, kind))
}

fn can_connect(address: &SocketAddrUnix, kind: SocketType) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, kind, flags, None);
    // A full queue means that a program can connect.
    socket.is_ok_and(|socket| {
        matches!(connect(&socket, address), Ok(()) | Err(rustix::io::Errno::AGAIN))
    })
}

/// Finds abstract sockets that the calling thread can connect to.
pub(super) fn abstract_ones() -> io::Result<Vec<Finding>> {
    let table = fs::read("/proc/net/unix")?;
    let mut names = listening(&table);
    names.sort();
    names.dedup();
    let tried = names.into_iter().take(TRIED_MAX);
    let reached: Vec<Vec<u8>> = tried
        .filter(|(name, kind)| can_connect_abstract(name, *kind))
        .map(|(name, _)| name)
        .collect();
    let more = reached.len().saturating_sub(NAMED_MAX);
    let name = |name: &Vec<u8>| {
        partly(format!(
            "can connect to the abstract socket @{}",
            one_line(&String::from_utf8_lossy(name))
        ))
    };
    let mut findings: Vec<Finding> = reached.iter().take(NAMED_MAX).map(name).collect();
    if more > 0 {
        findings.push(partly(format!("can connect to {more} more abstract sockets")));
    }
    Ok(findings)
}

fn can_connect_abstract(name: &[u8], kind: u32) -> bool {
    let kind = match kind {
        1 => SocketType::STREAM,
        2 => SocketType::DGRAM,
        _ => SocketType::SEQPACKET,
    };
    // The kernel shows NUL bytes of a name as `@`.
    let shown: Vec<u8> = name.iter().map(|byte| if *byte == b'@' { 0 } else { *byte }).collect();
    let mut variants = vec![name];
    if shown != name {
        variants.push(&shown);
    }
    variants.into_iter().any(|name| {
        SocketAddrUnix::new_abstract_name(name).is_ok_and(|address| can_connect(&address, kind))
    })
}

/// Returns the names and kinds of abstract sockets that accept connections, from the kernel's
/// table.
fn listening(table: &[u8]) -> Vec<(Vec<u8>, u32)> {
    /// The flag of sockets that listen.
    const ACCEPTS: u32 = 0x1_0000;
    /// The kind that needs no listening.
    const DATAGRAM: u32 = 2;
    let read = |line: &[u8]| {
        // Number, references, protocol, flags, kind, state, inode; then the name, which may contain
        // blanks.
        let (mut fields, mut rest) = (Vec::new(), line);
        for _ in 0..7 {
            let end = rest.iter().position(|byte| *byte == b' ')?;
            fields.push(std::str::from_utf8(&rest[..end]).ok()?);
            rest = rest[end..].trim_ascii_start();
        }
        let [flags, kind] = [3, 4].map(|field| u32::from_str_radix(fields[field], 16));
        let (flags, kind) = (flags.ok()?, kind.ok()?);
        let name = rest.strip_prefix(b"@")?;
        (flags & ACCEPTS != 0 || kind == DATAGRAM).then(|| (name.to_vec(), kind))
    };
    table.split(|byte| *byte == b'\n').skip(1).filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abstract_sockets_that_listen_are_read_from_the_table() {
        let table = b"Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01  2345 @/tmp/.X11-unix/X0
0000000000000000: 00000002 00000000 00010000 0005 01 12345 @a name
0000000000000000: 00000002 00000000 00000000 0002 01 12345 @datagrams
0000000000000000: 00000003 00000000 00000000 0001 03 22345 @connected
0000000000000000: 00000003 00000000 00000000 0001 03 22346
0000000000000000: 00000002 00000000 00010000 0001 01 22347 /run/x.sock
";
        let name = |name: &[u8], kind| (name.to_vec(), kind);
        assert_eq!(
            listening(table),
            [name(b"/tmp/.X11-unix/X0", 1), name(b"a name", 5), name(b"datagrams", 2)]
        );
    }

    #[test]
    fn an_abstract_socket_is_reached_from_outside_the_fence_and_not_from_inside() {
        let name = format!("hive-test-{}", std::process::id());
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("short");
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .expect("a socket");
        rustix::net::bind(&socket, &address).expect("bound");
        rustix::net::listen(&socket, 8).expect("listens");
        let reached = |found: Vec<Finding>| {
            found.iter().any(|finding| finding.sentence.ends_with(&format!("@{name}")))
        };
        assert!(reached(abstract_ones().expect("listed")));
        let inside =
            || (crate::fence::apply(false).expect("fenced"), abstract_ones().expect("listed"));
        let (domain, found) =
            std::thread::scope(|scope| scope.spawn(inside).join().expect("probed"));
        assert_eq!(reached(found), domain != crate::fence::domain::Domain::Scoped);
    }
}
