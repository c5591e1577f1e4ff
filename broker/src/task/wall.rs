//! Timers by the wall clock: deadlines of questions, and due times of reminders, of schedules and
//! of heartbeats.
//!
//! The kernel cancels the timer when the clock is set: whichever way the clock jumps, the due rows
//! are read again, without polling. Invariant: due times are in rows, so nothing is lost with the
//! process. Those of heartbeats are in memory, because a missed one is not sent later.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hive_core::time::WallTime;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;

use super::RETRY_PAUSE;
use crate::engine::background::DEADLINES;
use crate::engine::{Engine, Refusal};

/// Ends questions whose deadline has passed, fires due reminders and schedules, and sends due
/// heartbeats.
pub async fn wall_due(engine: Arc<Engine>, stop: CancellationToken) {
    loop {
        let signal = engine.hints().wall_due.notified();
        let next = match sweep(&engine).await {
            Ok(next) => {
                engine.task_succeeded(DEADLINES);
                next
            }
            Err(error) => {
                engine.task_failed(DEADLINES, &error);
                Some(engine.clock().now().wall.after(RETRY_PAUSE))
            }
        };
        let timer = async {
            match next {
                Some(next) => until(next, engine.clock().now().wall).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = signal => {}
            () = timer => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn sweep(engine: &Engine) -> Result<Option<WallTime>, Refusal> {
    let (questions, reminders) = (engine.sweep_questions().await?, engine.sweep_reminders().await?);
    let schedules = engine.sweep_schedules().await?;
    let heartbeats = engine.sweep_heartbeats().await?;
    Ok(questions.into_iter().chain(reminders).chain(schedules).chain(heartbeats).min())
}

/// Waits until the wall clock shows `due`, or until the clock is set.
pub(super) async fn until(due: WallTime, now: WallTime) {
    if due <= now {
        return;
    }
    if let Err(error) = timer(due).await {
        tracing::debug!(%error, "no timer of the wall clock; a plain one has to do");
        tokio::time::sleep(due.since(now).min(Duration::from_secs(60))).await;
    }
}

async fn timer(due: WallTime) -> io::Result<()> {
    let fd =
        timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    let at =
        Timespec { tv_sec: due.0.div_euclid(1000), tv_nsec: due.0.rem_euclid(1000) * 1_000_000 };
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    timerfd_settime(&fd, flags, &Itimerspec { it_interval: never, it_value: at })?;
    // Readable when it is due, and also when it was cancelled; the due rows are read in both cases.
    #[expect(
        deprecated,
        reason = "the replacement is unsafe to call; an owned descriptor is what it asks for, and this is one"
    )]
    let fd = AsyncFd::new(fd)?;
    drop(fd.readable().await?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, SystemClock};

    #[tokio::test]
    async fn a_timer_ends_when_the_wall_clock_is_there_and_not_before() {
        let clock = SystemClock::new().expect("a clock");
        let due = clock.now().wall.after(Duration::from_millis(30));
        timer(due).await.expect("a timer of the wall clock");
        assert!(clock.now().wall >= due);
    }

    #[tokio::test]
    async fn an_item_that_is_due_needs_no_wait() {
        until(WallTime(1), WallTime(2)).await;
        timer(WallTime(1)).await.expect("a time that is over ends at once");
    }
}
