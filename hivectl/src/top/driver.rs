//! The only loop: it waits for keys, the broker, the clock and signals, and performs the actions of
//! the state.
//!
//! Invariant: nothing is decided here, and nothing that waits for the broker holds up the keys.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use hive_core::time::{BootTime, Now, WallTime};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::time::{ClockId, clock_gettime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::act::carry_out;
use super::change::Outcome;
use super::input::Input;
use super::link::{Heard, Link};
use super::read::read;
use super::screen::{self, Screen};
use super::state::State;
use super::update::{Action, Event, update};
use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;
use crate::interrupt::interrupted;
use crate::output::note;
use crate::output::text::visible_line;

/// Maximum time for changes that are under way when the screen closes.
const QUIT_PATIENCE: Duration = Duration::from_secs(2);

pub(crate) async fn run(context: &Context) -> Result<(), Failure> {
    if !usable_terminal() {
        return Err(Failure::NoTerminal);
    }
    // All that can fail at once fails before the terminal is taken.
    let broker = context.broker().await?;
    let link = Link::open(context, &broker).await?;
    let mut driver =
        Driver { broker, link, reads: JoinSet::new(), changes: JoinSet::new(), wake: None };
    let mut state =
        State::new(screen::size(), colored(), TimeZone::system(), crate::connect::request_id());
    let mut screen = Screen::open().map_err(Failure::Output)?;
    let ended = driver.show(&mut state, &mut screen).await;
    drop(screen);
    driver.finish().await;
    ended
}

fn usable_terminal() -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdin().is_terminal() && io::stdout().is_terminal() && !dumb
}

fn colored() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
}

fn now() -> Now {
    let boot = clock_gettime(ClockId::Boottime);
    let boot = boot.tv_sec.saturating_mul(1000).saturating_add(boot.tv_nsec / 1_000_000);
    Now { wall: WallTime(Timestamp::now().as_millisecond()), boot: BootTime(boot) }
}

struct Driver {
    broker: Broker,
    link: Link,
    reads: JoinSet<Event>,
    changes: JoinSet<Event>,
    wake: Option<Instant>,
}

impl Driver {
    async fn show(&mut self, state: &mut State, screen: &mut Screen) -> Result<(), Failure> {
        let mut input = Input::open().map_err(Failure::Input)?;
        let mut resized = signal(SignalKind::window_change()).map_err(Failure::Input)?;
        let mut tick = interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let interrupted = interrupted();
        tokio::pin!(interrupted);
        let mut event = Event::Linked;
        loop {
            // Changes of the hive are not on the screen before they are read.
            let seen = !matches!(event, Event::Happened(..) | Event::Missed | Event::Wake);
            for action in update(state, event, now()) {
                match action {
                    Action::Quit => return Ok(()),
                    Action::Redraw => screen.clear().map_err(Failure::Output)?,
                    Action::WakeAt(time) => {
                        self.wake = Some(Instant::now() + time.since(now().boot));
                    }
                    Action::Read(wanted) => {
                        drop(self.reads.spawn(read(self.broker.clone(), wanted)));
                    }
                    Action::Change(asked) => {
                        drop(self.changes.spawn(carry_out(self.broker.clone(), asked)));
                    }
                }
            }
            if seen {
                screen.draw(state, now()).map_err(Failure::Output)?;
            }
            event = tokio::select! {
                key = input.next() => match key {
                    Some(key) => Event::Key(key),
                    None => return Ok(()),
                },
                heard = self.link.next() => self.heard(heard),
                Some(done) = self.reads.join_next() => done.expect("a reading does not panic"),
                Some(done) = self.changes.join_next() => done.expect("a change does not panic"),
                _ = resized.recv() => {
                    let (columns, lines) = screen::size();
                    Event::Resized(columns, lines)
                }
                () = wait(self.wake) => {
                    self.wake = None;
                    Event::Wake
                }
                _ = tick.tick() => Event::Tick,
                () = &mut interrupted => return Ok(()),
            };
        }
    }

    fn heard(&mut self, heard: Heard) -> Event {
        match heard {
            Heard::Happened(kind, agent) => Event::Happened(kind, agent),
            Heard::Missed => Event::Missed,
            Heard::Lost(why) => Event::Lost(why),
            Heard::Back(broker) => {
                self.broker = broker;
                Event::Linked
            }
        }
    }

    /// Waits a little for pending changes, and reports those that failed.
    async fn finish(mut self) {
        let reported = async {
            while let Some(done) = self.changes.join_next().await {
                if let Ok(Event::Changed(asked, Outcome::Refused(why) | Outcome::Unknown(why))) =
                    done
                {
                    note(&visible_line(&format!("{}: {why}", asked.change.describe().failed)));
                }
            }
        };
        if tokio::time::timeout(QUIT_PATIENCE, reported).await.is_err() {
            note("the broker has not answered yet; `hivectl events` shows what it did");
        }
    }
}

/// Waits until a time; without one it never returns.
async fn wait(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
