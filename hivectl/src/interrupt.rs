//! Ending work that has no end of its own: Ctrl-C and SIGTERM.

use std::future::Future;

use tokio::signal::unix::{SignalKind, signal};

/// Runs `work` until it ends, or until the process is asked to; `None` then. Signals are handled
/// before the work begins, so that it can tidy up whenever one comes.
pub(crate) async fn until_interrupted<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = interrupted() => None,
        done = work => Some(done),
    }
}

/// Ends when the process is asked to end.
pub(crate) async fn interrupted() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        // Without handlers the signals keep their default, which ends the process too.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
