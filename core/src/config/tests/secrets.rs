//! Values that are kept elsewhere, users by their names, and units.

use std::path::Path;

use super::*;
use crate::secret::{CredentialName, Place, Secret};

#[test]
fn a_secret_is_kept_in_a_file_or_in_a_credential() {
    let mut config = parse(
        r#"
        [operator]
        notify.webhook = { credential = "hook.url" }
        [claude]
        env = { ANTHROPIC_API_KEY = { file = "keys/all" }, EMPTY = "" }
        [agents.ada]
        env.TOKEN.file = "/run/ada"
        extra_mcp_servers.notes = { command = "notes", env = { KEY = { file = "notes" }, TZ = "UTC" } }
        "#,
    )
    .expect("valid");
    config.resolve_paths(Path::new("/etc/hive"));
    let file = |path: &str| Secret::Kept(Place::File(path.into()));
    let hook = Place::Credential(CredentialName::parse("hook.url").expect("a name"));
    assert_eq!(config.operator.notify, Some(Notify::Webhook(Secret::Kept(hook))));
    assert_eq!(config.claude.env["ANTHROPIC_API_KEY"], file("/etc/hive/keys/all"));
    assert_eq!(config.claude.env["EMPTY"].text(), Some(""));
    let ada = agent(&config, "ada");
    assert_eq!(ada.env["TOKEN"], file("/run/ada"));
    assert_eq!(ada.extra_mcp_servers["notes"].env["KEY"], file("/etc/hive/notes"));
}

#[test]
fn a_broken_secret_has_one_message() {
    let cases = [
        (
            "[claude.env]\nA = {}",
            "line 2, column 5: the table is empty; give it a `file` or a `credential`",
        ),
        (
            "[claude.env]\nA = { file = \"/k\", credential = \"k\" }",
            "line 2, column 5: there is a `file` and a `credential`; leave one of them out",
        ),
        (
            "[claude.env]\nA = { flie = \"/k\" }",
            "line 2, column 7: unknown key `flie` in [claude.env.A]; did you mean `file`?",
        ),
        ("[claude.env]\nA.file = 3", "line 2, column 10: `file` must be a string, not a number"),
        ("[claude.env]\nA.file = \"\"", "line 2, column 10: `file` is empty; leave it out instead"),
        (
            "[operator]\nnotify.webhook.credential = \"../k\"",
            "line 2, column 29: `credential` must be 1 to 255 letters, digits, `-`, `_` or `.`, and not begin with `.`",
        ),
        (
            "[agents.ada.extra_mcp_servers.x]\ncommand = \"x\"\nenv.K.credential = \"a/b\"",
            "line 3, column 20: `credential` must be 1 to 255 letters, digits, `-`, `_` or `.`, and not begin with `.`",
        ),
    ];
    for (text, wanted) in cases {
        assert_eq!(message(text), wanted, "{text}");
    }
}

#[test]
fn a_user_is_a_name_and_not_a_number() {
    let cases = [
        ("users = [\"1000\"]", "`1000` is no name of a user; write numbers in `uids`"),
        ("users = [\"\"]", "`` is no name of a user"),
        ("users = [\"a b\"]", "`a b` is no name of a user"),
        ("users = [\"a:b\"]", "`a:b` is no name of a user"),
        ("users = [\"a\\nb\"]", "`a\\nb` is no name of a user"),
        ("users = [1000]", "`users` must be a list of strings, not a number"),
    ];
    for (line, wanted) in cases {
        let found = message(&format!("[agents.ada]\n{line}"));
        assert_eq!(found, format!("line 2, column 10: {wanted}"), "{line}");
    }
}

#[test]
fn a_unit_is_a_service_or_a_scope_and_that_of_all_agents_names_the_agent() {
    let config = parse(
        "[broker]\nagent_unit = \"hive@{name}.service\"\n[agents.ada]\nunit = \"container-a\\\\x2d1.scope\"\n",
    );
    let config = config.expect("valid");
    assert_eq!(config.broker.agent_unit.as_deref(), Some("hive@{name}.service"));
    assert_eq!(agent(&config, "ada").unit.as_deref(), Some(r"container-a\x2d1.scope"));
    for bad in [
        "hive@ada",
        "hive@.service",
        "@ada.service",
        ".service",
        "a b.service",
        "a/b.service",
        "ada.slice",
    ] {
        let found = message(&format!("[agents.ada]\nunit = \"{bad}\""));
        let wanted = format!(
            "line 2, column 8: `{bad}` is no service or scope of systemd, as hive@ada.service"
        );
        assert_eq!(found, wanted);
    }
    for bad in ["hive@ada.service", "{name}{name}.service", "{name}", "hive@{name}"] {
        let found = message(&format!("[broker]\nagent_unit = \"{bad}\""));
        assert!(
            found.starts_with(&format!("line 2, column 14: `{bad}` is no service or scope")),
            "{found}"
        );
    }
}
