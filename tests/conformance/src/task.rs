//! A task that ends with its handle.

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;

/// See the module.
#[derive(Debug)]
pub(crate) struct Task<T>(JoinSet<T>);

impl<T: Send + 'static> Task<T> {
    /// Starts a task.
    pub(crate) fn start(future: impl Future<Output = T> + Send + 'static) -> Self {
        let mut set = JoinSet::new();
        set.spawn(future);
        Self(set)
    }

    /// Waits for its result; an error if it panicked.
    pub(crate) async fn result(&mut self) -> Result<T> {
        Ok(self.0.join_next().await.context("the task has ended before")??)
    }
}
