//! Runs of claude of which nothing outlives the turn.
//!
//! Theory of operation. claude is started in its own process group; signals go to the whole group.
//! The harness is a subreaper: a process that loses its parent becomes the harness's child. When
//! claude has exited, all new descendants of the harness are killed and reaped, repeatedly until
//! none is left. Only then is the exit reported. claude inherits a lock on its working directory,
//! in case the harness itself is killed. The next harness cannot acquire the lock while a process
//! of the old claude lives; it finds the holders, and ends them first. Invariant: at most one
//! claude works in a state directory.

pub mod child;
pub mod family;
pub mod lock;
pub mod resident;
