//! The switches with the feature `on`.
//!
//! Invariant: bugs and seeds belong to the thread that set them, so that simulations run side by
//! side; fail points belong to the process.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Mistakes that can be made on purpose, each breaking one promise of the delivery contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// A reply leaves before the commit of its batch: a receipt may be false.
    ReplyBeforeCommit,
    /// A waiter gets no hint about new work: what was accepted is not delivered.
    LostWake,
    /// A harness of an earlier session begins and ends turns: only the present session epoch
    /// settles.
    SessionUnchecked,
    /// The token of an earlier lease settles the present one: any other token is refused.
    StaleLease,
    /// The last attempt is not counted: after the 5th failure a delivery is a dead letter.
    NeverDead,
    /// A rate limit uses an attempt: outages never consume one.
    RateLimitUsesAttempt,
    /// A harness that vanished in mid-turn uses no attempt: it may be the message's fault.
    VanishedForgiven,
    /// A reminder is not always marked when it fires: it fires exactly once.
    ReminderFiresTwice,
    /// Due times while the broker was down are not counted: each is fired or counted once.
    DowntimeUncounted,
    /// A failed message of a schedule is superseded: it becomes a dead letter.
    FailedFiringSuperseded,
    /// A schedule is not always moved on when it fires: a due time fires once.
    ScheduleFiresTwice,
    /// A question that has expired is answered: the deadline came first.
    AnswerAfterExpiry,
    /// A closed question is closed once more: a second closer changes nothing.
    TwoOutcomes,
    /// Changes are approved that were not shown: the digest of an answer is compared.
    DigestUnchecked,
    /// A denial applies the effect: only an approval does.
    DeniedApplied,
    /// An approval of a diff that has changed is the outcome, and its effect is left out: it is
    /// refused, and changes nothing.
    ApprovedUnapplied,
    /// An approval of an approved question applies its effect again: it is applied once.
    EffectAppliedAgain,
    /// A restart forgets request ids: the same request gets its first answer for 7 days.
    RequestForgotten,
    /// A request id with other content gets the first answer: it is refused.
    RequestContentUnchecked,
    /// An inbox is served newest first: within a lane it is first in, first out.
    NewestFirst,
    /// The lane `normal` is served before `system`.
    LanesMixed,
    /// A new session leaves the turn of the older one open: a turn ends by a new session epoch.
    TakeOverKeepsTurn,
    /// A restart of the broker ends the running turns: a harness that reconnects in time keeps its
    /// turn.
    RestartEndsTurns,
    /// The grace time is not counted from when the broker was ready: a harness has all of it to
    /// reconnect.
    NoGrace,
    /// Mail received in a turn that did not reach the model stays leased: the end of a turn settles
    /// all of it.
    ReceivedKept,
    /// A superseded message stays in the inbox: a newer one with its key takes its place.
    SupersededServed,
    /// A consumer's lease does not run out: it lasts as long as was asked for.
    LeaseNeverEnds,
    /// The leases of a broken stream live on: they end with its grace.
    GraceNeverEnds,
    /// A stream of messages goes on after an unknown outcome: nothing behind it is accepted.
    SentBehindUnknown,
    /// A stream leases all that is due: it holds no more than its window has room for.
    WindowIgnored,
    /// Leases are sent before their commit: a waiter is answered after it.
    LeasedBeforeCommit,
    /// A dead letter sends no notice: the parent gets one.
    DeadLetterUntold,
    /// A settlement that is repeated is carried out again: it has the result of the first.
    SettledTwice,
    /// A delivery in backoff holds up the inbox: it does not block those behind it.
    BackoffBlocks,
    /// A stopped agent runs turns: none begins until it is started.
    StoppedRuns,
    /// A purge leaves unsettled mail behind: all of it becomes DROPPED.
    PurgeKeepsMail,
    /// A harness is fenced by an attach of an aborted batch: only what is on disk fences.
    AttachInAbortedBatch,
    /// The late end of a call requeues leases that a repeat has taken over: only the end of the
    /// newest call does.
    LateReset,
    /// A caller that has run a batch leaves what was queued in the meantime: the writer's thread is
    /// called. Not one of [`ALL`](Self::ALL), because a simulation runs no batch beside a caller.
    LeftQueued,
}

impl Bug {
    /// All planted bugs.
    pub const ALL: [Self; 38] = [
        Self::ReplyBeforeCommit,
        Self::LostWake,
        Self::SessionUnchecked,
        Self::StaleLease,
        Self::NeverDead,
        Self::RateLimitUsesAttempt,
        Self::VanishedForgiven,
        Self::ReminderFiresTwice,
        Self::DowntimeUncounted,
        Self::FailedFiringSuperseded,
        Self::ScheduleFiresTwice,
        Self::AnswerAfterExpiry,
        Self::TwoOutcomes,
        Self::DigestUnchecked,
        Self::DeniedApplied,
        Self::ApprovedUnapplied,
        Self::EffectAppliedAgain,
        Self::RequestForgotten,
        Self::RequestContentUnchecked,
        Self::NewestFirst,
        Self::LanesMixed,
        Self::TakeOverKeepsTurn,
        Self::RestartEndsTurns,
        Self::NoGrace,
        Self::ReceivedKept,
        Self::SupersededServed,
        Self::LeaseNeverEnds,
        Self::DeadLetterUntold,
        Self::BackoffBlocks,
        Self::StoppedRuns,
        Self::PurgeKeepsMail,
        Self::AttachInAbortedBatch,
        Self::LateReset,
        Self::SettledTwice,
        Self::GraceNeverEnds,
        Self::SentBehindUnknown,
        Self::WindowIgnored,
        Self::LeasedBeforeCommit,
    ];
}

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    static RANDOM: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Makes this thread commit this mistake from now on, or none.
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Returns whether this thread must make this mistake.
pub fn planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Makes this thread's random bytes depend on the seed; `None` restores true ones.
pub fn seed(seed: Option<u64>) {
    RANDOM.set(seed);
}

/// Fills `bytes` from the thread's seed; returns `false` if it has none.
pub fn fill(bytes: &mut [u8]) -> bool {
    let Some(mut state) = RANDOM.get() else { return false };
    for chunk in bytes.chunks_mut(8) {
        // SplitMix64 (Steele, Lea, Flood 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        chunk.copy_from_slice(&(word ^ (word >> 31)).to_le_bytes()[..chunk.len()]);
    }
    RANDOM.set(Some(state));
    true
}

/// Returns the fail point at which to kill this process, and the visit.
fn target() -> Option<&'static (String, u64)> {
    static TARGET: OnceLock<Option<(String, u64)>> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let text = std::env::var("HIVE_FAIL_POINT").ok()?;
        let (name, visit) = text.split_once(':').unwrap_or((&text, "1"));
        Some((name.to_owned(), visit.parse().unwrap_or(1)))
    });
    target.as_ref()
}

/// Marks a place at which the process can be killed.
pub fn point(name: &'static str) {
    static VISITS: AtomicU64 = AtomicU64::new(0);
    let Some((wanted, visit)) = target() else { return };
    if name == wanted && VISITS.fetch_add(1, Ordering::Relaxed) + 1 == *visit {
        let killed =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        // The signal ends the process before this call returns to it.
        killed.expect("a process may kill itself");
    }
}
