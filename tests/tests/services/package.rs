//! The Debian package: from its installation to its removal, as an administrator sees it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hive_proto::v1::EventKind;
use hive_tests::binary;
use hive_tests::rig::{Watch, host};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::bed::Bed;
use crate::restarts::send;

const AGENTS: &str = "\n[claude]\ncommand = \"/usr/bin/scripted-claude\"\n\
    env = { SCRIPTED_CLAUDE_FILE = \"/etc/hive/script.json\" }\n[agents.ada]\n[agents.bob]\nparent = \"ada\"\n";
const ASKS: &str = r#"[{"when": "Please ask", "steps": [{"tool": "ask", "input": {"question": "May I?"}}, {"text": "Asked."}]}]"#;
/// The name and the value of the question that a purge asks.
const DELETE_MAIL: &str = "hive hive/delete-mail boolean";

const PURGE: [&str; 5] = ["env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "--purge", "hive"];

/// The directory of a package and of the one that follows it.
#[derive(Clone)]
struct Packages(PathBuf);

impl Packages {
    /// Makes them once of the built programs; `None` if this host cannot.
    fn get() -> Option<Self> {
        static MADE: OnceLock<Option<Packages>> = OnceLock::new();
        MADE.get_or_init(Self::make).clone()
    }

    fn make() -> Option<Self> {
        let builder = binary::workspace().join(".cache/cargo/bin/cargo-deb");
        if !host::allows("making a Debian package (with tests/setup.sh)", builder.exists()) {
            return None;
        }
        // It stays for the next run: a static has no end at which it could be removed.
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
        drop(std::fs::remove_dir_all(&dir));
        let shipped = dir.join("shipped");
        std::fs::create_dir_all(&shipped).expect("a directory");
        for (package, program) in [
            ("hive-broker", "hived"),
            ("hive-harness", "hive"),
            ("hive-mcp-bridge", "hive-mcp"),
            ("hivectl", "hivectl"),
        ] {
            strip(package, program, &shipped);
        }
        for revision in ["1", "2"] {
            let mut script = Command::new(binary::workspace().join("packaging/deb.sh"));
            script.arg(&shipped).arg(&dir).args(["--fast", "--deb-revision", revision]);
            succeeds(script.env("CARGO", env!("CARGO")));
        }
        Some(Self(dir))
    }

    /// Returns the file of a revision, as the host names it.
    fn file(&self, revision: u32) -> PathBuf {
        let found = std::fs::read_dir(&self.0).expect("a directory");
        let mut found = found.map(|entry| entry.expect("an entry").path());
        let part = format!("-{revision}_");
        found.find(|path| path.to_string_lossy().contains(&part)).expect("it was made")
    }

    /// Installs a revision, or upgrades to it.
    async fn install(&self, bed: &Bed, revision: u32) {
        let file = self.file(revision);
        let name = file.file_name().expect("a name").to_string_lossy();
        bed.run(&["dpkg", "--install", &format!("/packages/{name}")]).await;
    }
}

/// Makes a shipped program, as `make dist` does, from one that is built already.
pub(crate) fn strip(package: &str, program: &str, to: &Path) {
    let mut strip = Command::new("objcopy");
    succeeds(strip.arg("--strip-all").arg(binary::find(package, program)).arg(to.join(program)));
}

/// Runs a command to its end, and fails with its output if it fails.
pub(crate) fn succeeds(command: &mut Command) {
    let run = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let printed = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{command:?} failed:\n{printed}");
}

#[test]
fn lintian_finds_no_fault_in_the_package() {
    let Some(packages) = Packages::get() else { return };
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning"]).arg(packages.file(1));
    let run = lintian.output().expect("lintian runs");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.is_empty(), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_installed_used_upgraded_under_load_and_purged() {
    let Some(packages) = Packages::get() else { return };
    let Some(bed) = Bed::boot_bare(&packages.0).await else { return };
    packages.install(&bed, 1).await;
    let asked = bed.run(&["dpkg-query", "--show", "--showformat=${Conffiles}", "hive"]).await;
    assert_eq!(asked, "", "an upgrade asks about files that the administrator has edited");
    for unit in ["hived.service", "hived.socket"] {
        assert_eq!(bed.property(unit, "ActiveState").await, "active", "{unit}");
        assert_eq!(bed.property(unit, "UnitFileState").await, "enabled", "{unit}");
    }
    bed.run(&["useradd", "--groups", "hive-operators", "olga"]).await;
    let olga = ["runuser", "-u", "olga", "--", "hivectl"];
    let file = std::fs::read_to_string(bed.path("/etc/hive/hive.toml")).expect("a file");
    bed.write("/etc/hive/hive.toml", &format!("{file}{AGENTS}"));
    bed.run(&["systemctl", "reload", "hived"]).await;
    bed.run(&["systemctl", "enable", "--now", "hive@ada", "hive@bob"]).await;
    bed.write("/etc/hive/script.json", ASKS);
    let mut watch = Watch::new(bed.socket(None));
    bed.run(&[&olga[..], &["send", "ada", "Please ask me."]].concat()).await;
    let asked = watch.kind("ada", EventKind::QuestionAsked).await;
    let number = asked.question_id.to_string();
    bed.run(&[&olga[..], &["answer", &number, "Yes."]].concat()).await;
    let answered = watch.kind("ada", EventKind::QuestionAnswered).await;
    assert_eq!(answered.question_id, asked.question_id);

    // An upgrade restarts the broker, keeps the sockets, and fails no call of a client that
    // retries.
    let (broker, agent) = (bed.main_pid("hived").await, bed.main_pid("hive@ada").await);
    let (ended, socket) = (CancellationToken::new(), bed.socket(None));
    let mut sender = JoinSet::new();
    sender.spawn({
        let ended = ended.clone();
        async move {
            let mut sent = Vec::new();
            while !ended.is_cancelled() {
                let body = format!("during the upgrade {}", sent.len());
                send(&socket, "bob", &body).await;
                sent.push(body);
            }
            sent
        }
    });
    packages.install(&bed, 2).await;
    ended.cancel();
    let sent = sender.join_all().await.remove(0);
    assert_ne!(bed.main_pid("hived").await, broker, "the new broker runs");
    assert_eq!(bed.main_pid("hive@ada").await, agent, "no turn was ended");
    assert!(!sent.is_empty());
    let wanted: BTreeMap<_, _> = sent.into_iter().map(|body| (body, 1)).collect();
    let mut found = bodies(&bed).await;
    found.retain(|body, _| wanted.contains_key(body));
    assert_eq!(found, wanted);
    let config = std::fs::read_to_string(bed.path("/etc/hive/hive.toml")).expect("a file");
    assert!(config.contains("[agents.ada]"), "the administrator's file stays");

    bed.run(&["systemctl", "stop", "hive@ada", "hive@bob"]).await;
    let before = bodies(&bed).await;
    bed.run(&["hivectl", "backup", "/var/backups/hive.db"]).await;
    let backup = std::fs::read(bed.path("/var/backups/hive.db")).expect("a backup");

    // Removed and not purged, a hive comes back with its mail.
    bed.run(&["dpkg", "--remove", "hive"]).await;
    assert!(!bed.path("/usr/bin/hived").exists());
    assert_eq!(bed.property("hive@ada", "ActiveState").await, "inactive");
    packages.install(&bed, 2).await;
    assert_eq!(bodies(&bed).await, before);

    // Without an answer a purge deletes no mail.
    bed.run(&PURGE).await;
    assert!(bed.path("/var/lib/hive/hive.db").exists());
    assert!(!bed.path("/etc/hive/hive.toml").exists());
    packages.install(&bed, 2).await;
    answer_purge(&bed, "true").await;
    bed.run(&PURGE).await;
    for gone in [
        "/var/lib/hive",
        "/var/lib/hive-agents",
        "/var/lib/private/hive-agents",
        "/run/hive",
        "/etc/systemd/system/multi-user.target.wants/hive@ada.service",
    ] {
        assert!(!exists(&bed.path(gone)), "{gone}");
    }
    bed.end().await;

    // Another host goes on from the backup.
    let Some(bed) = Bed::boot_bare(&packages.0).await else { return };
    packages.install(&bed, 1).await;
    std::fs::write(bed.path("/var/backups/hive.db"), backup).expect("a file");
    let restore = ["hivectl", "restore", "/var/backups/hive.db"];
    let (restored, said) = bed.tries(&restore).await;
    assert!(!restored && said.contains("a program listens on /run/hive/hived.sock"), "{said}");
    // Without its broker the socket alone would start one.
    bed.run(&["systemctl", "stop", "hived.service"]).await;
    let (restored, said) = bed.tries(&restore).await;
    assert!(!restored && said.contains("a program listens on /run/hive/hived.sock"), "{said}");
    bed.run(&["systemctl", "stop", "hived.socket", "hived.service"]).await;
    let said = bed.run(&restore).await;
    assert!(said.contains("kept as /var/lib/hive/hive.replaced-1.db: 0 agents"), "{said}");
    bed.run(&["systemctl", "start", "hived"]).await;
    assert_eq!(bodies(&bed).await, before);
    bed.end().await;
}

/// Returns how many messages have each body.
async fn bodies(bed: &Bed) -> BTreeMap<String, u32> {
    let mut bodies = BTreeMap::new();
    for message in bed.client(None).await.messages().await {
        *bodies.entry(message.body).or_default() += 1;
    }
    bodies
}

/// Stores the administrator's answer to the question of a purge.
async fn answer_purge(bed: &Bed, answer: &str) {
    bed.write("/tmp/answer", &format!("{DELETE_MAIL} {answer}\n"));
    bed.run(&["debconf-set-selections", "/tmp/answer"]).await;
}

fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}
