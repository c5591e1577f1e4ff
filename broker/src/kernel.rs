//! System calls without a safe interface: taking an inherited descriptor, reading the properties of
//! a namespace, setting a limit of a program that is started, and the heap of the C library.
//!
//! Invariant: an inherited descriptor is taken once, at the start of the process, and no program
//! that is started later inherits it.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use rustix::process::{Resource, Rlimit, setrlimit};

/// Has all threads share one heap of the C library, which hardly any code but SQLite uses. To be
/// called before a thread begins.
pub fn share_heap() {
    // SAFETY: it takes numbers, and no other thread allocates in the meantime.
    #[cfg(target_env = "gnu")]
    unsafe {
        nix::libc::mallopt(nix::libc::M_ARENA_MAX, 1)
    };
}

/// Gives the free memory of the C library's heap back to the kernel.
pub fn trim_heap() {
    // SAFETY: it takes no pointer, and may be called at any time by any thread.
    #[cfg(target_env = "gnu")]
    unsafe {
        nix::libc::malloc_trim(0)
    };
}

/// The ioctl group of namespaces (`linux/nsfs.h`).
const NAMESPACES: u8 = 0xb7;

/// Takes a descriptor that the parent process left open, and keeps it from programs that this
/// process starts. To be called once, before anything else is opened or started.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is one of the standard streams",
        ));
    }
    // SAFETY: the number is borrowed for one call, which fails with EBADF where it is not open.
    let flags = fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) })?;
    // SAFETY: it is open, as the call above has shown, and nothing else of this process owns it:
    // the parent left it open for this caller.
    let taken = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&taken, flags | FdFlags::CLOEXEC)?;
    Ok(taken)
}

/// Sets the limit of open files with which a program starts.
pub fn limit_files(command: &mut tokio::process::Command, limit: Rlimit) {
    let set = move || setrlimit(Resource::Nofile, limit).map_err(io::Error::from);
    // SAFETY: between fork and exec it makes one system call, and neither allocates nor locks.
    unsafe { command.pre_exec(set) };
}

/// Opens the parent of a pid namespace. EPERM: it has none that this process may see.
pub fn parent_namespace(namespace: impl AsFd) -> io::Result<OwnedFd> {
    // SAFETY: NS_GET_PARENT takes no argument.
    Ok(unsafe { ioctl(namespace, Parent) }?)
}

/// Returns the kind of a namespace, as the flag of `clone` that makes one. ENOTTY: the descriptor
/// is not of a namespace.
pub fn namespace_kind(namespace: impl AsFd) -> io::Result<u32> {
    // SAFETY: NS_GET_NSTYPE takes no argument.
    Ok(unsafe { ioctl(namespace, Kind) }?)
}

struct Parent;

// SAFETY: NS_GET_PARENT reads and writes no memory, and answers with a new descriptor.
unsafe impl Ioctl for Parent {
    type Output = OwnedFd;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        opcode::none(NAMESPACES, 2)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(answer: IoctlOutput, _: *mut c_void) -> rustix::io::Result<OwnedFd> {
        // SAFETY: the kernel has just opened it for this caller.
        Ok(unsafe { OwnedFd::from_raw_fd(answer) })
    }
}

struct Kind;

// SAFETY: NS_GET_NSTYPE reads and writes no memory, and answers with a number.
unsafe impl Ioctl for Kind {
    type Output = u32;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        opcode::none(NAMESPACES, 3)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(answer: IoctlOutput, _: *mut c_void) -> rustix::io::Result<u32> {
        Ok(answer.cast_unsigned())
    }
}
