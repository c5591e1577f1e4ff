//! Agents' sockets that the service manager keeps while no broker runs, under the names of the
//! agents.
//!
//! A restart of the broker then closes no socket: connections that arrive in the meantime wait in
//! the kernel. Changes are collected here, and [`Stored::told`] reports them in their order.
//! Invariant: a kept socket is used only if its path still is that socket; any other is forgotten.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use hive_core::name::AgentName;

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
    changes: Mutex<Vec<Change>>,
}

#[derive(Debug)]
enum Change {
    Keep(AgentName, OwnedFd),
    Forget(String),
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
            let Ok(agent) = AgentName::parse(&name) else {
                others.push(Inherited { name, fd });
                continue;
            };
            let path = layout.agent_socket(&agent);
            let bound = handed::listening_at(&fd);
            if bound.as_ref() != Some(&path) {
                // A supervisor may name its sockets so. One of this broker has another directory.
                if !bound.is_some_and(|bound| layout.is_socket(&bound)) {
                    stored.change(Change::Forget(name.clone()));
                }
                others.push(Inherited { name, fd });
                continue;
            }
            match is_file_of(&fd, &path) {
                Ok(true) => drop(lock(&stored.found).insert(agent, UnixListener::from(fd))),
                Ok(false) => stored.discard(name, "its file was replaced or removed"),
                Err(error) => stored.discard(name, &error.to_string()),
            }
        }
        // Their paths can be bound again only when nothing listens there any more.
        if let Err(error) = stored.told() {
            tracing::warn!(%error, "sockets that are not used any more may stay open");
        }
        (stored, others)
    }

    fn discard(&self, name: String, why: &str) {
        tracing::warn!(agent = name, why, "the socket that was kept for an agent is not used");
        self.change(Change::Forget(name));
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
            Ok(fd) => self.change(Change::Keep(agent.clone(), fd)),
            Err(error) => {
                tracing::warn!(%agent, %error, "the socket of an agent is not kept over a restart");
            }
        }
    }

    /// Has the socket of an agent kept no longer.
    pub(super) fn forget(&self, agent: &AgentName) {
        self.change(Change::Forget(agent.to_string()));
    }

    /// Closes those that no agent has used: their agents are gone.
    pub(super) fn forget_rest(&self) {
        for (agent, _) in std::mem::take(&mut *lock(&self.found)) {
            tracing::info!(%agent, "the socket of an agent that is gone is closed");
            self.forget(&agent);
        }
    }

    fn change(&self, change: Change) {
        if self.is_kept {
            lock(&self.changes).push(change);
        }
    }

    /// Returns whether there are changes that the service manager does not know.
    pub(super) fn has_changes(&self) -> bool {
        !lock(&self.changes).is_empty()
    }

    /// Reports all changes to the service manager, and waits until it has handled them. It blocks.
    pub(super) fn told(&self) -> io::Result<()> {
        let changes = std::mem::take(&mut *lock(&self.changes));
        if changes.is_empty() {
            return Ok(());
        }
        // One that fails is no reason to leave out the others.
        let mut reported = Ok(());
        for change in changes {
            let sent = match change {
                Change::Keep(agent, fd) => service_manager::keep(agent.as_str(), fd.as_fd()),
                Change::Forget(name) => service_manager::forget(&name),
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
