//! Running claude so that nothing of it outlives its turn.
//!
//! Theory of operation. claude is started in a process group of its own; signals go to the whole
//! group. The harness is the subreaper of whatever escapes: a process that loses its parent becomes
//! the harness's child. When claude has exited, everything below the harness that was not there at
//! its start is killed and reaped, again and again until nothing is left, and only then is the exit
//! told. So that this holds for a harness that is itself killed, claude inherits a lock on its
//! working directory: the next harness cannot get the lock while anything of the old claude lives,
//! finds the holders, and ends them first. Invariant: at most one claude at work in a state
//! directory.

pub mod child;
pub mod family;
pub mod lock;
pub mod resident;
