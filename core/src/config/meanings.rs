//! The effects of the keys that are no settings of a harness.
//!
//! Invariant: each key of the parser has one here or in `SETTINGS`, and each one here has a key.

use super::settings_list::SETTINGS;

/// The key and its effect.
pub(super) const MEANINGS: &[(&str, &str)] = &[
    ("hive.name", "short name of the hive, in prompts and in the data of other agents"),
    ("hive.domain", "domain at the end of the qualified names of its agents"),
    ("hive.swarm", "swarm that the hive belongs to"),
    ("hive.isolation", "required level of isolation of all agents that `hivectl up` starts"),
    ("broker.state_dir", "directory of the database"),
    ("broker.runtime_dir", "directory of the sockets"),
    ("broker.socket_group", "group that may use the operator socket"),
    (
        "broker.agent_unit",
        "unit of systemd of each agent that has neither `uids` nor `users` nor `unit`, with `{name}`",
    ),
    ("broker.retention_days", "how long settled mail is kept"),
    ("broker.metrics.socket", "unix socket that shows the metrics"),
    ("broker.metrics.group", "group that can read that socket"),
    ("broker.metrics.listen", "address and port of loopback that show the metrics"),
    ("broker.traces.otlp", "URL of the collector that gets traces, by OTLP over HTTP"),
    ("broker.traces.headers", "headers of each post to the collector, such as a token"),
    ("broker.backup.every", "time from one backup to the next, as `24h`"),
    ("broker.backup.keep", "number of backups that are kept"),
    ("broker.backup.dir", "directory of the backups"),
    ("broker.limits.body_bytes_max", "longest body, in bytes"),
    ("broker.limits.inbox_depth_max", "maximum unsettled deliveries in one inbox"),
    (
        "broker.limits.sender_stored_bytes_max",
        "maximum bytes of unsettled bodies that one sender may have stored",
    ),
    ("broker.limits.sends_per_minute_max", "messages that one sender may send per minute"),
    ("broker.limits.attempts_max", "attempts before a delivery becomes a dead letter"),
    ("broker.limits.harness_grace_ms", "absence of a harness after which its turn is requeued"),
    ("broker.limits.retry_backoff_base_ms", "backoff of a delivery after its first failed attempt"),
    ("broker.limits.retry_backoff_max_ms", "longest backoff of a delivery"),
    ("broker.limits.park_backoff_base_ms", "park of an agent after its first unavailable turn"),
    ("broker.limits.park_backoff_max_ms", "longest park of an unavailable agent"),
    ("broker.limits.on_demand_idle_ms", "time without work after which a harness on demand leaves"),
    (
        "broker.limits.rate_limit_park_ms",
        "park of a rate-limited agent if the model did not say when the limit ends",
    ),
    ("broker.limits.request_id_hours", "how long request ids are kept"),
    ("broker.limits.turn_events_hours", "how long the output of turns is kept"),
    ("broker.limits.turn_events_bytes_max", "maximum bytes of the kept output of turns"),
    ("broker.limits.questions_open_max", "maximum open questions that one agent may have asked"),
    ("broker.limits.reminders_pending_max", "maximum pending reminders of one agent"),
    ("broker.limits.children_max", "maximum agents below one agent, for creating by a grant"),
    ("broker.limits.schedules_max", "maximum schedules of one agent that have not ended"),
    ("operator.pronouns", "how prompts speak of the operator"),
    ("operator.notify.command", "program that runs when something waits for the operator"),
    ("operator.notify.webhook", "URL that is called when something waits for the operator"),
    (
        "operator.journal_units",
        "units of the host whose journal agents may read, with the capability `read_host_journal`",
    ),
    ("claude.command", "the program of claude: a name on PATH, or a path"),
    ("claude.env", "added to the environment of every claude"),
    ("claude.context_windows", "windows in tokens by a part of the model's name"),
    ("claude.mcp_server_name", "tools are called `mcp__NAME__send` and so on"),
    (
        "actions.NAME.command",
        "program and arguments; `{ARGUMENT}` stands for an argument of the agent",
    ),
    (
        "actions.NAME.preview",
        "program and arguments that show what `command` would do; its output is part of the question",
    ),
    ("actions.NAME.description", "what the action is for, for agents"),
    ("actions.NAME.agents", "agents that may ask for it"),
    (
        "actions.NAME.args",
        "arguments by name, each with the regular expression that it must match as a whole",
    ),
    ("actions.NAME.timeout_secs", "time after which the action is ended"),
    ("agents.NAME.parent", "the parent agent; without one, the operator"),
    ("agents.NAME.role", "purpose of the agent"),
    ("agents.NAME.model", "the model"),
    ("agents.NAME.tool_groups", "groups of its tools"),
    (
        "agents.NAME.allowed_recipients",
        "agents that it may send to besides its parent; an empty list allows all",
    ),
    ("agents.NAME.capabilities", "further rights"),
    ("agents.NAME.grants", "what it may do without asking the operator"),
    ("agents.NAME.limits.sends_per_minute_max", "messages that it may send per minute"),
    (
        "agents.NAME.limits.sender_stored_bytes_max",
        "maximum bytes of unsettled bodies that it may have stored",
    ),
    ("agents.NAME.limits.questions_open_max", "maximum open questions that it may have asked"),
    ("agents.NAME.limits.reminders_pending_max", "maximum pending reminders"),
    ("agents.NAME.limits.children_max", "maximum agents below it, for creating by a grant"),
    ("agents.NAME.limits.schedules_max", "maximum schedules of its own that have not ended"),
    ("agents.NAME.uids", "users that may use its socket, by their numbers"),
    ("agents.NAME.users", "users that may use its socket, by their names"),
    ("agents.NAME.unit", "unit of systemd in which a program has to run to use its socket"),
    ("agents.NAME.state_dir", "its working directory"),
    ("agents.NAME.home_dir", "its home, with claude's sessions and login"),
    ("agents.NAME.env", "added to the environment of its claude, after `[claude]`"),
    (
        "agents.NAME.kick_on_start",
        "when the broker asks it to continue at a new session: `interrupted`, `always` or `never`",
    ),
    ("agents.NAME.on_demand", "whether its harness runs only while there is mail for it"),
    ("agents.NAME.heartbeat.every", "time from one heartbeat to the next, as `30m`, at most `24h`"),
    ("agents.NAME.heartbeat.between", "part of the day with heartbeats, as `08:00-22:00`"),
    (
        "agents.NAME.heartbeat.zone",
        "time zone of that day, as `Europe/Berlin`; UTC if there is none",
    ),
    ("agents.NAME.available_models", "models that it may use, at most 32"),
    ("agents.NAME.extra_mcp_servers.KEY.command", "program of the server"),
    ("agents.NAME.extra_mcp_servers.KEY.args", "arguments of the program"),
    (
        "agents.NAME.extra_mcp_servers.KEY.env",
        "variables of the server besides those that every program needs",
    ),
    (
        "agents.NAME.extra_mcp_servers.KEY.allowed_tools",
        "tools that may be used, with `*` for any part of a name",
    ),
    (
        "agents.NAME.extra_mcp_servers.KEY.timeout_seconds",
        "how long a call may take before it ends with an error",
    ),
    ("agents.NAME.plugins", "plugins of claude that are installed when its harness starts"),
    ("agents.NAME.marketplaces", "marketplaces of the plugins"),
    ("agents.NAME.isolation", "required level of isolation, if `hivectl up` starts it"),
    ("agents.NAME.readable", "files that its sandbox can read, if `hivectl up` starts it"),
    ("agents.NAME.writable", "directories that its sandbox can write, if `hivectl up` starts it"),
    ("agents.NAME.devices", "devices that its sandbox can use, if `hivectl up` starts it"),
    (
        "agents.NAME.user_namespaces",
        "whether programs in its sandbox may create user namespaces, if `hivectl up` starts it",
    ),
];

/// Returns the effect of a key.
pub(super) fn meaning(path: &str) -> Option<&'static str> {
    let own = MEANINGS.iter().find(|(known, _)| *known == path).map(|(_, meaning)| *meaning);
    own.or_else(|| {
        let key = path.strip_prefix("claude.").or_else(|| path.strip_prefix("agents.NAME."))?;
        SETTINGS.iter().find(|setting| setting.key == key).map(|setting| setting.meaning)
    })
}
