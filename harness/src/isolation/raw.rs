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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// A process in a new user namespace.
    CloneNamespace,
    /// A process by the newer call, whose flags a filter cannot see.
    Clone3,
    /// Leaving a namespace.
    Unshare,
    /// Entering a namespace.
    Setns,
    AddKey,
    RequestKey,
    /// Reading the number of the session keyring.
    SessionKeyring,
    /// Making a ring of `io_uring`.
    IoUringSetup,
    /// Entering a ring.
    IoUringEnter,
    /// Registering buffers.
    IoUringRegister,
    /// Handling page faults.
    Userfaultfd,
    /// Loading a program into the kernel.
    Bpf,
    /// Typing into a terminal.
    Tiocsti,
    /// The same with bits that the kernel ignores.
    TiocstiHighBits,
    /// Pasting into a console.
    Tioclinux,
    /// The session keyring by its number of x32.
    #[cfg(target_arch = "x86_64")]
    X32SessionKeyring,
}

impl Attempt {
    /// All attempts.
    pub const ALL: &[Self] = &[
        Self::CloneNamespace,
        Self::Clone3,
        Self::Unshare,
        Self::Setns,
        Self::AddKey,
        Self::RequestKey,
        Self::SessionKeyring,
        Self::IoUringSetup,
        Self::IoUringEnter,
        Self::IoUringRegister,
        Self::Userfaultfd,
        Self::Bpf,
        Self::Tiocsti,
        Self::TiocstiHighBits,
        Self::Tioclinux,
        #[cfg(target_arch = "x86_64")]
        Self::X32SessionKeyring,
    ];

    /// Returns the name of the system call.
    pub fn name(self) -> &'static str {
        match self {
            Self::CloneNamespace => "clone with a new namespace",
            Self::Clone3 => "clone3",
            Self::Unshare => "unshare",
            Self::Setns => "setns",
            Self::AddKey => "add_key",
            Self::RequestKey => "request_key",
            Self::SessionKeyring => "keyctl",
            Self::IoUringSetup => "io_uring_setup",
            Self::IoUringEnter => "io_uring_enter",
            Self::IoUringRegister => "io_uring_register",
            Self::Userfaultfd => "userfaultfd",
            Self::Bpf => "bpf",
            Self::Tiocsti | Self::TiocstiHighBits => "ioctl TIOCSTI",
            Self::Tioclinux => "ioctl TIOCLINUX",
            #[cfg(target_arch = "x86_64")]
            Self::X32SessionKeyring => "keyctl of x32",
        }
    }

    /// Returns whether a fence also refuses it for programs that may create user namespaces.
    pub fn is_always_refused(self) -> bool {
        !matches!(self, Self::CloneNamespace | Self::Clone3 | Self::Unshare | Self::Setns)
    }

    /// Attempts the call and returns the error; `None` if it succeeded, which only reading the
    /// session keyring does.
    #[must_use]
    pub fn run(self) -> Option<io::Error> {
        let (number, arguments) = self.call();
        let [a, b, c, d, e] = arguments;
        // SAFETY: no argument is a valid pointer, and each call fails for its arguments before it
        // changes anything; the one that does not, reading the number of a keyring, has no effect.
        // `clone` fails because a new user namespace cannot share the file system's state.
        let result = unsafe { libc::syscall(number, a, b, c, d, e) };
        (result < 0).then(io::Error::last_os_error)
    }

    fn call(self) -> (c_long, [c_long; 5]) {
        /// The session keyring of the process.
        const SESSION: c_long = -3;
        let namespaces = c_long::from(libc::CLONE_NEWUSER | libc::CLONE_FS);
        match self {
            Self::CloneNamespace => (libc::SYS_clone, [namespaces, 0, 0, 0, 0]),
            Self::Clone3 => (libc::SYS_clone3, [0, 0, 0, 0, 0]),
            // Both bits together are valid; this one belongs to no namespace, and the kernel
            // refuses it.
            Self::Unshare => (
                libc::SYS_unshare,
                [c_long::from(libc::CLONE_NEWUSER | libc::CLONE_PTRACE), 0, 0, 0, 0],
            ),
            Self::Setns => (libc::SYS_setns, [-1, 0, 0, 0, 0]),
            Self::AddKey => (libc::SYS_add_key, [0, 0, 0, 0, SESSION]),
            Self::RequestKey => (libc::SYS_request_key, [0, 0, 0, 0, 0]),
            Self::SessionKeyring => (libc::SYS_keyctl, [0, SESSION, 0, 0, 0]),
            Self::IoUringSetup => (libc::SYS_io_uring_setup, [0, 0, 0, 0, 0]),
            Self::IoUringEnter => (libc::SYS_io_uring_enter, [-1, 0, 0, 0, 0]),
            Self::IoUringRegister => (libc::SYS_io_uring_register, [-1, -1, 0, 0, 0]),
            Self::Userfaultfd => (libc::SYS_userfaultfd, [-1, 0, 0, 0, 0]),
            Self::Bpf => (libc::SYS_bpf, [-1, 0, 0, 0, 0]),
            Self::Tiocsti => (libc::SYS_ioctl, [-1, request(libc::TIOCSTI), 0, 0, 0]),
            Self::TiocstiHighBits => {
                (libc::SYS_ioctl, [-1, request(libc::TIOCSTI) | (1 << 40), 0, 0, 0])
            }
            Self::Tioclinux => (libc::SYS_ioctl, [-1, request(libc::TIOCLINUX), 0, 0, 0]),
            #[cfg(target_arch = "x86_64")]
            Self::X32SessionKeyring => (libc::SYS_keyctl | 0x4000_0000, [0, SESSION, 0, 0, 0]),
        }
    }
}

fn request(number: libc::Ioctl) -> c_long {
    c_long::try_from(number).unwrap_or(0)
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
