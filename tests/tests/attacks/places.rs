//! Paths: names and files that would make the broker write elsewhere, and files that another user
//! could read.
//!
//! What it is not: the units of spilling, which `broker/src/spill.rs` has. Invariant: the broker
//! writes only below its own directories and in an agent's `reminders`. Its files are private
//! except for what others need, whatever files exist there and for any umask.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use hive_core::reason::Reason;
use hive_proto::v1::create_reminder_request::Due;
use hive_proto::v1::*;
use hive_tests::binary;
use hive_tests::rig::{Process, Rig, fresh_id, host, request, run};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::process::Command;
use tonic::transport::Channel;

use crate::ask::{call, did, done, refused};

/// A uid that exists on no host.
const NOBODY_WE_KNOW: u32 = 48_213;
/// Ids that a reminder of a fresh hive may have.
const IDS: std::ops::Range<u64> = 1..200;

/// Returns everything below a directory, without following links: path and kind.
fn listing(dir: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let kind = entry.file_type().expect("a kind");
            found.insert(format!("{} {kind:?}", entry.path().display()));
            if kind.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found
}

/// Returns invalid names.
fn no_names() -> Vec<String> {
    let mut names: Vec<String> = [
        "..",
        ".",
        "a/b",
        "../bob",
        "bob/..",
        "./bob",
        "/bob",
        "~bob",
        ".hidden",
        "-rf",
        "--help",
        "bob\0",
        "bob\n",
        "bob ",
        " bob",
        "b\u{2f}c",
        "Bob",
        "BOB",
        "b.ob",
        "b:ob",
        "b\\ob",
        "b*b",
        "$HOME",
        "b\u{1b}[2J",
        "%2e%2e",
        "..%2f",
        // Similar characters: Cyrillic, full width, mathematical, with joiners and
        // marks.
        "b\u{43e}b",
        "\u{ff42}\u{ff4f}\u{ff42}",
        "\u{1d41b}ob",
        "bo\u{200d}b",
        "bob\u{200b}",
        "bob\u{301}",
        "\u{202e}bob",
        "bo\u{ad}b",
        "operator",
        "system",
        "self",
        "external",
        "parent",
        "everyone",
        "reminder",
        "hive",
        "*",
        "<parent>",
    ]
    .map(str::to_owned)
    .to_vec();
    names.extend(["b".repeat(64), "b".repeat(300), "\u{1f41d}".repeat(75)]);
    names
}

#[tokio::test]
async fn a_name_that_is_a_path_names_no_agent_and_leads_nowhere() {
    let mut rig = Rig::new("[agents.ada]\n[agents.bob]\n");
    rig.start_broker().await;
    let (ada, operator) = (rig.agent("ada").await.channel(), rig.operator().await.channel());
    // Files in the database's own directory are the broker's to write.
    let files = |rig: &Rig| {
        listing(rig.dir()).into_iter().filter(|path| !path.contains("/state/")).collect::<Vec<_>>()
    };
    let (before, made) = (rig.on_disk(), files(&rig));
    let invalid = [Reason::FieldInvalid];
    for name in no_names() {
        let what = format!("{name:?}");
        let request_id = fresh_id;
        let agent = || name.clone();
        let refusal =
            refused(&what, call(&operator, &request::create_agent(&name)).await, &invalid);
        assert!(
            refusal.message().len() < 500,
            "{what}: {} bytes of refusal",
            refusal.message().len()
        );
        let create = CreateAgentRequest { parent: agent(), ..request::create_agent("eve") };
        refused(&what, call(&operator, &create).await, &invalid);
        refused(&what, call(&operator, &request::retire_agent(&name)).await, &invalid);
        let parent = SetParentRequest {
            request_id: request_id(),
            name: "bob".to_owned(),
            parent: agent(),
            etag: String::new(),
        };
        refused(&what, call(&operator, &parent).await, &invalid);
        let tell = SendCommandRequest { request_id: request_id(), agent: agent(), command: None };
        refused(&what, call(&operator, &tell).await, &invalid);
        for channel in [&ada, &operator] {
            refused(&what, call(channel, &GetAgentRequest { name: agent() }).await, &invalid);
            let recipient = Some(Recipient { to: Some(recipient::To::Agent(agent())) });
            let send = SendMessageRequest { to: recipient.clone(), ..request::send("", "x") };
            refused(&what, call(channel, &send).await, &invalid);
            let ask = AskQuestionRequest { to: recipient, ..request::ask("", "x") };
            refused(&what, call(channel, &ask).await, &invalid);
        }
        if name != "operator" {
            let key = Some(DeliveryKey { agent: agent(), message_id: 1 });
            let redrive = RedriveDeliveryRequest { request_id: request_id(), key };
            refused(&what, call(&operator, &redrive).await, &invalid);
        }
        // In the file: reported with its line, and it has no effect.
        let quoted: String = name.chars().map(|c| format!("\\U{:08X}", u32::from(c))).collect();
        std::fs::write(rig.path("other.toml"), format!("[agents.\"{quoted}\"]\n")).expect("a file");
        let mut check = Process::command(&binary::find("hivectl", "hivectl"));
        check.args(["config", "check"]).arg(rig.path("other.toml"));
        let said = run(check).await;
        std::fs::remove_file(rig.path("other.toml")).expect("it is ours");
        assert_ne!(said.code, 0, "{what}: {said:?}");
        let told = format!("{}{}", said.stdout, said.stderr);
        assert!(told.contains("line 1") && !told.contains('\u{1b}'), "{what}: {said:?}");
    }
    rig.unchanged(&before, "a name that is none");
    assert_eq!(files(&rig), made, "no file and no directory came of it");
}

/// Returns the longest body that one reminder can have; it is spilled.
fn long(of: &str) -> String {
    format!("{of}: {}", "remember this, ".repeat(400))
}

async fn remind(channel: &Channel, body: &str) -> u64 {
    let due = Some(Due::Delay(prost_types::Duration { seconds: 1, nanos: 0 }));
    let request = CreateReminderRequest { request_id: fresh_id(), body: body.to_owned(), due };
    done::<CreateReminderResponse>(channel, &request).await.reminder.expect("set").id
}

#[tokio::test]
async fn a_file_in_the_way_of_a_spill_is_neither_followed_nor_awaited() {
    /// An agent's change to its directory, and whether a file can be written then.
    type Deed = (&'static str, fn(&Path, &Path), bool);
    let deeds: [Deed; 9] = [
        ("none", |_, _| {}, true),
        (
            "links",
            |state, victim| {
                planted(state, |path| symlink(victim.join("precious"), path).expect("a link"));
            },
            true,
        ),
        (
            "dangling",
            |state, victim| {
                planted(state, |path| symlink(victim.join("new"), path).expect("a link"));
            },
            true,
        ),
        (
            "names",
            |state, victim| {
                planted(state, |path| {
                    std::fs::hard_link(victim.join("precious"), path).expect("a name");
                });
            },
            true,
        ),
        ("pipes", |state, _| planted(state, pipe), true),
        (
            "folders",
            |state, _| planted(state, |path| std::fs::create_dir(path).expect("a folder")),
            false,
        ),
        (
            "folderlink",
            |state, victim| symlink(victim, state.join("reminders")).expect("a link"),
            false,
        ),
        ("folderpipe", |state, _| pipe(&state.join("reminders")), false),
        (
            "statelink",
            |state, victim| {
                std::fs::remove_dir(state).expect("it is empty");
                symlink(victim, state).expect("a link");
            },
            false,
        ),
    ];
    let agents: String = deeds
        .iter()
        .map(|(name, _, _)| format!("[agents.{name}]\nstate_dir = \"{name}/state\"\n"))
        .collect();
    let mut rig = Rig::new(&agents);
    let victim = rig.path("victim");
    std::fs::create_dir(&victim).expect("a directory");
    std::fs::write(victim.join("precious"), "precious").expect("a file");
    for (name, deed, _) in &deeds {
        let state = rig.path(name).join("state");
        std::fs::create_dir_all(&state).expect("a directory");
        deed(&state, &victim);
    }
    let of_victim = listing(&victim);
    rig.start_broker().await;
    let mut reminders = BTreeMap::new();
    for (name, _, _) in &deeds {
        reminders.insert(*name, remind(&rig.agent(name).await.channel(), &long(name)).await);
    }
    let mut watch = rig.watch().await;
    for (name, _, written) in &deeds {
        let fired = watch.kind(name, EventKind::ReminderFired).await;
        assert_eq!(fired.reminder_id, reminders[name]);
        let mail = rig.operator().await.deliveries(name, &[]).await;
        let body = &mail[0].message.as_ref().expect("a message").body;
        let file = format!("reminders/{}.md", reminders[name]);
        assert_eq!(body.contains(&file), *written, "{name}: {body}");
        assert_eq!(
            body.contains(&long(name)),
            !*written,
            "{name}: what is in no file is in the message"
        );
        if *written {
            let path = rig.path(name).join("state").join(file);
            let found = path.symlink_metadata().expect("it is there");
            assert!(found.is_file() && found.nlink() == 1, "{name}: a file of its own");
            assert_eq!(std::fs::read_to_string(&path).expect("a file"), long(name));
            assert_eq!(found.mode() & 0o7777, 0o644, "{name}");
        }
    }
    assert_eq!(listing(&victim), of_victim, "nothing was made elsewhere");
    assert_eq!(std::fs::read_to_string(victim.join("precious")).expect("a file"), "precious");
    rig.agent("none").await.send("operator", "the broker serves on").await;
}

/// Plants a file under every name that the file of a reminder may get.
fn planted(state: &Path, plant: impl Fn(&Path)) {
    let folder = state.join("reminders");
    std::fs::create_dir(&folder).expect("a folder");
    for id in IDS {
        plant(&folder.join(format!("{id}.md")));
        plant(&folder.join(format!(".{id}.new")));
    }
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
}

#[tokio::test]
async fn a_socket_directory_that_is_a_link_is_not_used() {
    let mut rig = Rig::new("[agents.ada]\n[agents.bob]\n[agents.cyd]\n");
    for folder in ["run/agents/bob", "elsewhere"] {
        std::fs::create_dir_all(rig.path(folder)).expect("a directory");
    }
    std::fs::set_permissions(rig.path("elsewhere"), Permissions::from_mode(0o751))
        .expect("it is ours");
    symlink(rig.path("run/agents/bob"), rig.path("run/agents/ada")).expect("a link");
    symlink(rig.path("elsewhere"), rig.path("run/agents/cyd")).expect("a link");
    rig.start_broker().await;
    assert!(
        rig.broker()
            .log()
            .contains("run/agents/ada is there and is no directory of its own; move it away"),
        "{}",
        rig.logs()
    );
    // Bob's socket is bob's, and the link leads to nothing of cyd's.
    let who: GetSelfResponse = done(&rig.agent("bob").await.channel(), &GetSelfRequest {}).await;
    assert_eq!(who.agent.expect("an agent").name, "bob");
    assert_eq!(listing(&rig.path("elsewhere")), BTreeSet::new());
    assert_eq!(mode(&rig.path("elsewhere")), 0o751, "its mode is as it was");
    rig.operator().await.send("ada", "mail is kept for whoever has no socket").await;
}

#[tokio::test]
async fn an_agents_own_user_cannot_swap_sockets() {
    if !host::allows("being another user (tests do not run as root)", host::is_root()) {
        return;
    }
    let mut rig = Rig::new(&format!("[agents.ada]\nuids = [{NOBODY_WE_KNOW}]\n[agents.bob]\n"));
    rig.start_broker().await;
    std::fs::set_permissions(rig.dir(), Permissions::from_mode(0o711)).expect("it is ours");
    let (run, before) = (rig.path("run"), listing(&rig.path("run")));
    let own = rig.agent_socket("ada");
    let could: Vec<String> = host::as_user(NOBODY_WE_KNOW, move || async move {
        let ada = run.join("agents/ada");
        let attempts: [(&str, std::io::Result<()>); 9] = [
            ("remove its socket", std::fs::remove_file(&own)),
            ("move its socket", std::fs::rename(&own, ada.join("old"))),
            ("make a file beside it", std::fs::write(ada.join("x"), "x")),
            ("move its directory", std::fs::rename(&ada, run.join("agents/old"))),
            ("link beside it", symlink("/", run.join("agents/x"))),
            ("make a directory", std::fs::create_dir(run.join("agents/eve"))),
            ("open it wider", std::fs::set_permissions(&own, Permissions::from_mode(0o777))),
            ("read another's", std::fs::read_dir(run.join("agents/bob")).map(drop)),
            ("remove the operator's", std::fs::remove_file(run.join("hived.sock"))),
        ];
        attempts
            .into_iter()
            .filter(|(_, done)| done.is_ok())
            .map(|(what, _)| what.to_owned())
            .collect()
    });
    assert_eq!(could, [""; 0], "what an agent's user could do to sockets");
    assert_eq!(listing(&rig.path("run")), before);
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().expect("it is there").mode() & 0o7777
}

/// Returns the same command under another umask.
fn under(umask: &str, command: &Command) -> Command {
    let command = command.as_std();
    let mut shell = Process::command("sh".as_ref());
    shell
        .arg("-c")
        .arg(format!("umask {umask}; exec \"$0\" \"$@\""))
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    shell
}

#[tokio::test]
async fn files_are_private_whatever_the_umask() {
    for umask in ["000", "022", "077"] {
        let mut rig = Rig::new(&format!(
            "[agents.ada]\nstate_dir = \"ada\"\n[agents.bob]\nuids = [{NOBODY_WE_KNOW}, 0]\n"
        ));
        std::fs::create_dir(rig.path("ada")).expect("ada's directory");
        let broker = under(umask, &rig.broker_command());
        rig.start_broker_by(broker).await;
        let ada = rig.agent("ada").await.channel();
        let send = request::send("bob", "a word to find");
        did(&ada, &send).await;
        // The first search makes the index.
        let search = SearchMessagesRequest { query: "word".to_owned(), ..Default::default() };
        did(&ada, &search).await;
        let reminder = remind(&ada, &long("ada")).await;
        rig.watch().await.kind("ada", EventKind::ReminderFired).await;
        let mut backup = Process::command(&binary::find("hivectl", "hivectl"));
        backup.arg("--socket").arg(rig.operator_socket()).arg("backup").arg(rig.path("copy.db"));
        let said = run(under(umask, &backup)).await;
        assert_eq!(said.code, 0, "{said:?}");
        assert_eq!(mode(&rig.path("copy.db")), 0o600, "umask {umask}: a backup holds all mail");

        assert_eq!(mode(&rig.path("state")), 0o700, "umask {umask}");
        let names = listing(&rig.path("state"));
        for name in ["hive.db", "hive.db-wal", "hive.db-shm", "hived.lock", "search.sqlite3"] {
            assert!(
                names.iter().any(|found| found.contains(&format!("/{name} "))),
                "no {name} in {names:?}"
            );
        }
        for path in below(&rig.path("state")) {
            assert_eq!(mode(&path), 0o600, "umask {umask}: {}", path.display());
        }
        // Other users need a directory to traverse, and the socket meant for them. That has an
        // access control list, whose mask is shown in place of the group's mode.
        assert_eq!(mode(&rig.operator_socket()), 0o600, "umask {umask}");
        assert_eq!(
            (mode(&rig.path("run/agents/ada")), mode(&rig.agent_socket("ada"))),
            (0o700, 0o600),
            "umask {umask}"
        );
        assert_eq!(
            (mode(&rig.path("run/agents/bob")), mode(&rig.agent_socket("bob"))),
            (0o755, 0o660),
            "umask {umask}"
        );
        assert_eq!(
            (mode(&rig.path("run")), mode(&rig.path("run/agents"))),
            (0o755, 0o755),
            "umask {umask}"
        );
        assert_eq!(
            mode(&rig.path("ada/reminders")) & 0o022,
            0,
            "umask {umask}: it is written by its owner alone"
        );
        assert_eq!(
            mode(&rig.path(format!("ada/reminders/{reminder}.md"))) & !0o644,
            0,
            "umask {umask}"
        );
        let own = rustix::process::geteuid().as_raw();
        for path in below(rig.dir()) {
            assert_eq!(
                path.symlink_metadata().expect("it is there").uid(),
                own,
                "{}",
                path.display()
            );
        }
        assert!(
            below(&rig.path("run")).iter().all(|path| path
                .symlink_metadata()
                .is_ok_and(|found| found.file_type().is_socket()))
        );
        rig.stop_broker().await;
    }
}

/// Returns the files below a directory, without directories.
fn below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            files.extend(below(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files
}
