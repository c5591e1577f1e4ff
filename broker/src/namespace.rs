//! Pid namespaces: the one of a process, and its ancestors.
//!
//! Invariant: an id names one namespace only while a [`PidNamespace`] with it exists. Its
//! descriptor keeps the kernel from reusing the number.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{Mode, OFlags, fstat, open};

use crate::kernel::{namespace_kind, parent_namespace};

/// The flag of `clone` that makes a pid namespace.
const CLONE_NEWPID: u32 = 0x2000_0000;
/// Longest lineage of a pid namespace: the nested ones (`MAX_PID_NS_LEVEL` of the kernel is 32),
/// and the first one.
const DEPTH_MAX: usize = 33;

/// The number of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NamespaceId {
    device: u64,
    inode: u64,
}

impl NamespaceId {
    fn new(namespace: &OwnedFd) -> io::Result<Self> {
        let found = fstat(namespace)?;
        Ok(Self { device: found.st_dev, inode: found.st_ino })
    }
}

/// A pid namespace that is kept open.
#[derive(Debug)]
pub struct PidNamespace {
    /// Its own number and those of its ancestors that this process may see: up to its own.
    lineage: Vec<NamespaceId>,
    _descriptor: OwnedFd,
}

impl PidNamespace {
    /// Opens the namespace of this process.
    pub fn own() -> io::Result<Self> {
        Self::at("/proc/self/ns/pid")
    }

    /// Opens the namespace of a process. The caller makes sure that the number is still that
    /// process's.
    pub fn of_process(pid: i32) -> io::Result<Self> {
        Self::at(&format!("/proc/{pid}/ns/pid"))
    }

    fn at(path: &str) -> io::Result<Self> {
        Self::from_descriptor(open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Takes a descriptor of a namespace; an error if it is of anything else.
    pub fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        if namespace_kind(&descriptor).ok() != Some(CLONE_NEWPID) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the descriptor is of no pid namespace",
            ));
        }
        let mut lineage = vec![NamespaceId::new(&descriptor)?];
        let mut above = parent_namespace(descriptor.as_fd());
        // The kernel refuses the first ancestor that does not contain this process.
        while let Ok(parent) = above
            && lineage.len() < DEPTH_MAX
        {
            lineage.push(NamespaceId::new(&parent)?);
            above = parent_namespace(&parent);
        }
        Ok(Self { lineage, _descriptor: descriptor })
    }

    /// Returns its number.
    #[must_use]
    pub fn id(&self) -> NamespaceId {
        self.lineage[0]
    }

    /// Returns the numbers of its ancestors, nearest first.
    #[must_use]
    pub fn above(&self) -> &[NamespaceId] {
        &self.lineage[1..]
    }
}

#[cfg(test)]
impl PidNamespace {
    /// Returns an invented namespace, with the numbers of itself and of its ancestors.
    pub(crate) fn made_up(inodes: &[u64]) -> Self {
        let lineage = inodes.iter().map(|inode| NamespaceId { device: 0, inode: *inode }).collect();
        let descriptor = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .expect("it is there");
        Self { lineage, _descriptor: descriptor }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn this_process_is_in_its_own_namespace_and_sees_none_above_it() {
        let own = PidNamespace::own().expect("/proc is mounted");
        let of_process =
            PidNamespace::of_process(i32::try_from(std::process::id()).expect("a number"))
                .expect("it runs");
        assert_eq!((own.id(), own.above()), (of_process.id(), [].as_slice()));
    }

    #[test]
    fn a_descriptor_of_no_pid_namespace_is_refused() {
        for path in ["/proc/self/ns/mnt", "/dev/null"] {
            let refused =
                PidNamespace::from_descriptor(File::open(path).expect("it is there").into())
                    .expect_err(path);
            assert_eq!(refused.to_string(), "the descriptor is of no pid namespace");
        }
    }
}
