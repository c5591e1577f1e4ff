//! Peers: the pid namespace and the unit of the process that connected.
//!
//! The order matters: the process is held by a pidfd, then its namespace is opened by its number,
//! then the pidfd must still be of a live process. Invariant: a [`Place::In`] was read while the
//! process was alive, so its number was of that process. Before Linux 6.5 a process can end, and
//! its number be reused, between its connecting and the pidfd; [`knows_peers`] reports whether that
//! is possible.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

use hive_core::caller::Peer;
use nix::errno::Errno as NixErrno;
use nix::sys::socket::{getsockopt, sockopt::PeerPidfd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::unit;
use crate::engine::sandboxes::Place;
use crate::namespace::PidNamespace;

/// Returns whether the kernel identifies the process that connected even if its number is reused
/// (SO_PEERPIDFD, Linux 6.5).
#[must_use]
pub fn knows_peers() -> bool {
    std::os::unix::net::UnixStream::pair()
        .is_ok_and(|(one, _other)| getsockopt(&one, PeerPidfd).is_ok())
}

/// Reads the pid namespace of the process that connected; `pid` is its number by SO_PEERCRED.
pub(in crate::rpc) fn place(stream: &impl AsFd, pid: Option<i32>) -> Place {
    let Some(pid) = pid.and_then(Pid::from_raw) else { return Place::Outside };
    match getsockopt(stream, PeerPidfd) {
        Ok(process) => place_of(&process, pid),
        Err(NixErrno::ENOPROTOOPT) => place_by_number(pid),
        // The answer of kernels since 6.5 for a process that has ended and was reaped.
        Err(NixErrno::EINVAL | NixErrno::ESRCH | NixErrno::ENODATA) => Place::Gone,
        Err(errno) => Place::Hidden(io::Error::from(errno).to_string()),
    }
}

/// Reads the same on a kernel that knows only the number of the process.
fn place_by_number(pid: Pid) -> Place {
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => place_of(&process, pid),
        Err(Errno::SRCH) => Place::Gone,
        Err(errno) => Place::Hidden(errno.to_string()),
    }
}

/// Returns the unit of systemd of the process that connected, or why it is not known.
pub(super) fn unit(stream: &impl AsFd, peer: &Peer) -> Result<Option<String>, String> {
    const ENDED: &str = "it has ended";
    let pid = peer.pid.and_then(Pid::from_raw).ok_or("it is not visible to the broker")?;
    let process = match getsockopt(stream, PeerPidfd) {
        Ok(process) => process,
        Err(NixErrno::ENOPROTOOPT) => {
            let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| ENDED)?;
            // Another process of the same user can have the number by now, but none of another.
            let owner = std::fs::metadata(format!("/proc/{}", pid.as_raw_nonzero()))
                .map_err(|_| ENDED)?
                .uid();
            if owner != peer.uid {
                return Err("its number is that of a process of another user".to_owned());
            }
            process
        }
        Err(_) => return Err(ENDED.to_owned()),
    };
    let unit = unit::of_process(pid.as_raw_nonzero().get()).map_err(|error| error.to_string())?;
    // Only now: what was read is of this process only if it is still alive.
    match has_ended(&process) {
        Ok(false) => Ok(unit),
        Ok(true) => Err(ENDED.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn place_of(process: &OwnedFd, pid: Pid) -> Place {
    let namespace = PidNamespace::of_process(pid.as_raw_nonzero().get());
    // Only now: the namespace is that of this process only if the process is still alive.
    match has_ended(process) {
        Ok(false) => match namespace {
            Ok(namespace) => Place::In(namespace),
            Err(error) => Place::Hidden(error.to_string()),
        },
        Ok(true) => Place::Gone,
        Err(error) => Place::Hidden(error.to_string()),
    }
}

/// Returns whether a process has ended: its pidfd is readable then.
fn has_ended(process: &OwnedFd) -> io::Result<bool> {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    Ok(poll(&mut fds, Some(&at_once))? > 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    use super::*;

    fn number(pid: u32) -> i32 {
        i32::try_from(pid).expect("a number of a process")
    }

    #[test]
    fn this_process_is_where_it_is_by_both_ways() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let own = PidNamespace::own().expect("/proc is mounted").id();
        let pid = number(std::process::id());
        for place in
            [place(&one, Some(pid)), place_by_number(Pid::from_raw(pid).expect("a process"))]
        {
            assert!(matches!(&place, Place::In(namespace) if namespace.id() == own), "{place:?}");
        }
        assert!(matches!(place(&one, Some(0)), Place::Outside));
        assert!(matches!(place(&one, None), Place::Outside));
    }

    #[test]
    fn a_process_that_has_ended_is_gone_before_and_after_it_was_waited_for() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("it starts");
        let pid = Pid::from_raw(number(child.id())).expect("a process");
        let process = pidfd_open(pid, PidfdFlags::empty()).expect("it runs");
        assert!(matches!(place_of(&process, pid), Place::In(_)));
        drop(child.stdin.take());
        poll(&mut [PollFd::new(&process, PollFlags::IN)], None).expect("it ends");
        assert!(matches!(place_of(&process, pid), Place::Gone));
        child.wait().expect("it has ended");
        assert!(matches!(place_of(&process, pid), Place::Gone));
        assert!(matches!(place_by_number(pid), Place::Gone));
    }
}
