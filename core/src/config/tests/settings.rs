//! Settings of harnesses: each key, its variable, and the names that cannot be in `env`.

use std::collections::BTreeSet;

use super::*;

/// A value that the setting takes and that is not its default, as the file has it.
fn sample(setting: &Setting) -> String {
    match setting.kind {
        // A default time beyond the longest one is refused.
        Kind::Number(least, _) if setting.key == "bash_timeout_secs" => least.to_string(),
        Kind::Number(_, most) => most.to_string(),
        Kind::Flag => (setting.default != "true").to_string(),
        Kind::Word(words) => format!("\"{}\"", words.last().expect("words")),
        Kind::File => "\"prompt.md\"".to_owned(),
        Kind::Time => "\"04:00\"".to_owned(),
    }
}

#[test]
fn every_setting_has_a_key_and_a_variable_of_its_own() {
    let keys: BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
    let variables: BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.variable).collect();
    assert_eq!((keys.len(), variables.len()), (SETTINGS.len(), SETTINGS.len()));
    assert!(variables.iter().all(|variable| variable.starts_with(OWN_PREFIX)));
    assert!(OTHER_VARIABLES.iter().all(|(variable, _)| !variables.contains(variable)));
}

#[test]
fn every_setting_of_an_agent_becomes_its_variable_and_comes_before_that_of_claude() {
    for setting in SETTINGS {
        let (key, value) = (setting.key, sample(setting));
        // `reset.notes` states no time of a reset, so the table is rejected without another key.
        let when = if key == "reset.notes" { "reset.idle_minutes = 5" } else { "" };
        let mut config =
            parse(&format!("[agents.ada]\n{key} = {value}\n{when}\n[agents.bob]\n")).expect(key);
        config.resolve_paths(Path::new("/etc/hive"));
        let wanted = match setting.kind {
            Kind::File => "/etc/hive/prompt.md".to_owned(),
            Kind::Number(..) | Kind::Flag | Kind::Word(_) | Kind::Time => {
                value.trim_matches('"').to_owned()
            }
        };
        let mut variables = config.harness_variables(agent(&config, "ada"));
        assert_eq!(variables.remove(setting.variable), Some(wanted));
        assert_eq!(variables.len(), usize::from(!when.is_empty()), "{key}: {variables:?}");
        assert!(config.harness_variables(agent(&config, "bob")).is_empty(), "{key}");
    }
    let config = parse(
        "[claude]\nturn_max_secs = 60\nkill_grace_ms = 7\nauto_compact = true\n[agents.ada]\nturn_max_secs = 0\nauto_compact = false",
    );
    let config = config.expect("valid");
    let variables = config.harness_variables(agent(&config, "ada"));
    let wanted =
        [("HIVE_AUTO_COMPACT", "false"), ("HIVE_KILL_GRACE_MS", "7"), ("HIVE_TURN_MAX_SECS", "0")];
    assert_eq!(
        variables.into_iter().collect::<Vec<_>>(),
        wanted.map(|(name, value)| (name, value.to_owned()))
    );
}

#[test]
fn settings_are_checked() {
    let cases = [
        (
            "[agents.bob]\nheartbeat_secs = 31",
            "line 2, column 18: `heartbeat_secs` must be from 1 to 30, not 31",
        ),
        (
            "[claude]\nheartbeat_secs = 0",
            "line 2, column 18: `heartbeat_secs` must be from 1 to 30, not 0",
        ),
        (
            "[claude]\nauto_compact = \"no\"",
            "line 2, column 16: `auto_compact` must be true or false, not a string",
        ),
        (
            "[agents.bob]\nsystem_prompt = 1",
            "line 2, column 17: `system_prompt` must be a string, not a number",
        ),
        (
            "[agents.bob]\nturn_max_sec = 1",
            "line 2, column 1: unknown key `turn_max_sec` in [agents.bob]; did you mean `turn_max_secs`?",
        ),
        (
            "[claude]\nbash_timeout_max_secs = 60\n[agents.bob]\nbash_timeout_secs = 61",
            "line 2, column 25: `bash_timeout_secs` (1800) is greater than `bash_timeout_max_secs` (60)\n\
             line 4, column 21: `bash_timeout_secs` (61) is greater than `bash_timeout_max_secs` (60)",
        ),
        (
            "[claude]\ncontext_windows = { opus = 10 }",
            "line 2, column 28: `context_windows.opus` must be from 1000 to 100000000, not 10",
        ),
        (
            "[agents.bob]\nreset = { daily_at = \"4:00\" }",
            "line 2, column 22: `daily_at` must be a time of day as \"04:00\", or \"never\"",
        ),
        (
            "[agents.bob]\nreset = { daly_at = \"04:00\", idle_minutes = 5 }",
            "line 2, column 11: unknown key `daly_at` in [agents.bob.reset]; did you mean `daily_at`?",
        ),
        (
            "[claude]\nreset = { notes = true }",
            "line 2, column 9: `reset` needs `daily_at`, `idle_minutes` or both",
        ),
        ("[claude]\nreset = \"04:00\"", "line 2, column 9: `reset` must be a table, not a string"),
        (
            "[claude]\ncontext_windows = { \"\" = 1000 }",
            "line 2, column 21: `` is no part of a model's name",
        ),
        (
            "[claude]\ncontext_windows = { Opus = 1000, opus = 2000 }",
            "line 2, column 34: `opus` is there twice: upper and lower case make no difference",
        ),
    ];
    for (text, wanted) in cases {
        assert_eq!(message(text), wanted, "{text}");
    }
    assert!(
        parse("[claude]\nreset.daily_at = \"04:00\"\n[agents.bob]\nreset = { notes = true }")
            .is_ok()
    );
    assert!(
        message("[claude]\ncontext_window_tokens = 5000")
            .contains("unknown key `context_window_tokens` in [claude]")
    );
    let config =
        parse("[claude]\ncontext_windows = { Opus = 1000000, haiku = 100000 }").expect("valid");
    let windows =
        config.claude.context_windows.iter().map(|(name, tokens)| (name.as_str(), *tokens));
    assert_eq!(windows.collect::<Vec<_>>(), [("haiku", 100_000), ("opus", 1_000_000)]);
}

#[test]
fn a_variable_of_hives_own_in_env_is_an_error_that_names_the_key() {
    let names = |name: &str| {
        let of_agent = message(&format!("[agents.ada]\nenv = {{ {name} = \"1\" }}"));
        assert_eq!(message(&format!("[claude]\nenv = {{ {name} = \"1\" }}")), of_agent);
        of_agent
    };
    for setting in SETTINGS {
        let wanted = format!(
            "line 2, column 9: `{}` has no effect on claude; use the key `{}`",
            setting.variable, setting.key
        );
        assert_eq!(names(setting.variable), wanted);
    }
    for (variable, key) in OTHER_VARIABLES {
        let found = names(variable);
        assert!(
            key.map_or(found.ends_with("remove it"), |key| found
                .ends_with(&format!("use the key {key}"))),
            "{found}"
        );
    }
    assert!(
        names("HIVE_CONTEXT_WINDOW_TOKENS_OPUS")
            .ends_with("use the key `context_windows` in [claude]")
    );
    let wanted =
        "`HIVE_X` has no effect on claude: names that begin with `HIVE_` are Hive's own; remove it";
    assert!(names("HIVE_X").ends_with(wanted), "{}", names("HIVE_X"));
    assert!(
        parse("[agents.ada.extra_mcp_servers.x]\ncommand = \"x\"\nenv = { HIVE_SOCKET = \"/s\" }")
            .is_ok()
    );
}
