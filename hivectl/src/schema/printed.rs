//! Which command prints which schema.

/// The number of objects that a command prints, and their form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// One object.
    Object,
    /// An array of objects; `[]` if there is none.
    Array,
    /// One object on each line, in order of arrival.
    Lines,
}

/// The output of a command with `--json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Printed {
    /// The command, as `inbox read`.
    pub command: &'static str,
    /// The option that selects this output instead of the default one.
    pub with: Option<&'static str>,
    /// The number and form of the objects.
    pub shape: Shape,
    /// The schema of each object.
    pub schema: &'static str,
}

/// Commands that print no JSON, and why.
pub const WITHOUT_JSON: [(&str, &str); 5] = [
    ("completions", "prints a script for a shell"),
    ("login", "is a dialogue on a terminal"),
    ("top", "draws on a terminal"),
    ("supervise", "prints lines for people until it ends"),
    ("up", "prints lines for people until it ends"),
];

const fn object(command: &'static str, schema: &'static str) -> Printed {
    Printed { command, with: None, shape: Shape::Object, schema }
}

const fn array(command: &'static str, schema: &'static str) -> Printed {
    Printed { command, with: None, shape: Shape::Array, schema }
}

impl Printed {
    const fn with(self, option: &'static str) -> Self {
        Self { with: Some(option), ..self }
    }
}

const fn lines(command: &'static str, with: &'static str, schema: &'static str) -> Printed {
    Printed { command, with: Some(with), shape: Shape::Lines, schema }
}

/// The output of each command with `--json`, by command.
pub const PRINTED: [Printed; 69] = [
    object("agent create", "hive.agent.v1"),
    object("agent restart", "hive.done.v1"),
    object("agent retire", "hive.done.v1"),
    object("agent set-parent", "hive.agent.v1"),
    object("agent set-policy", "hive.agent.v1"),
    object("agent show", "hive.agent.v1"),
    object("agent start", "hive.done.v1"),
    object("agent stop", "hive.done.v1"),
    array("agents", "hive.agent.v1"),
    object("answer", "hive.question.v1"),
    object("ask", "hive.question.v1"),
    object("backup", "hive.backup.v1"),
    array("config check", "hive.finding.v1"),
    array("config keys", "hive.config_key.v1"),
    array("dead-letters", "hive.delivery.v1"),
    array("dead-letters drop", "hive.done.v1"),
    array("dead-letters list", "hive.delivery.v1"),
    array("dead-letters redrive", "hive.done.v1"),
    object("dead-letters show", "hive.delivery.v1"),
    object("debug bundle", "hive.bundle.v1"),
    array("doctor", "hive.check.v1"),
    object("drain", "hive.done.v1"),
    array("events", "hive.event.v1"),
    lines("events", "--follow", "hive.event.v1"),
    array("inbox", "hive.delivery.v1"),
    lines("inbox", "--follow", "hive.message.v1"),
    array("inbox", "hive.thread.v1").with("--threads"),
    array("inbox ack", "hive.done.v1"),
    array("inbox list", "hive.delivery.v1"),
    lines("inbox list", "--follow", "hive.message.v1"),
    array("inbox list", "hive.thread.v1").with("--threads"),
    object("inbox read", "hive.delivery.v1"),
    object("inbox read", "hive.message.v1").with("--message"),
    array("inbox read", "hive.message.v1").with("--thread"),
    array("loose-ends", "hive.loose_end.v1"),
    array("questions", "hive.question.v1"),
    lines("questions", "--follow", "hive.question.v1"),
    array("questions cancel", "hive.question.v1"),
    array("questions list", "hive.question.v1"),
    lines("questions list", "--follow", "hive.question.v1"),
    object("questions show", "hive.question.v1"),
    array("reminders", "hive.reminder.v1"),
    array("reminders cancel", "hive.reminder.v1"),
    array("reminders list", "hive.reminder.v1"),
    object("restore", "hive.restored.v1"),
    array("schedules", "hive.schedule.v1"),
    array("schedules cancel", "hive.schedule.v1"),
    object("schedules fire", "hive.firing.v1"),
    array("schedules list", "hive.schedule.v1"),
    array("schedules pause", "hive.schedule.v1"),
    array("schedules resume", "hive.schedule.v1"),
    object("schedules show", "hive.schedule.v1"),
    array("search", "hive.hit.v1"),
    object("send", "hive.receipt.v1"),
    object("stats", "hive.turn_stats.v1"),
    object("status", "hive.status.v1"),
    array("topology", "hive.topology.v1"),
    array("trace", "hive.hop.v1"),
    object("turn cancel", "hive.done.v1"),
    object("turn compact", "hive.done.v1"),
    array("turn drop", "hive.done.v1"),
    array("turn list", "hive.turn.v1"),
    object("turn model", "hive.done.v1"),
    object("turn new-session", "hive.done.v1"),
    array("turn release", "hive.done.v1"),
    object("turn restart", "hive.done.v1"),
    object("turn show", "hive.turn.v1"),
    lines("turn show", "--follow", "hive.turn_event.v1"),
    lines("turn show", "--output", "hive.turn_event.v1"),
];
