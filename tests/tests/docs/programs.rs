//! The programs, and their documentation beyond the command lines: exit codes,
//! environment, files.

use clap::{Command, CommandFactory as _};

pub(crate) type Code = (u8, &'static str);

pub(crate) struct Program {
    /// The command line, with the commands below it.
    pub(crate) command: Command,
    pub(crate) codes: &'static [Code],
    /// Variables that it reads besides those of its options.
    pub(crate) environment: &'static [(&'static str, &'static str)],
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// Pages about the same things.
    pub(crate) see_also: &'static [&'static str],
}

pub(crate) fn all() -> [Program; 3] {
    [hivectl(), hived(), hive()]
}

pub(crate) fn hivectl() -> Program {
    Program {
        command: built(hivectl::cli::Cli::command()),
        codes: &HIVECTL_CODES,
        environment: &HIVECTL_ENVIRONMENT,
        files: &HIVECTL_FILES,
        see_also: &["hived", "hive"],
    }
}

fn hived() -> Program {
    Program {
        command: built(hive_broker::cli::Cli::command()),
        codes: &[
            (0, "it was told to end, and drained; or a checked configuration is right"),
            (1, "it could not start, or could not go on"),
            (2, "the command line is not valid"),
            (8, "the configuration is invalid that was to be checked"),
        ],
        environment: &[
            (
                "HIVE_SUPERVISOR_FD",
                "The inherited socket on which `hivectl up` describes the sandboxes of the agents.",
            ),
            ("LISTEN_FDS", "Sockets that a supervisor opened for it."),
            (
                "NOTIFY_SOCKET",
                "Where it tells a supervisor how far a migration is, that it is ready, and that it ends.",
            ),
        ],
        files: &[
            ("/run/hive/hived.sock", "The operator's socket."),
            ("/run/hive/agents/NAME/hive.sock", "The socket of an agent."),
            ("/var/lib/hive/hive.db", "The database."),
            (
                "/var/lib/hive/search.sqlite3",
                "The words of the mail, for searching; made anew where it is missing.",
            ),
        ],
        see_also: &["hivectl", "hive"],
    }
}

fn hive() -> Program {
    Program {
        command: built(hive_harness::cli::Cli::command()),
        codes: &[
            (0, "it went well"),
            (1, "it failed"),
            (2, "the command line is invalid"),
            (7, "no broker answers on the socket"),
        ],
        environment: &[
            ("HIVE_LOG", "What to log, for example info or hive_harness=debug."),
            ("RUST_LOG", "The same, where HIVE_LOG is not set."),
        ],
        files: &[],
        see_also: &["hivectl", "hived"],
    }
}

fn built(command: Command) -> Command {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    command
}

const HIVECTL_CODES: [Code; 9] = [
    (0, "done"),
    (1, "failed, for a reason without a code of its own"),
    (2, "the command line, or a value on it, is not valid"),
    (3, "what was named does not exist"),
    (4, "it is not allowed"),
    (5, "it does not fit the present state"),
    (6, "timed out"),
    (7, "no broker answers, or it is shutting down"),
    (8, "the command worked, and found something that needs attention"),
];

const HIVECTL_ENVIRONMENT: [(&str, &str); 7] = [
    ("COMPLETE", "Set by a shell that completes a command line; see hivectl-completions(1)."),
    (
        "HIVE_COMPLETION_MS",
        "How many milliseconds the broker has to answer a shell that completes a command line; 250 by default.",
    ),
    (
        "HIVE_RUNTIME_DIR",
        "The directory of the operator socket, where neither --socket nor HIVE_SOCKET names it.",
    ),
    (
        "LANG",
        "Whether drawings may have block characters: they have where it names UTF-8. LC_ALL and LC_CTYPE come before it.",
    ),
    ("NO_COLOR", "No colours, whatever it is set to."),
    (
        "TERM",
        "The terminal; top needs one that can show a screen, and login tells claude which one it is.",
    ),
    ("TZ", "The time zone of times that people read."),
];

const HIVECTL_FILES: [(&str, &str); 4] = [
    (
        "./.hive/run/hived.sock",
        "The operator socket of the hive of this directory, used if neither an option nor the environment names one.",
    ),
    (
        "/run/hive/hived.sock",
        "The operator socket of the host's hive, used if there is none of this directory.",
    ),
    (
        "./hive.toml",
        "The configuration that up starts and config check reads if no other is named.",
    ),
    ("./.hive", "Where up keeps a hive: its database, sockets, logs and the agents' directories."),
];

/// The exit codes that a command of hivectl can end with.
pub(crate) fn codes_of(command: &str) -> &'static [u8] {
    match command {
        "completions" | "config keys" => &[0, 1, 2],
        "config check" => &[0, 1, 2, 3, 4, 8],
        "doctor" | "status" => &[0, 1, 2, 3, 4, 5, 6, 7, 8],
        "up" => &[0, 1, 2, 3, 4, 5, 6, 8],
        _ => &[0, 1, 2, 3, 4, 5, 6, 7],
    }
}

/// Returns the meaning of an exit code for one command in particular.
pub(crate) fn note_on(command: &str, code: u8) -> Option<&'static str> {
    match (command, code) {
        ("answer", 5) => Some("the question has its outcome already"),
        ("ask", 1) => Some("with --wait also: interrupted, and the question stays open"),
        ("ask", 5) => Some("with --wait also: the question was cancelled"),
        ("ask", 6) => {
            Some("with --wait also: the question expired, or has no answer within --timeout")
        }
        ("config check", 8) => Some("the file is invalid"),
        ("doctor" | "status", 8) => Some("something needs attention"),
        ("login", 1) => {
            Some("claude is not logged in: its dialogue ended without a login, or was interrupted")
        }
        ("login", 2) => Some("stdin or stdout is no terminal"),
        ("login", 5) => Some("no harness is attached, or another dialogue is open"),
        ("login", 7) => Some("the connection broke in the middle of the dialogue"),
        (
            "turn cancel" | "turn compact" | "turn model" | "turn new-session" | "turn restart",
            1,
        ) => Some(
            "with --wait also: the harness refused it, or interrupted, and the command stays queued",
        ),
        (
            "turn cancel" | "turn compact" | "turn model" | "turn new-session" | "turn restart",
            6,
        ) => Some("with --wait also: it is not done within --timeout, and stays queued"),
        ("up", 5) => Some("a hive runs here already"),
        ("up", 6) => Some("the broker did not come up in time"),
        ("up", 8) => Some("the configuration is invalid"),
        _ => None,
    }
}
