//! Makes the backups of `[broker.backup]` when they are due.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::wall;
use crate::engine::Engine;
use crate::engine::operator::scheduled::Backups;

/// Makes a backup whenever one is due.
pub async fn backup(engine: Arc<Engine>, backups: Arc<Backups>, stop: CancellationToken) {
    while let Some(next) = engine.make_due_backup(&backups, &stop).await {
        tokio::select! {
            () = wall::until(next, engine.clock().now().wall) => {}
            () = stop.cancelled() => return,
        }
    }
}
