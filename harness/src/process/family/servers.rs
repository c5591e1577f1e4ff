//! The list of programs that run for `hive confine`: the descendants of this process that are MCP
//! servers of a running claude.
//!
//! A server is a child of the harness, not of claude. It belongs to its client, the process that
//! claude started for it. A round of the search for
//! leftovers of turns spares the server while the client lives.
//!
//! Invariant: a server is on the list before its process is visible, and until it is reaped. Only
//! the entry's owner ends and reaps it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Process;
use super::table::Entry;

/// The running servers, shared between the service that starts them and the search for leftovers of
/// turns.
#[derive(Clone, Debug, Default)]
pub struct Servers(Arc<Mutex<Serving>>);

/// The clients, by the first process of their server.
#[derive(Debug, Default)]
pub struct Serving(HashMap<Process, Process>);

impl Servers {
    /// Starts a server for a client. No round of the search runs in the meantime.
    pub fn enter<T, E>(
        &self,
        client: Process,
        start: impl FnOnce() -> Result<(T, Process), E>,
    ) -> Result<(T, Entered), E> {
        let mut serving = self.lock();
        let (started, root) = start()?;
        serving.0.insert(root, client);
        Ok((started, Entered { servers: self.clone(), root }))
    }

    /// Calls `inspect` on the list while no server can start.
    pub fn inspect<T>(&self, inspect: impl FnOnce(&Serving) -> T) -> T {
        inspect(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Serving> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Serving {
    /// Returns whether the process is the first one of a server whose client lives, or in the
    /// process group of such a server.
    pub fn spares(&self, entry: &Entry, lives: impl Fn(Process) -> bool) -> bool {
        self.0.iter().any(|(root, client)| {
            (*root == entry.process || root.pid == entry.group) && lives(*client)
        })
    }

    /// Returns whether the process is the first one of a server.
    pub fn has(&self, process: Process) -> bool {
        self.0.contains_key(&process)
    }
}

/// An entry of the list; it is removed when this is dropped.
#[derive(Debug)]
pub struct Entered {
    servers: Servers,
    root: Process,
}

impl Entered {
    /// Returns the first process of the server.
    pub fn root(&self) -> Process {
        self.root
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.servers.lock().0.remove(&self.root);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_spared_as_long_as_its_client_lives() {
        let process = |pid| Process { pid, start: 1 };
        let entry =
            |pid, group| Entry { process: process(pid), parent: 1, group, is_zombie: false };
        let servers = Servers::default();
        let ((), entered) =
            servers.enter(process(4), || Ok::<_, ()>(((), process(7)))).expect("entered");
        let spares = |entry: &Entry, clients: &[i32]| {
            servers.inspect(|serving| serving.spares(entry, |client| clients.contains(&client.pid)))
        };
        for (entry, spared) in [(entry(7, 7), true), (entry(8, 7), true), (entry(9, 9), false)] {
            assert_eq!((spares(&entry, &[4]), spares(&entry, &[5])), (spared, false));
        }
        assert!(servers.inspect(|serving| serving.has(process(7)) && !serving.has(process(8))));
        drop(entered);
        assert!(!spares(&entry(7, 7), &[4]));
    }
}
