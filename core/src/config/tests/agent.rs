//! The additions of an agent's claude to Hive's own: models, further MCP servers, plugins.

use super::*;

#[test]
fn an_agent_that_says_nothing_has_the_defaults() {
    let config = parse("[agents.ada]").expect("valid");
    let ada = agent(&config, "ada");
    assert_eq!(ada, &AgentConfig::default());
    assert_eq!(ada.kick_on_start, crate::agent::KickOnStart::Interrupted);
    assert_eq!(
        (ada.marketplaces.as_ref(), ada.settings.iter().count(), ada.first_model()),
        (None, 0, None)
    );
}

#[test]
fn every_key_reaches_its_value_and_paths_lie_beside_the_file() {
    let mut config = parse(
        r#"
        [agents.ada]
        kick_on_start = "always"
        on_demand = true
        heartbeat = { every = "1h30m", between = "22:00-06:00", zone = "europe/berlin" }
        available_models = ["opus", "haiku", "opus"]
        plugins = ["formatter@mine"]
        marketplaces = ["acme/tools", "./market", "https://example.org/x.git"]
        [agents.ada.extra_mcp_servers.notes]
        command = "bin/notes"
        args = ["--dir", "a/b", ""]
        env = { NOTES_KEY = "k", HOME = "/n" }
        allowed_tools = ["read_*", "list"]
        timeout_seconds = 5
        [agents.ada.extra_mcp_servers.time-of_day]
        command = "clock"
        "#,
    )
    .expect("valid");
    config.resolve_paths(Path::new("/etc/hive"));
    let ada = agent(&config, "ada");
    assert_eq!((ada.kick_on_start, ada.on_demand), (crate::agent::KickOnStart::Always, true));
    let heartbeat = ada.heartbeat.as_ref().expect("a heartbeat");
    let window = heartbeat.window.map(|window| window.to_string());
    assert_eq!(
        (heartbeat.every.as_secs(), window.as_deref(), heartbeat.zone.as_str()),
        (5400, Some("22:00-06:00"), "Europe/Berlin")
    );
    assert_eq!(ada.available_models, ["opus", "haiku"]);
    assert_eq!(ada.first_model(), Some("opus"));
    assert_eq!(ada.plugins, ["formatter@mine"]);
    let sources =
        ["acme/tools", "/etc/hive/./market", "https://example.org/x.git"].map(str::to_owned);
    assert_eq!(ada.marketplaces.as_deref(), Some(&sources[..]));
    let notes = &ada.extra_mcp_servers["notes"];
    assert_eq!(notes.command, "/etc/hive/bin/notes");
    assert_eq!(notes.args, ["--dir", "a/b", ""]);
    assert_eq!((notes.env["NOTES_KEY"].text(), notes.env["HOME"].text()), (Some("k"), Some("/n")));
    assert_eq!(notes.allowed_tools, ["read_*", "list"]);
    let clock = &ada.extra_mcp_servers["time-of_day"];
    assert_eq!(
        (clock.command.as_str(), clock.allowed_tools.as_slice()),
        ("clock", &["*".to_owned()][..])
    );
    assert!(clock.args.is_empty() && clock.env.is_empty());
    assert_eq!((notes.timeout_seconds, clock.timeout_seconds), (5, 60));
}

#[test]
fn errors_of_invalid_agents_name_the_mistake_and_its_line() {
    let models =
        |count: usize| format!("[agents.bob]\navailable_models = [{}]", "'m',".repeat(count));
    let server = |name: &str, body: &str| format!("[agents.bob.extra_mcp_servers.{name}]\n{body}");
    let long = "k".repeat(33);
    let name_rule = "is no name of an MCP server: use letters, digits, `-` and single `_`, at most 32 characters";
    let tool_rule =
        "is no tool: use letters, digits, `_`, `-`, and `*` for any, at most 128 characters";
    let cases = [
        (
            "[agents.bob]\nkick_on_start = \"alwys\"".to_owned(),
            "line 2, column 17: `kick_on_start` must be \"interrupted\", \"always\" or \"never\"; did you mean `always`?".to_owned(),
        ),
        ("[agents.bob]\nauto_compact = 1".to_owned(), "line 2, column 16: `auto_compact` must be true or false, not a number".to_owned()),
        (
            "[agents.bob]\nauto_compct = true".to_owned(),
            "line 2, column 1: unknown key `auto_compct` in [agents.bob]; did you mean `auto_compact`?".to_owned(),
        ),
        (
            "[agents.bob]\nprocess = \"residant\"".to_owned(),
            "line 2, column 11: `process` must be \"per-turn\" or \"resident\"; did you mean `resident`?".to_owned(),
        ),
        (
            "[agents.bob]\navailable_models = []".to_owned(),
            "line 2, column 20: `available_models` is empty; leave it out to allow every model, or name those that are allowed"
                .to_owned(),
        ),
        (models(33), "line 2, column 20: `available_models` has 33 models, more than 32".to_owned()),
        (
            "[agents.bob]\navailable_models = [\"opus\", \"--continue\"]".to_owned(),
            "line 2, column 29: each of `available_models` has 1 to 200 printable characters and does not begin with `-`".to_owned(),
        ),
        (
            "[agents.bob]\nmodel = \"opsu\"\navailable_models = [\"opus\", \"haiku\"]".to_owned(),
            "line 2, column 9: the model `opsu` is not among `available_models`; did you mean `opus`?".to_owned(),
        ),
        (
            "[agents.bob]\nmodel = \"x\"\navailable_models = [\"opus\", \"haiku\"]".to_owned(),
            "line 2, column 9: the model `x` is not among `available_models`, which are `opus` and `haiku`".to_owned(),
        ),
        (
            "[agents.bob]\nplugins = [\"--scope\"]".to_owned(),
            "line 2, column 12: `plugins` must be words of one line each that do not begin with `-`".to_owned(),
        ),
        (
            "[agents.bob]\nmarketplaces = [\"\"]".to_owned(),
            "line 2, column 17: `marketplaces` must be words of one line each that do not begin with `-`".to_owned(),
        ),
        (server("a__b", "command = \"x\""), format!("line 1, column 31: `a__b` {name_rule}")),
        (server("\"a b\"", "command = \"x\""), format!("line 1, column 31: `a b` {name_rule}")),
        (server("\"\"", "command = \"x\""), format!("line 1, column 31: `` {name_rule}")),
        (server(&long, "command = \"x\""), format!("line 1, column 31: `{long}` {name_rule}")),
        (
            server("hive", "command = \"x\""),
            "line 1, column 31: `hive` is the name of a server of Hive's own; choose another".to_owned(),
        ),
        (
            server("bash", "command = \"x\""),
            "line 1, column 31: `bash` is the name of a server of Hive's own; choose another".to_owned(),
        ),
        (
            "[agents.bob]\nextra_mcp_servers.x = \"run\"".to_owned(),
            "line 2, column 23: `extra_mcp_servers.x` must be a table: { command = \"...\" }".to_owned(),
        ),
        (server("x", ""), "line 1, column 31: `command` is missing: name the program of the server".to_owned()),
        (server("x", "command = \"\""), "line 2, column 11: `command` is empty: name the program of the server".to_owned()),
        (
            server("x", "comand = \"y\""),
            "line 2, column 1: unknown key `comand` in [agents.bob.extra_mcp_servers.x]; did you mean `command`?".to_owned(),
        ),
        (
            server("x", "command = \"y\"\nargs = \"z\""),
            "line 3, column 8: `args` must be a list of strings, not a string".to_owned(),
        ),
        (
            server("x", "command = \"y\"\nargs = [\"a\\u0000\"]"),
            "line 3, column 9: no program takes an argument with a NUL character".to_owned(),
        ),
        (
            server("x", "command = \"y\"\nenv = { \"A=B\" = \"1\" }"),
            "line 3, column 9: `A=B` is no environment variable".to_owned(),
        ),
        (
            server("x", "command = \"y\"\nallowed_tools = []"),
            "line 3, column 17: `allowed_tools` is empty, so that the server would be of no use; leave it out to allow all of its tools"
                .to_owned(),
        ),
        (
            server("x", "command = \"y\"\nallowed_tools = [\"a,mcp__hive__send\"]"),
            format!("line 3, column 18: `a,mcp__hive__send` {tool_rule}"),
        ),
        (
            server("x", "command = \"y\"\ntimeout_seconds = 0"),
            "line 3, column 19: `timeout_seconds` must be from 1 to 86400, not 0".to_owned(),
        ),
        (
            "[agents.bob]\nenv = { HIVE_EXTRA_MCP = \"x\" }".to_owned(),
            "line 2, column 9: `HIVE_EXTRA_MCP` has no effect on claude; use the key `extra_mcp_servers` in [agents.NAME]".to_owned(),
        ),
    ];
    for (text, wanted) in cases {
        assert_eq!(message(&text), wanted, "{text}");
    }
}

#[test]
fn a_server_of_the_fleets_own_name_is_refused_and_ours_is_free_then() {
    let text = |name: &str| {
        format!(
            "[claude]\nmcp_server_name = \"hub\"\n[agents.bob.extra_mcp_servers.{name}]\ncommand = \"x\""
        )
    };
    assert!(message(&text("hub")).contains("`hub` is the name of a server of Hive's own"));
    assert!(parse(&text("hive")).is_ok());
}

#[test]
fn paths_of_a_sandbox_are_beside_the_file_or_in_a_home() {
    let mut config = parse(
        "[agents.ada]\nreadable = [\"lib\", \"/opt/x\", \"~/.cargo\"]\nwritable = [\"work\"]\ndevices = [\"/dev/dri\"]\n\
         user_namespaces = true\nisolation = \"sandbox\"",
    )
    .expect("valid");
    config.resolve_paths(Path::new("/etc/hive"));
    let sandbox = &agent(&config, "ada").sandbox;
    assert_eq!(sandbox.readable, ["/etc/hive/lib", "/opt/x", "~/.cargo"].map(PathBuf::from));
    assert_eq!(
        (sandbox.writable.as_slice(), sandbox.user_namespaces),
        (&[PathBuf::from("/etc/hive/work")][..], true)
    );
    let rule =
        "must be paths: absolute, beginning with `~/`, or relative to the directory of the file";
    for (text, wanted) in [
        ("readable = [\"~bob/x\"]", format!("line 2, column 13: `readable` {rule}")),
        ("writable = [\"\"]", format!("line 2, column 13: `writable` {rule}")),
        (
            "devices = [\"/etc/passwd\"]",
            "line 2, column 11: `/etc/passwd` is not below /dev".to_owned(),
        ),
        (
            "readable = \"x\"",
            "line 2, column 12: `readable` must be a list of strings, not a string".to_owned(),
        ),
    ] {
        assert_eq!(message(&format!("[agents.ada]\n{text}")), wanted);
    }
}
