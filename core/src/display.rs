//! Names of enum values in sentences for people, the same in the log, in errors and in
//! notices.

use std::fmt;

use crate::agent::HarnessState;
use crate::command::Order;
use crate::delivery::{RedeliveryCause, State};
use crate::effect::RunState;
use crate::message::SystemKind;
use crate::turn::{Kind, Outcome};
use crate::{loose_end, question, reminder, schedule};

macro_rules! display {
    ($($kind:ty { $($variant:ident = $text:literal),+ $(,)? })+) => {$(
        impl $kind {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $text),+ })
            }
        }
    )+};
}

display! {
    HarnessState {
        Offline = "offline", Starting = "starting", Idle = "idle", Thinking = "thinking", Compacting = "compacting",
        RateLimited = "rate limited", NeedsLogin = "needs login", Unavailable = "unavailable", Stopped = "stopped",
    }
    State {
        Ready = "ready", Leased = "leased", Held = "held", Dead = "dead", Acked = "acked", Dropped = "dropped",
        Superseded = "superseded",
    }
    RedeliveryCause {
        TurnFailed = "turn failed", HarnessVanished = "harness vanished", RateLimited = "rate limited", AuthFailed = "auth failed",
        Unavailable = "unavailable", Drained = "drained", Released = "released", Redriven = "redriven", NotReceived = "not received",
        Nacked = "nacked", LeaseExpired = "lease expired", Restored = "restored",
    }
    RunState { Queued = "queued", Running = "running", Done = "done", Failed = "failed" }
    question::State { Open = "open", Answered = "answered", Expired = "expired", Cancelled = "cancelled" }
    reminder::State { Pending = "pending", Fired = "fired", Cancelled = "cancelled" }
    schedule::State { Active = "active", Paused = "paused", Ended = "ended" }
    loose_end::Kind {
        QuestionAsked = "question asked", QuestionOwed = "question owed", Reminder = "reminder", DeadLetter = "dead letter",
        External = "external",
        Approval = "approval",
    }
    SystemKind {
        TurnFailed = "turn failed", DeadLetter = "dead letter", Restarted = "restarted", Unavailable = "unavailable",
        QuestionAsked = "question asked", QuestionAnswered = "question answered", QuestionExpired = "question expired",
        QuestionCancelled = "question cancelled", Reminder = "reminder", Problem = "problem",
        Started = "started", Stopped = "stopped", Crashed = "crashed", LoggedIn = "logged in", Recovered = "recovered",
        ActionEnded = "action ended", ScheduleEnded = "schedule ended", Heartbeat = "heartbeat",
    }
    Kind { Mail = "mail", Continue = "continue", Checkpoint = "checkpoint", Compact = "compact" }
    Outcome {
        Ok = "ok", Failed = "failed", RateLimited = "rate limited", AuthFailed = "auth failed", Unavailable = "unavailable",
        Cancelled = "cancelled", Drained = "drained", Vanished = "vanished", Fenced = "fenced",
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CancelTurn(turn) => write!(f, "cancel turn {turn}"),
            Self::StartNewSession => f.write_str("start a new session"),
            Self::SetModel(model) => write!(f, "run on model {model}"),
            Self::RestartHarness => f.write_str("restart"),
            Self::CompactSession => f.write_str("compact the conversation"),
        }
    }
}
