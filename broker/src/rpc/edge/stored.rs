//! Agents' sockets that the service manager keeps while no broker runs, each under a name of its
//! own.
//!
//! A restart of the broker then closes no socket: connections that arrive in the meantime wait in
//! the kernel. Changes are collected here, and [`Stored::told`] reports them in their order.
//! Invariant: a kept socket is used only if its path still is that socket; any other is forgotten.

mod names;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use hive_core::name::AgentName;

use self::names::{Name, Names};
use super::layout::Layout;
use super::{bound, handed};
use crate::service_manager::{self, Inherited};

/// The kept sockets, and the changes that the service manager does not know yet.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// Whether the service manager keeps sockets.
    is_kept: bool,
    /// Those of the last broker that are not in use yet.
    found: Mutex<BTreeMap<AgentName, UnixListener>>,
    kept: Mutex<Kept>,
}

/// One lock for both: a name that was given to another socket must not be forgotten after that.
#[derive(Debug, Default)]
struct Kept {
    names: Names,
    changes: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Keep(Name, OwnedFd),
    Forget(Name),
}

impl Stored {
    /// Takes the sockets of agents among the descriptors that were handed over; returns the others,
    /// too.
    pub(super) fn take(
        inherited: Vec<Inherited>,
        is_kept: bool,
        layout: &Layout,
    ) -> (Self, Vec<Inherited>) {
        let stored = Self { is_kept, ..Self::default() };
        if !is_kept {
            return (stored, inherited);
        }
        let mut others = Vec::new();
        for Inherited { name, fd } in inherited {
            let Some(given) = Name::parse(&name) else {
                others.push(Inherited { name, fd });
                continue;
            };
            let bound = handed::listening_at(&fd);
            let agent = match &given {
                Name::Agent(agent) => agent.clone(),
                Name::Number(_) => match bound.as_deref().and_then(|path| layout.agent_at(path)) {
                    Some(agent) => agent,
                    None => {
                        stored.discard(given, "it is not one of an agent");
                        continue;
                    }
                },
            };
            let path = layout.agent_socket(&agent);
            if bound.as_ref() != Some(&path) {
                // A supervisor may name its sockets so. One of this broker has another directory.
                if !bound.is_some_and(|bound| layout.is_socket(&bound)) {
                    lock(&stored.kept).changes.push(Change::Forget(given));
                }
                others.push(Inherited { name, fd });
                continue;
            }
            match is_file_of(&fd, &path) {
                Ok(true) if lock(&stored.kept).names.found(&agent, &given) => {
                    let socket = UnixListener::from(fd);
                    // Earlier brokers used names of agents alone.
                    if lock(&stored.kept).names.are_too_long() {
                        stored.forget(&agent);
                        stored.keep(&agent, &socket);
                    }
                    lock(&stored.found).insert(agent, socket);
                }
                Ok(true) => stored.discard(given, "the agent has another one"),
                Ok(false) => stored.discard(given, "its file was replaced or removed"),
                Err(error) => stored.discard(given, &error.to_string()),
            }
        }
        // Their paths can be bound again only when nothing listens there any more.
        if let Err(error) = stored.told() {
            tracing::warn!(%error, "sockets that are not used any more may stay open");
        }
        (stored, others)
    }

    fn discard(&self, name: Name, why: &str) {
        tracing::warn!(agent = %name, why, "the socket that was kept for an agent is not used");
        lock(&self.kept).changes.push(Change::Forget(name));
    }

    /// Returns whether sockets are kept, so that their files have to stay when the broker ends.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.found).is_empty()
    }

    /// Returns the socket of the last broker for this agent; the next caller gets none.
    pub(super) fn reuse(&self, agent: &AgentName) -> Option<UnixListener> {
        lock(&self.found).remove(agent)
    }

    /// Has the socket of an agent kept.
    pub(super) fn keep(&self, agent: &AgentName, socket: &UnixListener) {
        if !self.is_kept {
            return;
        }
        match socket.as_fd().try_clone_to_owned() {
            Ok(fd) => {
                let mut kept = lock(&self.kept);
                let name = kept.names.give(agent);
                kept.changes.push(Change::Keep(name, fd));
            }
            Err(error) => {
                tracing::warn!(%agent, %error, "the socket of an agent is not kept over a restart");
            }
        }
    }

    /// Has the socket of an agent kept no longer.
    pub(super) fn forget(&self, agent: &AgentName) {
        let mut kept = lock(&self.kept);
        if let Some(name) = kept.names.take_back(agent) {
            kept.changes.push(Change::Forget(name));
        }
    }

    /// Closes those that no agent has used: their agents are gone.
    pub(super) fn forget_rest(&self) {
        for (agent, _) in std::mem::take(&mut *lock(&self.found)) {
            tracing::info!(%agent, "the socket of an agent that is gone is closed");
            self.forget(&agent);
        }
    }

    /// Returns whether there are changes that the service manager does not know.
    pub(super) fn has_changes(&self) -> bool {
        !lock(&self.kept).changes.is_empty()
    }

    /// Reports all changes to the service manager, and waits until it has handled them. It blocks.
    /// One caller at a time, so that reports are in order and none returns before another's.
    pub(super) fn told(&self) -> io::Result<()> {
        let changes = std::mem::take(&mut lock(&self.kept).changes);
        if changes.is_empty() {
            return Ok(());
        }
        // One that fails is no reason to leave out the others.
        let mut reported = Ok(());
        for change in changes {
            let sent = match change {
                Change::Keep(name, fd) => service_manager::keep(&name.to_string(), fd.as_fd()),
                Change::Forget(name) => service_manager::forget(&name.to_string()),
            };
            reported = reported.and(sent);
        }
        reported.and(service_manager::barrier())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether the file at the path is the one that this socket made when it was bound.
fn is_file_of(fd: &OwnedFd, path: &Path) -> io::Result<bool> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    // The kernel's answer has the lower half of the number.
    Ok(bound::file_inode(fd)? == u32::try_from(found.ino() & u64::from(u32::MAX)).ok())
}
