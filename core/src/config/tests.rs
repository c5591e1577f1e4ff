//! One broken file per message.

mod agent;
mod backup;
mod heartbeat;
mod keys;
mod metrics;
mod secrets;
mod settings;
mod traces;
mod webhook;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::*;
use crate::isolation::Level;
use crate::name::AgentName;

fn message(text: &str) -> String {
    parse(text).expect_err("the file is broken").to_string()
}

fn agent<'c>(config: &'c Config, name: &str) -> &'c AgentConfig {
    &config.agents[&AgentName::parse(name).expect("a good name")]
}

fn number(number: u64) -> SettingValue {
    SettingValue::Number(number)
}

#[test]
fn a_tree_may_be_as_deep_as_it_has_agents() {
    // If each agent's way to the root were followed, this would take minutes.
    let child = |number| format!("[agents.a{number:04}]\nparent = \"a{:04}\"\n", number - 1);
    let text = "[agents.a0000]\n".to_owned() + &(1..3000).map(child).collect::<String>();
    assert_eq!(parse(&text).expect("valid").agents.len(), 3000);
}

#[test]
fn an_empty_file_is_a_hive_of_defaults() {
    let config = parse("").expect("valid");
    assert_eq!(config, Config::default());
    assert_eq!((config.broker.retention_days, config.claude.command.as_str()), (30, "claude"));
}

#[test]
fn every_key_reaches_its_value() {
    let mut config = parse(
        r#"
        [hive]
        name = "garden"
        domain = "example.org"
        swarm = "north"
        isolation = "none"
        [broker]
        state_dir = "state"
        runtime_dir = "/run/garden"
        socket_group = "bees"
        retention_days = 7
        limits = { body_bytes_max = 1000, harness_grace_ms = 0x10 }
        [operator]
        pronouns = "they/them"
        journal_units = ["nginx.service", "backup@a.timer"]
        notify = { command = ["./bin/tell", "Hive", ""] }
        [claude]
        command = "./bin/claude"
        env = { TZ = "UTC" }
        process = "per-turn"
        max_retries = 0
        mcp_server_name = "hyperhive"
        [agents.ada]
        role = "leads"
        [agents.bob]
        parent = "ada"
        model = "opus"
        tool_groups = ["messaging", "inbox"]
        allowed_recipients = ["ada", "operator", "later"]
        capabilities = ["query_agent_state"]
        limits = { sends_per_minute_max = 60, sender_stored_bytes_max = 5_000_000_000, questions_open_max = 3, reminders_pending_max = 4 }
        uids = [1000, 1000, 0]
        users = ["bob", "DOMAIN\\bob"]
        state_dir = "bob/state"
        home_dir = "bob/home"
        env.RUST_LOG = "debug"
        context_window_tokens = 200_000
        "#,
    )
    .expect("valid");
    config.resolve_paths(Path::new("/etc/hive"));
    assert_eq!(
        config.hive,
        Hive {
            name: Some("garden".into()),
            domain: Some("example.org".into()),
            swarm: Some("north".into()),
            isolation: Some(Level::None)
        }
    );
    assert_eq!(config.broker.state_dir, Some(PathBuf::from("/etc/hive/state")));
    assert_eq!(config.broker.runtime_dir, Some(PathBuf::from("/run/garden")));
    assert_eq!(config.broker.socket_group.as_deref(), Some("bees"));
    assert_eq!((config.broker.retention_days, config.broker.limits.body_bytes_max), (7, 1000));
    assert_eq!((config.broker.limits.harness_grace_ms, config.broker.limits.attempts_max), (16, 5));
    assert_eq!(config.operator.pronouns.as_deref(), Some("they/them"));
    assert_eq!(config.operator.journal_units, ["nginx.service", "backup@a.timer"]);
    let command = ["/etc/hive/./bin/tell", "Hive", ""].map(str::to_owned);
    assert_eq!(config.operator.notify, Some(Notify::Command(command.to_vec())));
    assert_eq!(config.claude.command, "/etc/hive/./bin/claude");
    assert_eq!(
        (config.claude.settings.get("max_retries"), config.claude.mcp_server_name.as_str()),
        (Some(&number(0)), "hyperhive")
    );
    assert_eq!(config.claude.settings.get("process"), Some(&SettingValue::Text("per-turn".into())));
    assert_eq!(config.claude.env["TZ"].text(), Some("UTC"));
    assert_eq!(agent(&config, "ada").role.as_deref(), Some("leads"));
    let bob = agent(&config, "bob");
    assert_eq!(bob.parent.as_ref().map(AgentName::as_str), Some("ada"));
    assert_eq!(bob.model.as_deref(), Some("opus"));
    assert_eq!(bob.tool_groups.as_deref(), Some(&["messaging".to_owned(), "inbox".to_owned()][..]));
    assert_eq!(bob.allowed_recipients.as_ref().map(Vec::len), Some(3));
    assert_eq!(bob.capabilities.as_deref(), Some(&["query_agent_state".to_owned()][..]));
    let own = AgentLimits {
        sends_per_minute_max: Some(60),
        sender_stored_bytes_max: Some(5_000_000_000),
        questions_open_max: Some(3),
        reminders_pending_max: Some(4),
        children_max: None,
        schedules_max: None,
    };
    assert_eq!((&bob.limits, &agent(&config, "ada").limits), (&own, &AgentLimits::default()));
    assert_eq!(bob.uids, [1000, 1000, 0]);
    assert_eq!(bob.users, ["bob", r"DOMAIN\bob"]);
    assert_eq!(bob.state_dir, Some(PathBuf::from("/etc/hive/bob/state")));
    assert_eq!(bob.home_dir, Some(PathBuf::from("/etc/hive/bob/home")));
    assert_eq!(
        (bob.env["RUST_LOG"].text(), bob.settings.get("context_window_tokens")),
        (Some("debug"), Some(&number(200_000)))
    );
}

#[test]
fn a_command_without_a_slash_stays_a_name_on_path() {
    let mut config =
        parse("[operator]\nnotify.command = [\"notify-send\", \"a/b\"]").expect("valid");
    config.resolve_paths(Path::new("/etc/hive"));
    assert_eq!(config.claude.command, "claude");
    assert_eq!(
        config.operator.notify,
        Some(Notify::Command(["notify-send", "a/b"].map(str::to_owned).to_vec()))
    );
}

#[test]
fn unknown_keys_name_their_place_and_the_nearest_known_one() {
    let text = "[agents.ada]\n[agents.bob]\n  parnet = \"ada\"\n";
    let error = parse(text).expect_err("broken");
    assert_eq!(
        error.to_string(),
        "line 3, column 3: unknown key `parnet` in [agents.bob]; did you mean `parent`?"
    );
    let finding = &error.findings[0];
    assert_eq!((finding.line, finding.column, finding.key.as_str()), (3, 3, "agents.bob.parnet"));
    assert_eq!(finding.nearest.as_deref(), Some("parent"));
}

#[test]
fn an_unknown_key_like_no_other_lists_the_known_keys() {
    assert_eq!(
        message("[hive]\nzzz = 1"),
        "line 2, column 1: unknown key `zzz` in [hive]; known are `name`, `domain`, `swarm` and `isolation`"
    );
}

#[test]
fn isolation_is_a_level_or_absent() {
    assert_eq!(parse("[hive]").expect("valid").hive.isolation, None);
    let rule = "`isolation` must be \"sandbox\", \"shared_files\" or \"none\"; leave it out for the best that works here";
    assert_eq!(message("[hive]\nisolation = \"uid\""), format!("line 2, column 13: {rule}"));
    assert_eq!(
        message("[hive]\nisolation = \"noen\""),
        format!("line 2, column 13: {rule}; did you mean `none`?")
    );
    let config = parse(
        "[hive]\nisolation = \"shared_files\"\n[agents.ada]\nisolation = \"sandbox\"\n[agents.bob]",
    )
    .expect("valid");
    let of = |name: &str| config.isolation_of(Some(agent(&config, name)));
    assert_eq!(
        [of("ada"), of("bob"), config.isolation_of(None)],
        [Level::Sandbox, Level::SharedFiles, Level::SharedFiles].map(Some)
    );
}

#[test]
fn errors_of_invalid_files_name_the_mistake_and_its_line() {
    let cases = [
        (
            "[agent.bob]",
            "line 1, column 2: unknown key `agent` in the file; did you mean `agents`?",
        ),
        (
            "[agents.bob]\nmodel = \"--continue\"",
            "line 2, column 9: `model` has at most 200 printable characters and does not begin with `-`",
        ),
        (
            "[broker]\nlimits.atempts_max = 3",
            "line 2, column 8: unknown key `atempts_max` in [broker.limits]; did you mean `attempts_max`?",
        ),
        ("hive = 3", "line 1, column 8: `hive` must be a table, not a number"),
        ("[hive]\nname = true", "line 2, column 8: `name` must be a string, not true or false"),
        ("[hive]\nname = \"\"", "line 2, column 8: `name` is empty; leave it out instead"),
        (
            "[hive]\nname = \"a\\nb\"",
            "line 2, column 8: `name` must be one line without control characters",
        ),
        (
            "[broker]\nretention_days = 0",
            "line 2, column 18: `retention_days` must be from 1 to 36500, not 0",
        ),
        (
            "[broker]\nretention_days = -1",
            "line 2, column 18: `retention_days` must be from 1 to 36500, not -1",
        ),
        (
            "[broker]\nretention_days = 1.5",
            "line 2, column 18: `retention_days` must be a whole number, not a fraction",
        ),
        (
            "[broker.limits]\ninbox_depth_max = 0",
            "line 2, column 19: `inbox_depth_max` must be from 1 to 4294967295, not 0",
        ),
        (
            "[broker.limits]\nbody_bytes_max = 2000000",
            "line 2, column 18: `body_bytes_max` must be from 1 to 1048576, not 2000000",
        ),
        (
            "[broker.limits]\npark_backoff_base_ms = 9000000",
            "line 2, column 24: `park_backoff_base_ms` (9000000) is greater than `park_backoff_max_ms` (600000)",
        ),
        (
            "[operator]\nnotify = \"notify-send\"",
            "line 2, column 10: `notify` must be a table, not a string",
        ),
        (
            "[operator]\nnotify = {}",
            "line 2, column 10: `notify` is empty; give it a `command` or a `webhook`, or leave it out",
        ),
        (
            "[operator]\nnotify = { comand = [\"x\"] }",
            "line 2, column 12: unknown key `comand` in [operator.notify]; did you mean `command`?",
        ),
        (
            "[operator.notify]\nzzz = 1",
            "line 2, column 1: unknown key `zzz` in [operator.notify]; known are `command` and `webhook`",
        ),
        (
            "[operator.notify]\ncommand = [\"x\"]\nwebhook = \"http://x\"",
            "line 3, column 11: `notify` has a `command` and a `webhook`; leave one of them out",
        ),
        (
            "[operator]\nnotify.command = []",
            "line 2, column 18: `command` must begin with a program: [\"notify-send\", \"Hive\"]",
        ),
        (
            "[operator]\nnotify.command = [\"\", \"Hive\"]",
            "line 2, column 18: `command` must begin with a program: [\"notify-send\", \"Hive\"]",
        ),
        (
            "[operator]\nnotify.command = [\"x\", \"a\\u0000\"]",
            "line 2, column 24: no program takes an argument with a NUL character",
        ),
        (
            "[operator]\nnotify.command = \"x\"",
            "line 2, column 18: `command` must be a list of strings, not a string",
        ),
        (
            "[operator]\nnotify.webhook = \"ftp://example.org\"",
            "line 2, column 18: `webhook` must be a URL that begins with https:// or http://",
        ),
        (
            "[operator]\njournal_units = [\"nginx\"]",
            "line 2, column 18: `nginx` is not the full name of a unit of systemd, as nginx.service",
        ),
        (
            "[operator]\njournal_units = [\"*.service\"]",
            "line 2, column 18: `*.service` is not the full name of a unit of systemd, as nginx.service",
        ),
        (
            "[operator]\njournal_units = [\"-u.service\"]",
            "line 2, column 18: `-u.service` is not the full name of a unit of systemd, as nginx.service",
        ),
        (
            "[actions.\"a b\"]",
            "line 1, column 10: `a b` is no name of an action: use small letters, digits and `_`, at most 40 characters, and a letter at the beginning",
        ),
        (
            "[actions.set_policy]\ncommand = [\"x\"]",
            "line 1, column 10: `request_set_policy` is a tool of Hive's own; choose another name",
        ),
        (
            "[actions.a]\ncommand = [\"x\", \"{why}\"]\nargs.why = \"y\"",
            "line 3, column 12: `why` is an argument of each action; choose another name",
        ),
        ("[actions.a]", "line 1, column 10: `command` is missing: the program and its arguments"),
        (
            "[actions.a]\ncommand = []",
            "line 2, column 11: `command` must begin with a program: [\"git\", \"show\", \"{commit}\"]",
        ),
        (
            "[actions.a]\ncommand = [\"{x}\"]\nargs.x = \"y\"",
            "line 2, column 11: `command` must begin with a program: [\"git\", \"show\", \"{commit}\"]",
        ),
        (
            "[actions.a]\ncommand = [\"x\"]\npreview = []",
            "line 3, column 11: `preview` must begin with a program: [\"git\", \"show\", \"{commit}\"]",
        ),
        (
            "[actions.a]\ncommand = [\"x\"]\npreview = \"x\"",
            "line 3, column 11: `preview` must be a list of strings, not a string",
        ),
        (
            "[actions.a]\ncommand = [\"x\"]\npreview = [\"x\", \"{b}\"]\nargs.b = \"c\"",
            "line 4, column 10: `command` has no place for `b`: write `{b}` where it belongs",
        ),
        (
            "[actions.a]\ncommand = [\"x\"]\nargs.b = \"c\"",
            "line 3, column 10: `command` has no place for `b`: write `{b}` where it belongs",
        ),
        (
            "[actions.a]\ncommand = [\"x\", \"{b}\"]\nargs.b = \"a)|(?:b\"",
            "line 3, column 10: `b` is no regular expression: found closing ')' without matching '('",
        ),
        (
            "[actions.a]\ncommand = [\"x\"]\nagents = [\"A B\"]",
            "line 3, column 11: `A B` is no name: use lower-case letters, digits, `-` and `_`, and begin with a letter",
        ),
        (
            "[actions.a]\ncommand = [\"x\"]\ntimeout_secs = 0",
            "line 3, column 16: `timeout_secs` must be from 1 to 86400, not 0",
        ),
        (
            "[agents.ada]\ngrants = [\"action:zzz\"]",
            "line 2, column 11: there is no action `zzz` in the file",
        ),
        (
            "[agents.ada]\ngrants = [\"zzz\"]",
            "line 2, column 11: unknown grant `zzz`; known are `create_agent`, `own_schedules` and `action:NAME`",
        ),
        (
            "[claude]\nprocess = \"forever\"",
            "line 2, column 11: `process` must be \"per-turn\" or \"resident\"",
        ),
        (
            "[claude]\nprocess = \"per_turn\"",
            "line 2, column 11: `process` must be \"per-turn\" or \"resident\"; did you mean `per-turn`?",
        ),
        (
            "[claude]\nmcp_server_name = \"bash\"",
            "line 2, column 19: `mcp_server_name` cannot be `bash`: that is the server of the shell tools",
        ),
        (
            "[claude]\nmcp_server_name = \"a__b\"",
            "line 2, column 19: `mcp_server_name` must be letters, digits, `-` and single `_`, at most 32 characters",
        ),
        (
            "[claude]\nenv = { A = 1 }",
            "line 2, column 13: `env.A` must be a string, or a table with `file` or `credential`, not a number",
        ),
        (
            "[claude]\nenv = { HOME = \"/\" }",
            "line 2, column 9: `HOME` is set by Hive itself; remove it",
        ),
        (
            "[claude]\nenv = { \"A=B\" = \"/\" }",
            "line 2, column 9: `A=B` is no environment variable",
        ),
        (
            "[agents.Bob]",
            "line 1, column 9: `Bob` is no name: use lower-case letters, digits, `-` and `_`, and begin with a letter",
        ),
        ("[agents.operator]", "line 1, column 9: `operator` is a reserved word"),
        ("[agents]\nada = \"x\"", "line 2, column 7: `ada` must be a table: write [agents.ada]"),
        (
            "[agents.bob]\nparent = \"operator\"",
            "line 2, column 10: a root has no `parent`: leave the key out",
        ),
        (
            "[agents.ada]\n[agents.bob]\nparent = \"adda\"",
            "line 3, column 10: the parent `adda` of `bob` is not in the file; did you mean `ada`?",
        ),
        (
            "[agents.bob]\nparent = \"bob\"",
            "line 2, column 10: `bob` would be its own ancestor: bob -> bob",
        ),
        (
            "[agents.a]\nparent = \"b\"\n[agents.b]\nparent = \"c\"\n[agents.c]\nparent = \"a\"\n[agents.d]\nparent = \"a\"",
            "line 2, column 10: `a` would be its own ancestor: a -> b -> c -> a",
        ),
        (
            "[agents.bob]\ntool_groups = [\"inbox\", \"mesaging\"]",
            "line 2, column 25: unknown tool group `mesaging`; did you mean `messaging`?",
        ),
        (
            "[agents.bob]\ntool_groups = [\"zzz\"]",
            "line 2, column 16: unknown tool group `zzz`; known are `messaging`, `inbox`, `meta`, `execution`, `web_tools`, `lifecycle`, `approvals`, `diagnostics` and `scheduling`",
        ),
        (
            "[agents.bob]\ntool_groups = \"inbox\"",
            "line 2, column 15: `tool_groups` must be a list of strings, not a string",
        ),
        (
            "[agents.bob]\nallowed_recipients = [\"*\"]",
            "line 2, column 23: `*` is no name: use lower-case letters, digits, `-` and `_`, and begin with a letter; \
             write an agent's name or `operator`",
        ),
        (
            "[agents.bob]\ncapabilities = [\"query_agents_state\"]",
            "line 2, column 17: unknown capability `query_agents_state`; did you mean `query_agent_state`?",
        ),
        (
            "[agents.bob]\ncapabilities = [\"zzz\"]",
            "line 2, column 17: unknown capability `zzz`; known are `query_agent_state`, `manage_subtree` and `read_host_journal`",
        ),
        (
            "[agents.bob.limits]\nsends_per_minut_max = 1",
            "line 2, column 1: unknown key `sends_per_minut_max` in [agents.bob.limits]; did you mean `sends_per_minute_max`?",
        ),
        (
            "[agents.bob.limits]\nattempts = 3",
            "line 2, column 1: unknown key `attempts` in [agents.bob.limits]; known are `sends_per_minute_max`, \
             `questions_open_max`, `reminders_pending_max`, `children_max`, `schedules_max` and `sender_stored_bytes_max`",
        ),
        (
            "[agents.bob]\nlimits.reminders_pending_max = 0",
            "line 2, column 32: `reminders_pending_max` must be from 1 to 4294967295, not 0",
        ),
        (
            "[agents.bob]\nlimits.sender_stored_bytes_max = 0",
            "line 2, column 34: `sender_stored_bytes_max` must be from 1 to 9223372036854775807, not 0",
        ),
        (
            "[agents.bob]\nuids = [-1]",
            "line 2, column 9: `uids` must be from 0 to 4294967294, not -1",
        ),
    ];
    for (text, wanted) in cases {
        assert_eq!(message(text), wanted, "{text}");
    }
}

#[test]
fn an_empty_list_of_recipients_is_everyone_and_a_remark() {
    let text =
        "[agents.bob]\nallowed_recipients = []\n[agents.ada]\nallowed_recipients = [\"bob\"]";
    let checked = check(text).expect("valid");
    assert_eq!(agent(&checked.config, "bob").allowed_recipients, None);
    let remarks: Vec<String> = checked.remarks.iter().map(ToString::to_string).collect();
    let wanted = "line 2, column 22: `allowed_recipients = []` allows everyone, as if the key were not there; to restrict the agent, name \
                  recipients";
    assert_eq!(remarks, [wanted]);
    assert_eq!(checked.remarks[0].key, "agents.bob.allowed_recipients");
}

#[test]
fn a_role_that_is_too_long_is_refused_with_its_length() {
    let text = format!("[agents.bob]\nrole = \"{}\"", "ä".repeat(1001));
    assert_eq!(message(&text), "line 2, column 8: `role` has 1001 characters, more than 1000");
}

#[test]
fn text_that_is_no_toml_names_its_line() {
    let text = "[hive]\nname = \"garden\n";
    assert!(message(text).starts_with("line 2, column "), "{}", message(text));
    assert!(
        !message(text).contains('\n')
            || message(text).lines().all(|line| line.starts_with("line ")),
        "{}",
        message(text)
    );
    assert!(message("[hive]\nname = 1\nname = 2").contains("line 3"), "a key twice");
}

#[test]
fn columns_count_characters_and_lines_of_windows_count_once() {
    assert_eq!(message("[hive]\r\n\"ä\" = 1, zz"), message("[hive]\n\"ä\" = 1, zz"));
    assert!(
        message("[agents.bob]\nenv = { \"ä\" = \"b\", HOME = \"/\" }")
            .starts_with("line 2, column 20:")
    );
}

#[test]
fn all_mistakes_are_reported_at_once_in_the_order_of_the_lines() {
    let lines: Vec<usize> =
        parse("[agents.bob]\nparent = \"x\"\nmodle = \"y\"\n[hive]\nname = 1\n[zoo]\n")
            .expect_err("broken")
            .findings
            .iter()
            .map(|finding| finding.line)
            .collect();
    assert_eq!(lines, [2, 3, 5, 6]);
}

#[test]
fn a_key_cannot_smuggle_control_characters_into_a_terminal() {
    let text = message("[hive]\n\"\\u001b[2J\" = 1");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert!(!message("[broker]\nretention_days = 9\0\x079").contains(char::is_control));
    let found = message("[agents.ada.env]\n\"a\\nb\\u001b[2J\" = 1");
    assert_eq!(
        found,
        "line 2, column 19: `env.a\\nb\\u{1b}[2J` must be a string, or a table with `file` or `credential`, not a number"
    );
}
