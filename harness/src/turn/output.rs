//! The outputs of the machine.

use hive_core::agent::HarnessState;
use hive_core::time::WallTime;
use hive_core::trace::TraceContext;
use hive_core::turn::{Kind, Outcome, ToolUse, Usage};

use crate::prompt::system::Identity;
use crate::turn::input::LoginWanted;
use crate::turn::job::{Step, Trigger};

/// A task for the driver. The machine never waits for it; the result is an input.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Attach with a new session.
    Attach,
    /// Wait for the next turn.
    Begin,
    /// Open a turn without a delivery.
    Open(Kind),
    /// Check whether the CLI can be used.
    Probe,
    /// Start claude.
    Start(Box<Launch>),
    /// Send claude and its process group a signal.
    Signal(Signal),
    /// Report the state of the harness to the broker.
    Report(HarnessState, Option<WallTime>),
    /// End the turn.
    End(Box<Ending>),
    /// Close a command; the text is empty unless it failed.
    Ack(u64, String),
    /// Remember the current files of claude's login, and report when they change.
    WatchLogin,
    /// Run claude's login dialogue for the waiting operator.
    Login(LoginWanted),
    /// Notify the waiting operator why there is no login dialogue now.
    RefuseLogin(u64, String),
    /// Report a problem around the harness to the agent's parent: a subject and a text.
    Problem(String, String),
    /// Add a remark to the turn's output.
    Note(String),
    /// Stop waiting for a turn and make sure that none is open.
    Leave,
    /// Ask the broker whether the harness may end, because its agent runs on demand and rests.
    AskToLeave,
    /// End the program.
    Exit(Leaving),
}

/// Signals, from the gentlest to the strongest.
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
    /// The harness was ordered to end.
    Drained,
    /// The harness was ordered to restart.
    Restart,
    /// The harness was ordered to end, and the broker no longer answered.
    Unanswered,
    /// The agent runs on demand and has no work, and the broker has ended the session.
    NoWork,
}

/// A claude to start.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub turn_id: u64,
    pub model: String,
    /// Whether it continues the conversation.
    pub continues: bool,
    /// Values of the system prompt.
    pub identity: Identity,
    pub tool_groups: Vec<String>,
    pub trigger: Trigger,
    /// The span of the turn.
    pub trace: Option<TraceContext>,
    /// The step of the turn that this run executes.
    pub step: Step,
    /// Whether it is the retry after a failed login.
    pub retry: bool,
    /// Whether the conversation was compacted in this turn because it had become too long.
    pub made_room: bool,
    /// Whether a new conversation starts because continuing the old one is a waste.
    pub resets: bool,
}

/// The end of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ending {
    pub turn_id: u64,
    pub outcome: Option<Outcome>,
    /// Error of the turn; empty if there is none.
    pub error: String,
    /// The end of the output, if the turn failed.
    pub output_tail: String,
    /// Tool calls whose result reached the model.
    pub returned_tool_use_ids: Vec<String>,
    /// Resources that it used.
    pub usage: Usage,
    pub model: String,
    pub context_tokens: u64,
    pub context_window_tokens: u64,
    /// When the rate limit ends.
    pub retry_time: Option<WallTime>,
    pub compacted: bool,
    /// The number of calls of each tool.
    pub tool_uses: Vec<ToolUse>,
}
