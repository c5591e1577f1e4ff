//! The settings of a file and a command line.

use clap::Parser as _;

use super::*;
use crate::cli::Cli;

fn settings(file: &Path, text: &str, args: &[&str]) -> Settings {
    std::fs::write(file, text).expect("a file");
    let file = file.display().to_string();
    let args = ["hived", "--config", &file].into_iter().chain(args.iter().copied());
    load(&Cli::try_parse_from(args).expect("a good command line")).expect("a good file")
}

fn name(text: &str) -> AgentName {
    AgentName::parse(text).expect("a good name")
}

#[test]
fn an_agents_directory_comes_from_the_file_or_is_the_default_of_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let base = dir.path().canonicalize().expect("a path");
    let text = "[agents.ada]\nstate_dir = \"work\"\n[agents.bob]\n";
    let plain = settings(&base.join("hive.toml"), text, &[]);
    assert_eq!(plain.state_dirs, BTreeMap::from([(name("ada"), base.join("work"))]));
    let up = settings(&base.join("hive.toml"), text, &["--agents-dir", "/h/agents"]);
    let directories =
        crate::engine::directories::Directories::new(up.state_dirs, up.agents_dir, None);
    assert_eq!(directories.state_dir(&name("ada")), Some(base.join("work")));
    // An agent that was created at run time has its directory in the same place.
    for agent in ["bob", "eve"] {
        assert_eq!(
            directories.state_dir(&name(agent)),
            Some(PathBuf::from("/h/agents").join(agent).join("state"))
        );
    }
}

#[test]
fn links_of_the_operator_are_resolved_and_those_that_an_agent_could_make_are_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let base = dir.path().canonicalize().expect("a path");
    std::fs::create_dir_all(base.join("disk/bob")).expect("a directory");
    std::os::unix::fs::symlink("disk", base.join("link")).expect("a link");
    std::os::unix::fs::symlink("bob", base.join("disk/ada")).expect("a link");
    let found = settings(&base.join("hive.toml"), "[agents.ada]\nstate_dir = \"link/ada\"\n", &[]);
    assert_eq!(found.state_dirs, BTreeMap::from([(name("ada"), base.join("disk/ada"))]));

    // A directory that ada can write may be named by a path other than her state directory.
    std::fs::create_dir_all(base.join("disk/own/b")).expect("a directory");
    std::os::unix::fs::symlink("b", base.join("disk/own/a")).expect("a link");
    for place in ["home_dir = \"disk/own\"", "writable = [\"disk/own\"]"] {
        let text = format!("[agents.ada]\nstate_dir = \"link/own/a/state\"\n{place}\n");
        let found = settings(&base.join("hive.toml"), &text, &[]);
        assert_eq!(
            found.state_dirs,
            BTreeMap::from([(name("ada"), base.join("disk/own/a/state"))]),
            "{place}"
        );
    }
    let in_agents_dir =
        format!("[agents.ada]\nstate_dir = \"{}/own/a/state\"\n", base.join("link").display());
    let disk = base.join("disk").display().to_string();
    let found = settings(&base.join("hive.toml"), &in_agents_dir, &["--agents-dir", &disk]);
    assert_eq!(found.state_dirs, BTreeMap::from([(name("ada"), base.join("link/own/a/state"))]));
}

#[test]
fn users_are_looked_up_and_come_after_the_numbers() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("hive.toml");
    let text = "[agents.ada]\nuids = [7]\nusers = [\"root\"]\n[agents.bob]\n";
    let ada = Peers { uids: vec![7, 0], unit: None };
    let wanted = BTreeMap::from([(name("ada"), ada), (name("bob"), Peers::default())]);
    assert_eq!(settings(&file, text, &[]).peers, wanted);
    std::fs::write(&file, "[agents.ada]\nusers = [\"no-such-user\"]\n").expect("a file");
    let cli = Cli::try_parse_from(["hived", "--config", &file.display().to_string()]);
    let error = load(&cli.expect("a good command line")).expect_err("no such user");
    let error = error.to_string();
    assert!(error.contains("`no-such-user` for the agent ada (`users`)"), "{error}");
}

#[test]
fn an_agents_own_bounds_are_of_its_policy() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = "[agents.ada]\nlimits = { sends_per_minute_max = 7, sender_stored_bytes_max = 8, questions_open_max = 9, \
                reminders_pending_max = 10, children_max = 11, schedules_max = 12 }\n[agents.bob]\n";
    let agents =
        settings(&dir.path().join("hive.toml"), text, &[]).agents.expect("agents of a file");
    let ada = Policy {
        sends_per_minute_max: Some(7),
        sender_stored_bytes_max: Some(8),
        questions_open_max: Some(9),
        reminders_pending_max: Some(10),
        children_max: Some(11),
        schedules_max: Some(12),
        ..Policy::default()
    };
    assert_eq!(
        (&agents[&name("ada")].policy, &agents[&name("bob")].policy),
        (&ada, &Policy::default())
    );
}

#[test]
fn the_command_line_overrides_how_many_reminders_may_be_pending() {
    let dir = tempfile::tempdir().expect("a directory");
    let (file, text) =
        (dir.path().join("hive.toml"), "[broker.limits]\nreminders_pending_max = 3\n");
    assert_eq!(settings(&file, text, &[]).limits.reminders_pending_max, 3);
    assert_eq!(
        settings(&file, text, &["--reminders-pending-max", "4"]).limits.reminders_pending_max,
        4
    );
    for bad in ["0", "-1", "many", "", "4294967296"] {
        let error = Cli::try_parse_from(["hived", &format!("--reminders-pending-max={bad}")])
            .expect_err(bad)
            .to_string();
        let wanted =
            "HIVE_REMIND_MAX_PENDING_PER_AGENT must be a whole number from 1 to 4294967295";
        assert!(bad.is_empty() || error.contains(wanted), "{bad}: {error}");
    }
}
