//! A signal of the test that an answer waits for.

use tokio::sync::watch;

/// Closed until it is opened, and open for ever then. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate {
    open: watch::Sender<bool>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { open: watch::Sender::new(false) }
    }
}

impl Gate {
    /// A closed one.
    pub fn new() -> Self {
        Self::default()
    }

    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Waits until it is open.
    pub(super) async fn passed(&self) {
        // The sender lives in this very gate.
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }
}
