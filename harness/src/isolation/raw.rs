//! Operations without a safe library: the inherited descriptor of the report, and attempts at the
//! system calls that a fence refuses.
//!
//! Invariant: an attempt changes nothing, even if the kernel accepts it: its arguments are invalid
//! for a reason besides the fence.
#![allow(unsafe_code, reason = "raw descriptors and system calls; each use says why it is sound")]

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::path::Path;

use libc::{c_int, c_long};

/// A system call that a fence refuses.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    pub name: &'static str,
    number: c_long,
    arguments: [c_long; 5],
    /// Whether a fence also refuses it for programs that may create user namespaces.
    pub is_always_refused: bool,
}

/// The session keyring of the process.
const SESSION: c_long = -3;

/// All attempts.
pub const ATTEMPTS: &[Attempt] = &[
    namespace("clone with a new namespace", libc::SYS_clone, libc::CLONE_NEWUSER | libc::CLONE_FS),
    // Its flags are in memory, which a filter cannot see.
    namespace(CLONE3, libc::SYS_clone3, 0),
    // Both bits together are valid; the second belongs to no namespace, and the kernel refuses it.
    namespace("unshare", libc::SYS_unshare, libc::CLONE_NEWUSER | libc::CLONE_PTRACE),
    namespace("setns", libc::SYS_setns, -1),
    attempt("add_key", libc::SYS_add_key, [0, 0, 0, 0, SESSION]),
    attempt("request_key", libc::SYS_request_key, [0; 5]),
    attempt("keyctl", libc::SYS_keyctl, [0, SESSION, 0, 0, 0]),
    attempt("io_uring_setup", libc::SYS_io_uring_setup, [0; 5]),
    attempt("io_uring_enter", libc::SYS_io_uring_enter, [-1, 0, 0, 0, 0]),
    attempt("io_uring_register", libc::SYS_io_uring_register, [-1, -1, 0, 0, 0]),
    attempt("userfaultfd", libc::SYS_userfaultfd, [-1, 0, 0, 0, 0]),
    attempt("bpf", libc::SYS_bpf, [-1, 0, 0, 0, 0]),
    attempt("ioctl TIOCSTI", libc::SYS_ioctl, [-1, libc::TIOCSTI as c_long, 0, 0, 0]),
    // The kernel ignores the high bits.
    attempt("ioctl TIOCSTI", libc::SYS_ioctl, [-1, libc::TIOCSTI as c_long | (1 << 40), 0, 0, 0]),
    attempt("ioctl TIOCLINUX", libc::SYS_ioctl, [-1, libc::TIOCLINUX as c_long, 0, 0, 0]),
    #[cfg(target_arch = "x86_64")]
    attempt("keyctl of x32", libc::SYS_keyctl | 0x4000_0000, [0, SESSION, 0, 0, 0]),
];

/// The call for which the fence returns another error: programs then use `clone`.
pub const CLONE3: &str = "clone3";

const fn attempt(name: &'static str, number: c_long, arguments: [c_long; 5]) -> Attempt {
    Attempt { name, number, arguments, is_always_refused: true }
}

const fn namespace(name: &'static str, number: c_long, first: c_int) -> Attempt {
    let arguments = [first as c_long, 0, 0, 0, 0];
    Attempt { name, number, arguments, is_always_refused: false }
}

impl Attempt {
    /// Attempts the call and returns the error; `None` if it succeeded, which only reading the
    /// session keyring does.
    #[must_use]
    pub fn run(self) -> Option<io::Error> {
        let [a, b, c, d, e] = self.arguments;
        // SAFETY: no argument is a valid pointer, and each call fails for its arguments before it
        // changes anything; the one that does not, reading the number of a keyring, has no effect.
        // `clone` fails because a new user namespace cannot share the file system's state.
        let result = unsafe { libc::syscall(self.number, a, b, c, d, e) };
        (result < 0).then(io::Error::last_os_error)
    }
}

/// Takes an inherited descriptor; programs that start from now on do not get it.
pub fn inherited(number: c_int) -> io::Result<OwnedFd> {
    let is_open = number > 2
        && Path::new("/proc/self/fd").join(number.to_string()).symlink_metadata().is_ok();
    if !is_open {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{number} is no descriptor that this program has inherited"),
        ));
    }
    // SAFETY: the descriptor is open and was inherited: this is called before anything else of this
    // program opens one.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    Ok(fd)
}
