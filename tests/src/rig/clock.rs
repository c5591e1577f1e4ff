//! The wall clock. Due times go by it, so a journey that has to wait for one without a process that
//! reports it waits for the kernel's timer.
//!
//! What it is not: a way to let time pass. Invariant: this is the one place where journeys read the
//! clock.

use prost_types::Timestamp;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

use super::soon;

/// Nanoseconds of a second.
const NANOS: i64 = 1_000_000_000;

/// Returns the time this many milliseconds from now.
pub fn in_millis(millis: i64) -> Timestamp {
    let now = clock_gettime(ClockId::Realtime);
    later(
        Timestamp {
            seconds: now.tv_sec,
            nanos: i32::try_from(now.tv_nsec).expect("less than a second"),
        },
        millis,
    )
}

/// Returns the time this many milliseconds after another.
pub fn later(time: Timestamp, millis: i64) -> Timestamp {
    let nanos = i64::from(time.nanos) + millis * (NANOS / 1000);
    let within = i32::try_from(nanos.rem_euclid(NANOS)).expect("less than a second");
    Timestamp { seconds: time.seconds + nanos.div_euclid(NANOS), nanos: within }
}

/// Waits until the wall clock shows a time.
pub async fn shows(time: Timestamp) {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let timer = timerfd_create(TimerfdClockId::Realtime, flags).expect("the kernel has timers");
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let once = Itimerspec {
        it_interval: never,
        it_value: Timespec { tv_sec: time.seconds, tv_nsec: i64::from(time.nanos) },
    };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &once).expect("the time can be set");
    // Not a pipe, but it is read like one.
    let mut timer = Receiver::from_owned_fd_unchecked(timer).expect("a timer can be waited for");
    let rang = soon(&format!("the clock shows {time}"), timer.read(&mut [0; 8])).await;
    assert_eq!(rang.expect("the timer rings"), 8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_later_when_the_clock_has_shown_a_time() {
        let due = in_millis(20);
        shows(due).await;
        let now = in_millis(0);
        assert!((now.seconds, now.nanos) >= (due.seconds, due.nanos), "{now} is not before {due}");
        shows(due).await;
        let time = Timestamp { seconds: 5, nanos: 999_000_000 };
        assert_eq!(later(time, 2), Timestamp { seconds: 6, nanos: 1_000_000 });
        assert_eq!(later(time, -1000), Timestamp { seconds: 4, nanos: 999_000_000 });
    }
}
