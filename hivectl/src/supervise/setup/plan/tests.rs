//! Plans of small configurations, with what an agent may have left in their directories.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

fn plan(dir: &Path, text: &str) -> Result<Plan, UpError> {
    let file = dir.join("hive.toml");
    std::fs::write(&file, text).expect("a file");
    Plan::make(&file, &dir.join("h"))
}

#[test]
fn paths_default_to_the_directory_of_the_hive() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("a path");
    let plan =
        plan(dir.path(), "[agents.ada]\n[agents.bob]\nparent = \"ada\"\nhome_dir = \"bobs\"\n")
            .expect("a plan");
    assert_eq!(plan.state_dir, root.join("h/state"));
    assert_eq!(plan.operator_socket(), root.join("h/run/hived.sock"));
    assert_eq!(plan.agents[0].socket(), root.join("h/run/agents/ada/hive.sock"));
    assert_eq!(plan.agents[0].home_dir, root.join("h/agents/ada/home"));
    assert_eq!(plan.agents[1].home_dir, root.join("bobs"));
    let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!(
        [mode(&plan.base), mode(&plan.agents[0].home_dir), mode(&plan.runtime_dir)],
        [0o700; 3]
    );
    assert!(!plan.agents[0].state_dir.join("CLAUDE.md").exists());
}

#[test]
fn a_socket_path_that_linux_cannot_address_is_refused_up_front() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = format!("[agents.{}]", "a".repeat(60));
    let deep = dir.path().join("d".repeat(30));
    std::fs::create_dir(&deep).expect("a directory");
    let error = plan(&deep, &text).expect_err("too long");
    assert!(matches!(error, UpError::SocketTooLong { .. }), "{error}");
    assert_eq!(crate::error::Failure::from(error).exit(), crate::exit::Exit::Usage);

    // The limit also applies to the socket of the shell tools, which is in the agent's home.
    let text = format!("[agents.ada]\nhome_dir = \"{}\"", "h".repeat(100));
    let error = plan(dir.path(), &text).expect_err("too long");
    assert!(
        matches!(&error, UpError::SocketTooLong { path } if path.ends_with(".hive/tasks.sock")),
        "{error}"
    );
}

#[test]
fn agents_do_not_share_directories_with_each_other_or_the_broker() {
    let dir = tempfile::tempdir().expect("a directory");
    for text in [
        "[agents.ada]\nhome_dir = \"x\"\n[agents.bob]\nhome_dir = \"x\"",
        "[agents.ada]\nhome_dir = \"x\"\n[agents.bob]\nstate_dir = \"x/y\"",
        "[broker]\nstate_dir = \"x/db\"\n[agents.ada]\nhome_dir = \"x\"",
        "[agents.ada]\nhome_dir = \"h/agents\"",
        "[agents.ada]\nstate_dir = \"h/agents/ada\"",
        "[agents.ada]\nstate_dir = \"h/agents/ada/tmp/x\"",
        "[agents.ada]\nstate_dir = \"h/agents/ada/work\"",
        "[agents.ada]\nstate_dir = \"h/agents/ada/home/work\"",
        "[agents.ada]\nstate_dir = \"h/agents/bob/state\"\n[agents.bob]\nstate_dir = \"y\"",
        "[agents.ada]\nhome_dir = \"h/trial/home\"",
    ] {
        assert!(matches!(plan(dir.path(), text), Err(UpError::Shared { .. })), "{text}");
    }
    for text in ["home_dir = \"z\"\nstate_dir = \"z/work\"", "home_dir = \"h/agents/ada/home\""] {
        assert!(plan(dir.path(), &format!("[agents.ada]\n{text}")).is_ok(), "{text}");
    }
}

#[test]
fn what_an_agent_has_left_in_its_directories_concerns_its_own_start_only() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("a path");
    let text = "[agents.ada]\nhome_dir = \"own\"\nstate_dir = \"own/a/work\"\n[agents.bob]\n[agents.eve]\n";
    std::fs::create_dir_all(root.join("secret/work")).expect("a directory");
    std::fs::create_dir_all(root.join("own")).expect("a directory");
    std::fs::create_dir_all(root.join("h/agents/bob")).expect("a directory");
    symlink(root.join("secret"), root.join("own/a")).expect("a link");
    std::fs::write(root.join("h/agents/bob/home"), "no directory").expect("a file");
    let made = plan(&root, text).expect("a plan");
    let name = |name: &str| AgentName::parse(name).expect("a name");
    let (ada, bob) = (made.agent(&name("ada")), made.agent(&name("bob")));
    assert!(matches!(ada, Err(UpError::Directory { source: WalkError::Link(_), .. })));
    assert!(matches!(bob, Err(UpError::Directory { source: WalkError::Absent { .. }, .. })));
    assert!(made.agent(&name("eve")).is_ok());
    assert_eq!(made.agents[0].state_dir, root.join("own/a/work"));
    assert!(!made.hidden_from(&made.agents[2]).contains(&made.agents[0].home_dir.as_path()));
    // The same plan has ada after her link is removed.
    std::fs::remove_file(root.join("own/a")).expect("a link");
    assert!(made.agent(&name("ada")).is_ok());
    // A cause that only the operator can have is an error of the configuration.
    std::fs::write(root.join("file"), "").expect("a file");
    let error = plan(&root, "[agents.ada]\nhome_dir = \"file/home\"\n").expect_err("refused");
    assert!(matches!(error, UpError::Directory { .. }), "{error}");
}

#[test]
fn a_link_of_an_agent_does_not_make_links_of_the_operator_suspect() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("a path");
    std::fs::create_dir(root.join("own")).expect("a directory");
    symlink(&root, root.join("own/work")).expect("a link");
    symlink("hive.toml", root.join("link.toml")).expect("a link");
    std::fs::write(
        root.join("hive.toml"),
        "[agents.ada]\nstate_dir = \"own/work\"\nhome_dir = \"own\"\n",
    )
    .expect("a file");
    let made = Plan::make(&root.join("link.toml"), &root.join("h")).expect("a plan");
    assert!(
        made.agents_write.contains(&root.join("own/x"))
            && !made.agents_write.contains(&root.join("x"))
    );
    // A path of the operator's that leads there is shorter than that of the directory which the
    // agent can write in.
    std::fs::create_dir_all(root.join("deep/own")).expect("a directory");
    std::fs::create_dir(root.join("other")).expect("a directory");
    symlink(root.join("other"), root.join("deep/own/work")).expect("a link");
    symlink("deep/own/work", root.join("short")).expect("a link");
    let text = "[agents.ada]\nstate_dir = \"short\"\nhome_dir = \"deep/own\"\n";
    let made = plan(&root, text).expect("a plan");
    assert!(
        ["deep/own/x", "other/x"]
            .into_iter()
            .all(|path| made.agents_write.contains(&root.join(path)))
    );
}

#[test]
fn a_directory_that_is_written_no_more_is_not_trusted_by_a_changed_configuration() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("a path");
    std::fs::create_dir(root.join("project")).expect("a directory");
    let old = plan(&root, "[agents.ada]\nwritable = [\"project\"]\n").expect("a plan");
    let new = plan(&root, "[agents.ada]\n").expect("a plan");
    assert!(!new.agents_write.contains(&root.join("project/prompt.md")));
    let changed = new.keeping_dirs_of(&old, std::iter::empty());
    assert!(changed.agents_write.contains(&root.join("project/prompt.md")));
}
