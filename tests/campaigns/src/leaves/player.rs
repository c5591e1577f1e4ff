//! The player of one agent: sends each message at the moment that it aims at, and checks how it is
//! handled.
//!
//! Invariant: a try begins when the turn of the last message has ended.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hive_proto::v1::event::Facts;
use hive_proto::v1::{Event, EventKind, HarnessLoss, TurnOutcome};
use hive_tests::rig::{Client, Rig, Watch, gone};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::time::{sleep, timeout};

use super::aim::{Aim, From};
use super::{AFTER, ASKING, BEFORE, DECIDED, ENDING, LEAVING, Outcome, REST};
use crate::torture::dice::Dice;
use crate::torture::now_ms;

/// A message that is not handled after this time waits for help. Generous, because a loaded
/// machine is slow.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// What counts as right after the decision, in ms.
const CLOSE_MS: i64 = 5;

pub(super) struct Player<'h> {
    rig: &'h Rig,
    /// `hivectl up`.
    up: Pid,
    name: String,
    seed: u64,
    dice: Dice,
    operator: Client,
    watch: Watch,
    harness: Option<Harness>,
    outcome: Outcome,
}

/// The process of a harness.
struct Harness {
    pid: Pid,
    /// Becomes readable at its end.
    process: OwnedFd,
}

impl Harness {
    fn has_ended(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&self.process, PollFlags::IN)], Some(&at_once));
        ready.is_ok_and(|ready| ready > 0)
    }
}

/// What the log shows of a message, from the end of the turn before it.
#[derive(Debug, Default)]
struct Life {
    turn_ended: Option<i64>,
    /// When the harness left before the message was accepted.
    left: Option<i64>,
    accepted: Option<i64>,
    /// Harnesses that attached.
    attached: u32,
    /// The turn over the message.
    turn: Option<u64>,
    turns: u32,
    acked: bool,
    /// When that turn ended.
    ended: Option<i64>,
}

fn millis(event: &Event) -> i64 {
    let time = event.time.unwrap_or_default();
    time.seconds * 1000 + i64::from(time.nanos) / 1_000_000
}

impl<'h> Player<'h> {
    pub(super) async fn new(rig: &'h Rig, up: Pid, name: String, seed: u64) -> Self {
        let operator = rig.operator().await;
        let watch = rig.watch_from_now().await;
        let (dice, harness, outcome) = (Dice::new(seed, &name), None, Outcome::default());
        Self { rig, up, name, seed, dice, operator, watch, harness, outcome }
    }

    /// Makes the tries, or as many as there are up to the first problem.
    pub(super) async fn play(mut self, tries: u64) -> Outcome {
        // The first message starts the first harness.
        let mut life = Life::default();
        for number in 0..=tries {
            let next = timeout(3 * WAIT_MAX, self.attempt(number, life)).await;
            match next.unwrap_or_else(|_| Err("the harness neither leaves nor takes mail".into())) {
                Ok(ended) => life = Life { turn_ended: ended, ..Life::default() },
                Err(problem) => {
                    let (name, seed) = (&self.name, self.seed);
                    let violation = format!("seed {seed}, {name}, message {number}: {problem}");
                    self.outcome.violations.push(violation);
                    break;
                }
            }
        }
        self.outcome
    }

    /// Sends a message and follows it to the end of its turn, whose time it returns.
    async fn attempt(&mut self, number: u64, mut life: Life) -> Result<Option<i64>, String> {
        if number > 0 {
            self.take_aim(&mut life).await?;
        }
        let had_ended = self.harness.as_ref().map(Harness::has_ended);
        let sent = Instant::now();
        let body = format!("message {number}");
        let mail = self.operator.try_send(&self.name, &body).await;
        let mail = mail.map_err(|status| format!("it is refused: {status}"))?.message_id;
        let has_ended = self.harness.as_ref().map(Harness::has_ended);
        while !life.acked {
            let left = WAIT_MAX.saturating_sub(sent.elapsed());
            let followed = timeout(left, self.follow(&mut life, mail)).await;
            followed.map_err(|_| format!("it waits for help: {life:?}"))??;
        }
        let waited = sent.elapsed();
        while life.ended.is_none() {
            self.follow(&mut life, mail).await?;
        }
        let expected = u32::from(life.left.is_some() || number == 0);
        if (life.turns, life.attached) != (1, expected) {
            return Err(format!("it needs one turn and {expected} new harnesses: {life:?}"));
        }
        if number > 0 {
            self.outcome.longest_wait = self.outcome.longest_wait.max(waited);
            self.count(&life, had_ended, has_ended);
        }
        Ok(life.ended)
    }

    /// Waits for the moment that the next send is aimed at.
    async fn take_aim(&mut self, life: &mut Life) -> Result<(), String> {
        let Aim { from, after } = Aim::roll(&mut self.dice);
        match (from, life.turn_ended) {
            (From::Turn, Some(ended)) => {
                // The event is some milliseconds old.
                let passed = u64::try_from(now_ms() - ended).unwrap_or_default();
                sleep(after.saturating_sub(Duration::from_millis(passed))).await;
                return Ok(());
            }
            (From::Turn, None) => {}
            (From::Leave | From::Exit, _) => {
                while life.left.is_none() {
                    self.follow(life, 0).await?;
                }
            }
        }
        if from == From::Exit
            && let Some(harness) = &self.harness
        {
            gone(harness.pid).await;
        }
        sleep(after).await;
        Ok(())
    }

    /// Counts the moment that a message has hit.
    fn count(&mut self, life: &Life, had_ended: Option<bool>, has_ended: Option<bool>) {
        let moment = match (life.left, had_ended, has_ended) {
            (None, _, _) => BEFORE,
            (Some(_), _, Some(false)) => LEAVING,
            (Some(_), Some(false), Some(true)) => ENDING,
            (Some(_), Some(true), _) => AFTER,
            (Some(_), None, _) | (Some(_), _, None) => "after the leave, of an unknown process",
        };
        self.outcome.count(moment);
        let after = |moment: Option<i64>| Some(life.accepted? - moment?);
        let rest = i64::try_from(REST.as_millis()).expect("a short time");
        match life.left {
            None if after(life.turn_ended) >= Some(rest) => self.outcome.count(ASKING),
            Some(_) if after(life.left) <= Some(CLOSE_MS) => self.outcome.count(DECIDED),
            None | Some(_) => {}
        }
    }

    /// Reads the next event of the agent, and notes what it means for a message.
    async fn follow(&mut self, life: &mut Life, mail: u64) -> Result<(), String> {
        let name = self.name.clone();
        let event = self.watch.until("an event", |event| event.agent == name).await;
        let is_its_own = mail > 0 && event.message_id == mail;
        match (event.kind(), &event.facts) {
            (EventKind::MessageAccepted, _) if is_its_own => life.accepted = Some(millis(&event)),
            (EventKind::DeliveryLeased, _) if is_its_own => {}
            (EventKind::DeliveryAcked, _) if is_its_own => life.acked = true,
            (EventKind::HarnessAttached, _) => life.attached += 1,
            (EventKind::HarnessLost, Some(Facts::HarnessLost(lost)))
                if lost.loss() == HarnessLoss::Left && life.accepted.is_none() =>
            {
                life.left = Some(millis(&event));
            }
            (EventKind::TurnBegun, _) => {
                life.turns += 1;
                life.turn = Some(event.turn_id);
                self.harness = self.running()?;
            }
            (EventKind::TurnEnded, Some(Facts::TurnEnded(ended)))
                if ended.outcome() == TurnOutcome::Ok && life.turn == Some(event.turn_id) =>
            {
                life.ended = Some(millis(&event));
            }
            (EventKind::HarnessStateChanged | EventKind::StatusChanged, _) => {}
            _ => return Err(format!("this is not expected: {event:?}")),
        }
        Ok(())
    }

    /// Returns the one harness of the agent; `None` if it has left by now.
    fn running(&self) -> Result<Option<Harness>, String> {
        let harnesses = self.rig.running(&self.name, "hive").into_iter();
        let mut harnesses = harnesses.filter(|pid| parent(*pid) == Some(self.up));
        let (one, other) = (harnesses.next(), harnesses.next());
        if let (Some(one), Some(other)) = (one, other) {
            return Err(format!("it has two harnesses: {one:?}, {other:?}"));
        }
        let open = |pid| Some(Harness { pid, process: pidfd_open(pid, PidfdFlags::empty()).ok()? });
        Ok(one.and_then(open))
    }
}

/// Returns the parent of a process.
fn parent(pid: Pid) -> Option<Pid> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t"))?;
    Pid::from_raw(parent.trim().parse().ok()?)
}
