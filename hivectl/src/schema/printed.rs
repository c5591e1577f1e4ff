//! Which command prints which schema.

use crate::output::View as _;
use crate::view::agent::Agent;
use crate::view::backup::Backup;
use crate::view::check::Check;
use crate::view::delivery::Delivery;
use crate::view::done::Done;
use crate::view::event::Event;
use crate::view::finding::Finding;
use crate::view::hit::Hit;
use crate::view::hop::Hop;
use crate::view::loose_end::LooseEnd;
use crate::view::message::Message;
use crate::view::question::Question;
use crate::view::receipt::Receipt;
use crate::view::reminder::Reminder;
use crate::view::status::Status;
use crate::view::thread::Thread;
use crate::view::topology::Node;
use crate::view::turn::Turn;
use crate::view::turn_event::TurnEvent;
use crate::view::turn_stats::TurnStats;

/// How many objects a command prints, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// One object.
    Object,
    /// An array of objects; `[]` where there is none.
    Array,
    /// One object on each line, as they come.
    Lines,
}

/// What a command prints with `--json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Printed {
    /// The command, as `inbox read`.
    pub command: &'static str,
    /// The option with which it prints this in place of what it prints without.
    pub with: Option<&'static str>,
    /// How many objects.
    pub shape: Shape,
    /// The schema of each object.
    pub schema: &'static str,
}

/// Commands that print no JSON, and why.
pub const WITHOUT_JSON: [(&str, &str); 4] = [
    ("completions", "prints a script for a shell"),
    ("login", "is a dialogue on a terminal"),
    ("top", "draws on a terminal"),
    ("up", "prints lines for people until it ends"),
];

const fn object(command: &'static str, schema: &'static str) -> Printed {
    Printed { command, with: None, shape: Shape::Object, schema }
}

const fn array(command: &'static str, schema: &'static str) -> Printed {
    Printed { command, with: None, shape: Shape::Array, schema }
}

const fn lines(command: &'static str, with: &'static str, schema: &'static str) -> Printed {
    Printed { command, with: Some(with), shape: Shape::Lines, schema }
}

/// What each command prints with `--json`, by command.
pub const PRINTED: [Printed; 59] = [
    object("agent create", Agent::SCHEMA),
    object("agent remove", Done::SCHEMA),
    object("agent restart", Done::SCHEMA),
    object("agent set-parent", Agent::SCHEMA),
    object("agent set-policy", Agent::SCHEMA),
    object("agent show", Agent::SCHEMA),
    object("agent start", Done::SCHEMA),
    object("agent stop", Done::SCHEMA),
    array("agents", Agent::SCHEMA),
    object("answer", Question::SCHEMA),
    object("ask", Question::SCHEMA),
    object("backup", Backup::SCHEMA),
    array("config check", Finding::SCHEMA),
    array("dead-letters", Delivery::SCHEMA),
    array("dead-letters drop", Done::SCHEMA),
    array("dead-letters list", Delivery::SCHEMA),
    array("dead-letters redrive", Done::SCHEMA),
    object("dead-letters show", Delivery::SCHEMA),
    array("doctor", Check::SCHEMA),
    object("drain", Done::SCHEMA),
    array("events", Event::SCHEMA),
    lines("events", "--follow", Event::SCHEMA),
    array("inbox", Delivery::SCHEMA),
    lines("inbox", "--follow", Message::SCHEMA),
    Printed {
        command: "inbox",
        with: Some("--threads"),
        shape: Shape::Array,
        schema: Thread::SCHEMA,
    },
    array("inbox ack", Done::SCHEMA),
    array("inbox list", Delivery::SCHEMA),
    lines("inbox list", "--follow", Message::SCHEMA),
    Printed {
        command: "inbox list",
        with: Some("--threads"),
        shape: Shape::Array,
        schema: Thread::SCHEMA,
    },
    object("inbox read", Delivery::SCHEMA),
    Printed {
        command: "inbox read",
        with: Some("--message"),
        shape: Shape::Object,
        schema: Message::SCHEMA,
    },
    Printed {
        command: "inbox read",
        with: Some("--thread"),
        shape: Shape::Array,
        schema: Message::SCHEMA,
    },
    array("loose-ends", LooseEnd::SCHEMA),
    array("questions", Question::SCHEMA),
    lines("questions", "--follow", Question::SCHEMA),
    array("questions cancel", Question::SCHEMA),
    array("questions list", Question::SCHEMA),
    lines("questions list", "--follow", Question::SCHEMA),
    object("questions show", Question::SCHEMA),
    array("reminders", Reminder::SCHEMA),
    array("reminders cancel", Reminder::SCHEMA),
    array("reminders list", Reminder::SCHEMA),
    array("search", Hit::SCHEMA),
    object("send", Receipt::SCHEMA),
    object("stats", TurnStats::SCHEMA),
    object("status", Status::SCHEMA),
    array("topology", Node::SCHEMA),
    array("trace", Hop::SCHEMA),
    object("turn cancel", Done::SCHEMA),
    object("turn compact", Done::SCHEMA),
    array("turn drop", Done::SCHEMA),
    array("turn list", Turn::SCHEMA),
    object("turn model", Done::SCHEMA),
    object("turn new-session", Done::SCHEMA),
    array("turn release", Done::SCHEMA),
    object("turn restart", Done::SCHEMA),
    object("turn show", Turn::SCHEMA),
    lines("turn show", "--follow", TurnEvent::SCHEMA),
    lines("turn show", "--output", TurnEvent::SCHEMA),
];
