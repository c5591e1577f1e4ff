//! Failures and their reports: the sentence, the reason, and the command that helps next.
//!
//! Invariant: each failure has an exit code, and a reader of stdout never sees any of this.

use std::io;
use std::path::PathBuf;

use hive_core::reason::Reason;
use hive_proto::connect::ConnectError;
use tonic::{Code, Status};

use crate::exit::{self, Exit};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("this process cannot start its runtime")]
    Runtime(#[source] io::Error),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("{}", sentence(.0))]
    Refused(Box<Status>),
    #[error("the broker did not answer within {seconds} s")]
    TimedOut { seconds: f64, mutation: bool },
    #[error("the output cannot be written")]
    Output(#[source] io::Error),
    #[error("stdin cannot be read")]
    Input(#[source] io::Error),
    #[error("the body is not valid UTF-8 from byte {valid_up_to} on")]
    BodyNotText { valid_up_to: usize },
    #[error("the body is empty")]
    BodyEmpty,
    #[error("the operator does not send mail to the operator")]
    ToOneself,
    #[error("`{text}` is no recipient: {why}")]
    BadRecipient { text: String, why: String },
    #[error("`{text}` cannot be asked: {why}")]
    BadTarget { text: String, why: String },
    #[error("message {id} is not in the inbox of {agent}")]
    NotInInbox { id: u64, agent: String },
    #[error("message {id} is no dead letter{}", .agent.as_ref().map(|agent| format!(" of {agent}")).unwrap_or_default())]
    NoDeadLetter { id: u64, agent: Option<String> },
    #[error("message {id} is a dead letter of several agents: {}", .agents.join(", "))]
    SeveralDeadLetters { id: u64, agents: Vec<String> },
    #[error("`top` draws on a terminal, and there is none, or one that cannot show a screen")]
    NoTerminal,
    #[error("no answer was given to question {id}, and stdin is no terminal to ask you on")]
    NoAnswer { id: u64 },
    #[error("question {id} asks for a change, and approving it needs the digest of what was shown")]
    NoDiff { id: u64 },
    #[error("nothing was answered; question {id} stays open")]
    NotAnswered { id: u64 },
    #[error("question {id} has its outcome: {outcome}")]
    QuestionClosed { id: u64, outcome: String },
    #[error("question {id} expired without an answer")]
    QuestionExpired { id: u64 },
    #[error("question {id} was cancelled{}", .by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default())]
    QuestionCancelled { id: u64, by: Option<String> },
    #[error("question {id} has no answer after {seconds} s; it stays open")]
    AnswerTimedOut { id: u64, seconds: f64 },
    #[error("interrupted; question {id} stays open")]
    AnswerInterrupted { id: u64 },
    #[error("the harness of {agent} refused command {id}: {why}")]
    OrderRefused { id: u64, agent: String, why: String },
    #[error("command {id} of {agent} is not done after {seconds} s; it stays queued")]
    OrderTimedOut { id: u64, agent: String, seconds: f64 },
    #[error("interrupted; command {id} of {agent} stays queued")]
    OrderInterrupted { id: u64, agent: String },
    #[error("the broker no longer has the events that show the outcome of command {id} of {agent}")]
    OrderMissed { id: u64, agent: String },
    #[error("turn {turn} of {agent} has not ended after {seconds} s; {agent} stays stopped")]
    StopTimedOut { agent: String, turn: u64, seconds: f64 },
    #[error("interrupted; {agent} stays stopped, and turn {turn} is being handed back")]
    StopInterrupted { agent: String, turn: u64 },
    #[error("this asks first, and stdin is no terminal")]
    NotConfirmed { instead: &'static str },
    #[error("{} no turn yet", .agent.as_deref().map_or_else(|| "there is".to_owned(), |agent| format!("{agent} has run")))]
    NoTurn { agent: Option<String> },
    #[error("`login` is a dialogue, and needs a terminal on stdin and on stdout")]
    LoginNeedsTerminal,
    #[error("the login dialogue broke off: {}", sentence(.0))]
    LoginLost(Box<Status>),
    #[error("there is no schedule {id}")]
    NoSchedule { id: u64 },
    #[error("claude is not logged in for {agent}: {why}")]
    NotLoggedIn { agent: String, why: String },
    #[error("the broker's answer lacks `{field}`")]
    Incomplete { field: &'static str },
    #[error("{} cannot be read", .path.display())]
    FileUnreadable { path: PathBuf, source: io::Error },
    /// An error of one command, with its own exit code and hint.
    #[error("{error}")]
    Explained {
        #[source]
        error: Box<dyn std::error::Error + Send + Sync>,
        exit: Exit,
        hint: Option<String>,
    },
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(status))
    }
}

impl Failure {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Explained { exit, .. } => *exit,
            Self::Refused(status) => exit::from_status(status),
            Self::FileUnreadable { source, .. } => exit::of_io(source),
            Self::Connect(ConnectError::NotAllowed { .. }) => Exit::Denied,
            // A reader of the output may stop reading; that is no error.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Ok,
            Self::Connect(ConnectError::PathTooLong(_) | ConnectError::Uri(_))
            | Self::BodyNotText { .. }
            | Self::BodyEmpty
            | Self::ToOneself
            | Self::BadRecipient { .. }
            | Self::BadTarget { .. }
            | Self::SeveralDeadLetters { .. }
            | Self::NoAnswer { .. }
            | Self::NoDiff { .. }
            | Self::NoTerminal
            | Self::NotConfirmed { .. }
            | Self::LoginNeedsTerminal => Exit::Usage,
            Self::Connect(_) | Self::LoginLost(_) => Exit::Unreachable,
            Self::QuestionClosed { .. } | Self::QuestionCancelled { .. } => Exit::Conflict,
            Self::TimedOut { .. }
            | Self::QuestionExpired { .. }
            | Self::AnswerTimedOut { .. }
            | Self::OrderTimedOut { .. }
            | Self::StopTimedOut { .. } => Exit::TimedOut,
            Self::NotInInbox { .. }
            | Self::NoDeadLetter { .. }
            | Self::NoSchedule { .. }
            | Self::NoTurn { .. } => Exit::NotFound,
            Self::NotAnswered { .. }
            | Self::AnswerInterrupted { .. }
            | Self::OrderRefused { .. }
            | Self::OrderInterrupted { .. }
            | Self::StopInterrupted { .. }
            | Self::OrderMissed { .. }
            | Self::NotLoggedIn { .. }
            | Self::Runtime(_)
            | Self::Output(_)
            | Self::Input(_)
            | Self::Incomplete { .. } => Exit::Failure,
        }
    }

    /// Returns the broker's reason, if it gave one.
    pub(crate) fn reason(&self) -> Option<Reason> {
        let Self::Refused(status) = self else { return None };
        hive_proto::status::reason(status)
    }

    pub(crate) fn in_one_line(&self) -> String {
        let mut sentence = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(next) = cause {
            // Some causes are already part of the sentence.
            let words = next.to_string();
            if !sentence.contains(&words) {
                sentence = format!("{sentence}: {words}");
            }
            cause = next.source();
        }
        sentence
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Refused(status) => match hive_proto::status::reason(status) {
                Some(reason) => Some(hint_of_reason(reason, status)),
                None => Some(hint_without_reason(status).to_owned()),
            },
            Self::Connect(ConnectError::NotAllowed { .. }) => {
                Some("join the group that owns the socket (`socket_group` in hive.toml), or run it as that user".to_owned())
            }
            Self::Connect(ConnectError::Unreachable { .. }) => {
                Some("start a hive with `hivectl up`, or name its socket with --socket or HIVE_SOCKET".to_owned())
            }
            Self::Connect(ConnectError::PathTooLong(_) | ConnectError::Uri(_) | ConnectError::NotABroker { .. }) => {
                Some("name the broker's socket with --socket or HIVE_SOCKET".to_owned())
            }
            Self::TimedOut { mutation: true, .. } => {
                Some("it may still carry this out: look before you repeat it; --timeout waits longer".to_owned())
            }
            Self::TimedOut { mutation: false, .. } => Some("`hivectl status` shows how it is; --timeout waits longer".to_owned()),
            Self::ToOneself | Self::BadRecipient { .. } => {
                Some("`hivectl agents` lists who there is; `*` is everyone".to_owned())
            }
            Self::BadTarget { .. } => Some("`hivectl agents` lists who there is".to_owned()),
            Self::BodyEmpty => Some("give the text as an argument, or `-` to read it from stdin".to_owned()),
            Self::NotInInbox { .. } => Some("`hivectl inbox --all` lists what was there".to_owned()),
            Self::NoDeadLetter { .. } => Some("`hivectl dead-letters` lists them".to_owned()),
            Self::NoSchedule { .. } => Some(ALL_SCHEDULES.to_owned()),
            Self::SeveralDeadLetters { .. } => Some("say whose with --agent NAME".to_owned()),
            Self::NoTerminal => Some("`hivectl status --json` lists for programs what needs attention".to_owned()),
            Self::NoAnswer { id } => Some(format!(
                "give a text, `-` to read it from stdin, or --choice; `hivectl questions show {id}` shows what is offered"
            )),
            Self::NoDiff { id } => Some(format!(
                "`hivectl answer {id}` shows the changes and asks; a script reads `approval.diff_digest` from `hivectl questions show {id} --json`, and gives it with --diff"
            )),
            Self::NotAnswered { id } => Some(format!("`hivectl questions cancel {id}` withdraws it")),
            Self::QuestionClosed { id, .. } | Self::QuestionExpired { id } | Self::QuestionCancelled { id, .. } => {
                Some(format!("`hivectl questions show {id}` shows its outcome"))
            }
            Self::AnswerTimedOut { id, .. } | Self::AnswerInterrupted { id } => Some(format!(
                "`hivectl questions show {id}` shows an answer that comes later; `hivectl questions cancel {id}` withdraws it"
            )),
            Self::OrderRefused { agent, .. } => {
                Some(format!("`hivectl turn show {agent} --output` shows what its last turn said"))
            }
            Self::OrderTimedOut { agent, .. } | Self::OrderInterrupted { agent, .. } | Self::OrderMissed { agent, .. } => {
                Some(format!(
                    "`hivectl events --agent {agent}` shows what becomes of it; `hivectl agent show {agent}` what its harness does"
                ))
            }
            Self::StopTimedOut { agent, .. } | Self::StopInterrupted { agent, .. } => Some(format!(
                "`hivectl turn show {agent} --follow` shows the turn; `hivectl agent start {agent}` starts the agent again"
            )),
            Self::NotConfirmed { instead } => Some((*instead).to_owned()),
            Self::NoTurn { agent: Some(agent) } => Some(format!("`hivectl turn show {agent} --follow` waits for its first one")),
            Self::NoTurn { agent: None } => Some("`hivectl send AGENT TEXT` wakes one".to_owned()),
            Self::LoginNeedsTerminal => Some("run it by hand, in a terminal; a key in the environment needs no login".to_owned()),
            Self::LoginLost(_) => Some("`hivectl status` shows whether the broker is back; then begin anew".to_owned()),
            Self::NotLoggedIn { agent, .. } => Some(format!("`hivectl login {agent}` begins anew")),
            Self::Explained { hint, .. } => hint.clone(),
            Self::Runtime(_) => Some("is there memory, and room for a process (`ulimit -u`)? then try again".to_owned()),
            Self::Output(_) => {
                Some("what was asked for may be done; look before you repeat it, with room where stdout goes".to_owned())
            }
            Self::Input(_) => Some("give the text as an argument".to_owned()),
            Self::BodyNotText { .. } => Some("convert it to UTF-8 (`iconv` does), or send the path of the file".to_owned()),
            Self::Incomplete { .. } => Some("`hivectl doctor` compares the versions of `hived` and `hivectl`".to_owned()),
            Self::FileUnreadable { path, .. } => {
                Some(format!("`ls -l {}` shows whether it is there and whose it is", path.display()))
            }
        }
    }
}

fn sentence(status: &Status) -> String {
    match (status.message(), status.code()) {
        // A broker of Hive gives a reason; this is another program.
        (_, Code::Unimplemented) if hive_proto::status::reason(status).is_none() => {
            "what answers on this socket does not know this call".to_owned()
        }
        ("", code) => format!("the broker answered {code:?}"),
        (message, _) => message.to_owned(),
    }
}

const OTHER_SOCKET: &str =
    "is it an agent's socket, or an older broker? `hivectl --socket PATH status` must work";

const ALL_SCHEDULES: &str = "`hivectl schedules --all` lists them";

fn hint_without_reason(status: &Status) -> &'static str {
    if status.code() == Code::Unimplemented {
        return OTHER_SOCKET;
    }
    if hive_proto::status::is_of_connection(status) {
        "`hivectl status` shows whether the broker is back"
    } else {
        "`hivectl doctor` looks for what is wrong"
    }
}

fn hint_of_reason(reason: Reason, status: &Status) -> String {
    let hint = match reason {
        Reason::AgentNotFound => "`hivectl agents` lists them",
        Reason::AgentRetired => {
            "`hivectl agents --all` lists retired ones; `hivectl agent create NAME --adopt` takes one back"
        }
        Reason::MessageNotFound | Reason::DeliveryNotFound => {
            "`hivectl inbox [AGENT] --all` lists what is there"
        }
        Reason::DiffChanged => "`hivectl answer ID` shows what it would change now",
        Reason::QuestionNotFound => {
            "`hivectl questions --all` lists what is open; --state shows others"
        }
        Reason::ReminderNotFound => "`hivectl reminders --all` lists them",
        Reason::ScheduleNotFound => ALL_SCHEDULES,
        Reason::TurnNotFound => "`hivectl turn list` lists them",
        Reason::CommandNotFound | Reason::LoginNotFound => {
            "`hivectl events` shows what became of it"
        }
        Reason::RequestIdReused => "run the command again; it makes a new request id",
        Reason::AgentExists => "`hivectl agent show NAME` shows it",
        Reason::SocketLimit => {
            "`LimitNOFILE` in the unit of hived, or `ulimit -Hn` where it is started, is the hard limit"
        }
        Reason::EtagMismatch => {
            "`hivectl agent show NAME --json` shows it as it is now, with its etags"
        }
        Reason::RecipientNotAllowed => "`hivectl agent show NAME` shows whom it may send to",
        Reason::NotYours
        | Reason::NotTheTarget
        | Reason::NotYourChild
        | Reason::NotAnAgent
        | Reason::CapabilityMissing => "is this the operator's socket? --socket names another",
        Reason::PeerNotTrusted => {
            "run it on the host, outside each sandbox, as a user that the configuration trusts"
        }
        Reason::LeaseLost
        | Reason::StreamReplaced
        | Reason::StreamSilent
        | Reason::SessionLost
        | Reason::TurnEnded
        | Reason::TurnOpen => "`hivectl turn list AGENT` shows its turns",
        Reason::LauncherAttached => {
            "`hivectl status` shows whether a launcher is attached; end the other one first: a `hivectl up`, or hive-launcher.service"
        }
        Reason::LauncherOffline => "`hivectl status` shows whether a launcher is attached",
        Reason::AlreadyAttached | Reason::HarnessAttached | Reason::AgentParked => {
            "`hivectl agent show NAME` shows what its harness does"
        }
        Reason::AgentStopped => "`hivectl agent start NAME` lets it run turns again",
        Reason::AgentPurging => {
            "try again in a moment; the output of `hivectl up`, or `journalctl -u hive-launcher`, names what cannot be deleted"
        }
        Reason::HarnessOffline => {
            "start its harness (`hivectl up` does, or its service), and try again; `hivectl agent show NAME` shows whether it is attached"
        }
        Reason::LoginOpen => {
            "one dialogue at a time: let whoever has it open end it (Ctrl-] leaves it), then try again"
        }
        Reason::WrongState => {
            "`hivectl inbox AGENT --all`, `hivectl reminders --all` or `hivectl schedules --all` shows how it stands"
        }
        Reason::QuestionClosed => "`hivectl questions show ID` shows its outcome",
        Reason::QuestionLimit => {
            "`hivectl questions --asker NAME` lists what is open; `hivectl questions cancel ID` withdraws one"
        }
        Reason::ReminderLimit => {
            "`hivectl reminders NAME` lists them; `hivectl reminders cancel ID` withdraws one"
        }
        Reason::ScheduleLimit => {
            "`hivectl schedules --agent NAME` lists them; `hivectl schedules cancel ID` ends one"
        }
        Reason::TopologyCycle => "`hivectl topology` shows the tree",
        Reason::InboxFull => "`hivectl topology` shows who does not keep up",
        Reason::RateLimited | Reason::CallLimit | Reason::Starting | Reason::Draining => {
            return again(status).unwrap_or_else(|| "try again in a while".to_owned());
        }
        Reason::StorageFull | Reason::StorageUnavailable => {
            let hint = "`hivectl status` shows what is wrong with the database";
            return again(status)
                .map_or_else(|| hint.to_owned(), |again| format!("{again}; {hint}"));
        }
        Reason::Internal | Reason::RequestCompressed => "the broker's log has the details",
        Reason::MethodNotServed => OTHER_SOCKET,
        Reason::FieldInvalid | Reason::StatusTooLong => {
            "correct it; the command's --help shows what it takes"
        }
        Reason::BodyTooLarge => "write it to a file that the recipient can read, and send the path",
    };
    hint.to_owned()
}

/// Returns the hint to retry, if the broker sent a delay.
fn again(status: &Status) -> Option<String> {
    hive_proto::status::retry_after(status)
        .map(|delay| format!("try again in {:.1} s", delay.as_secs_f64()))
}
