//! What the machine wants done.

use hive_core::agent::HarnessState;
use hive_core::time::WallTime;
use hive_core::turn::{Kind, Outcome, ToolUse, Usage};

use crate::prompt::system::Identity;
use crate::turn::input::LoginWanted;
use crate::turn::job::{Occasion, Step};

/// One thing to do. None of them is waited for; what comes of it is an input.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Attach with a new session.
    Attach,
    /// Wait for the next turn.
    Begin,
    /// Open a turn without a delivery.
    Open(Kind),
    /// Look whether the CLI can be used.
    Probe,
    /// Start claude.
    Start(Box<Launch>),
    /// Send claude and its process group a signal.
    Signal(Signal),
    /// Tell the broker what the harness is doing.
    Report(HarnessState, Option<WallTime>),
    /// End the turn.
    End(Box<Ending>),
    /// Close a command; with words where it was not carried out.
    Ack(u64, String),
    /// Remember what claude's login looks like now, and say when it changes.
    WatchLogin,
    /// Run claude's login dialogue for the operator who waits for it.
    Login(LoginWanted),
    /// Tell the operator who waits for this login dialogue why there is none now.
    RefuseLogin(u64, String),
    /// Tell the agent's parent that something around the harness does not work: a subject and
    /// words.
    Problem(String, String),
    /// Add a remark to the turn's output.
    Note(String),
    /// Stop waiting for a turn and make sure that none is open.
    Leave,
    /// End the program.
    Exit(Leaving),
}

/// Signals, from the kindest to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// SIGINT: end the turn.
    Interrupt,
    /// SIGTERM: end the process.
    Terminate,
    /// SIGKILL.
    Kill,
}

/// Why the program ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It was told to.
    Drained,
    /// It was told to begin anew.
    Restart,
    /// It was told to, and the broker did not answer any more.
    Unanswered,
}

/// A claude to start.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The turn.
    pub turn_id: u64,
    /// The model.
    pub model: String,
    /// Whether it goes on with the conversation.
    pub continues: bool,
    /// Who the system prompt is for.
    pub identity: Identity,
    /// The agent's tool groups.
    pub tool_groups: Vec<String>,
    /// What the turn is about.
    pub occasion: Occasion,
    /// Which part of it this run is.
    pub step: Step,
    /// Whether it is the retry after a failed login.
    pub retry: bool,
    /// Whether the conversation was compacted in this turn because it had become too long.
    pub made_room: bool,
    /// Whether the conversation is begun anew because going on with the old one is a waste.
    pub resets: bool,
}

/// How a turn ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ending {
    /// The turn.
    pub turn_id: u64,
    /// How.
    pub outcome: Option<Outcome>,
    /// What went wrong.
    pub error: String,
    /// The end of the output, where it did not end well.
    pub output_tail: String,
    /// Tool calls whose result reached the model.
    pub returned_tool_use_ids: Vec<String>,
    /// What it used.
    pub usage: Usage,
    /// The model.
    pub model: String,
    /// Size of the context.
    pub context_tokens: u64,
    /// Size of the model's window.
    pub context_window_tokens: u64,
    /// When the rate limit ends.
    pub retry_time: Option<WallTime>,
    /// Whether the conversation was compacted.
    pub compacted: bool,
    /// How often each tool was called.
    pub tool_uses: Vec<ToolUse>,
}
