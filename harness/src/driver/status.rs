//! Unrequested reports to the broker: the status of the harness, and its signs of life.
//!
//! Invariant: the broker receives the last status of a session, and no older one after it.

use std::time::Duration;

use hive_core::agent::HarnessState;
use hive_core::time::WallTime;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

use crate::driver::link::Link;
use crate::driver::{LoopEvent, calls};
use crate::turn::input::Input;

/// The state of the harness, and its end if it is known.
pub type HarnessStatus = (HarnessState, Option<WallTime>);

/// Reports the newest status of a session after each change; `reported` contains the status that
/// the broker knows.
pub async fn report(
    mut link: Link,
    mut status: watch::Receiver<Option<HarnessStatus>>,
    reported: watch::Sender<Option<HarnessStatus>>,
    to: mpsc::Sender<LoopEvent>,
    session: u64,
) {
    status.mark_changed();
    while status.changed().await.is_ok() {
        let now = *status.borrow_and_update();
        let Some((state, until)) = now else { continue };
        if let Err(Input::Fenced(why)) = calls::report(&mut link, state, until).await {
            let _ = to.send(LoopEvent::Call(session, Input::Fenced(why))).await;
            return;
        }
        reported.send_replace(now);
    }
}

/// Waits while there is no login and the broker does not know that yet. The broker would start a
/// turn that cannot run.
pub async fn parked(
    mut status: watch::Receiver<Option<HarnessStatus>>,
    mut reported: watch::Receiver<Option<HarnessStatus>>,
) {
    loop {
        let wanted = *status.borrow_and_update();
        let needs_login = wanted.is_some_and(|(state, _)| state == HarnessState::NeedsLogin);
        if !needs_login || *reported.borrow_and_update() == wanted {
            return;
        }
        let changed = tokio::select! {
            changed = status.changed() => changed,
            changed = reported.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Sends signs of life while the program runs.
pub async fn beat(
    mut link: Link,
    every: Duration,
    running: watch::Receiver<Option<u64>>,
    to: mpsc::Sender<LoopEvent>,
) {
    let mut beats = interval(every);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        let expected = *running.borrow();
        let input = match calls::heartbeat(&mut link).await {
            Ok(open) => expected.filter(|turn_id| !open.contains(turn_id)).map(Input::TurnGone),
            // The session's stream also reports a lost session, and knows which session it was.
            Err(status) => {
                tracing::debug!(%status, "no answer to a sign of life");
                None
            }
        };
        if let Some(input) = input {
            let _ = to.send(LoopEvent::Local(input)).await;
        }
    }
}
