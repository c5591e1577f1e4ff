//! Room: the open files that sockets and connections of agents share.
//!
//! An open socket has a seat: a file for itself, and one for a connection. Invariants: with a seat
//! an agent has a connection whatever the others do, and all agents together leave the broker its
//! reserve, so that the operator can connect.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::files::{Budget, FILES_PER_AGENT, Shortage};

/// How long a connection waits for a file. A client that connects again may just have closed its
/// last connection, which the broker has not seen yet.
const PATIENCE: Duration = Duration::from_secs(5);

/// The files of all agents.
#[derive(Debug)]
pub(super) struct Room {
    budget: Budget,
    free: Arc<Semaphore>,
}

impl Room {
    /// Returns the room below a limit of open files.
    pub(super) fn below(limit: usize) -> Self {
        let budget = Budget::of(limit);
        Self { budget, free: Arc::new(Semaphore::new(budget.for_agents())) }
    }

    /// Takes a seat for a socket; `None` if there is none.
    pub(super) fn seat(&self) -> Option<Seat> {
        let count = u32::try_from(FILES_PER_AGENT).ok()?;
        let files = Arc::clone(&self.free).try_acquire_many_owned(count).ok()?;
        let (own, free) = (Arc::new(Semaphore::new(1)), Arc::clone(&self.free));
        Some(Seat(Arc::new(Seated { own, free, _files: files })))
    }

    /// Returns what so many agents lack.
    pub(super) fn shortage(&self, agents: usize) -> Shortage {
        self.budget.shortage(agents)
    }
}

/// The files of one socket.
#[derive(Debug)]
pub struct Seat(Arc<Seated>);

#[derive(Debug)]
struct Seated {
    /// The file of the connection that is always possible.
    own: Arc<Semaphore>,
    free: Arc<Semaphore>,
    _files: OwnedSemaphorePermit,
}

impl Seat {
    /// Takes the file of a connection, if one becomes free soon.
    pub(super) async fn connection(&self) -> Option<ConnFile> {
        let take = |of: &Arc<Semaphore>| Arc::clone(of).acquire_owned();
        let file = match self.try_file() {
            Some(file) => file,
            None => {
                let either = async {
                    tokio::select! {
                        own = take(&self.0.own) => own,
                        free = take(&self.0.free) => free,
                    }
                };
                tokio::time::timeout(PATIENCE, either).await.ok()?.ok()?
            }
        };
        Some(ConnFile { _file: file, _seat: Arc::clone(&self.0) })
    }

    fn try_file(&self) -> Option<OwnedSemaphorePermit> {
        let own = Arc::clone(&self.0.own).try_acquire_owned();
        own.or_else(|_| Arc::clone(&self.0.free).try_acquire_owned()).ok()
    }
}

/// The file of a connection. The seat of its socket stays taken as long as it is open.
#[derive(Debug)]
pub(super) struct ConnFile {
    _file: OwnedSemaphorePermit,
    _seat: Arc<Seated>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes connections of a seat, as many as there are, at most `most`.
    async fn connections(seat: &Seat, most: usize) -> Vec<ConnFile> {
        let mut found = Vec::new();
        while found.len() < most
            && let Some(next) = seat.connection().await
        {
            found.push(next);
        }
        found
    }

    #[tokio::test(start_paused = true)]
    async fn each_seat_has_a_connection_and_more_only_while_there_are_files() {
        // 64 files for agents.
        let room = Room::below(128);
        let mut seats: Vec<Seat> = std::iter::from_fn(|| room.seat()).take(31).collect();
        assert_eq!(seats.len(), 31);
        let mut first = Vec::new();
        for seat in &seats {
            first.extend(connections(seat, 1).await);
        }
        assert_eq!(first.len(), 31);
        let more = connections(&seats[0], 9).await;
        assert_eq!(more.len(), 2, "two files are left");
        assert!(room.seat().is_none() && seats[1].connection().await.is_none());
        drop(more);
        seats.extend(room.seat());
        assert_eq!(seats.len(), 32);
        assert!(room.seat().is_none() && seats[31].connection().await.is_some());

        // A socket that is closed has its files until its connections are.
        drop(seats);
        assert_eq!(room.free.available_permits(), 2);
        drop(first);
        assert_eq!(room.free.available_permits(), 64);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_waits_for_the_file_of_one_that_closes() {
        let room = Room::below(66);
        let seat = room.seat().expect("there are two files");
        let first = seat.connection().await.expect("its own file");
        let (second, ()) = tokio::join!(seat.connection(), async { drop(first) });
        assert!(second.is_some());
        let begun = tokio::time::Instant::now();
        assert!(seat.connection().await.is_none());
        assert_eq!(begun.elapsed(), PATIENCE);
    }
}
