//! What does not end a service: a bad configuration file, and a command without memory.

use hive_tests::rig::soon;

use crate::bed::Bed;

const CONFIG: &str = "[claude]\ncommand = \"/usr/bin/scripted-claude\"\n[agents.ada]\n";
const FILE: &str = "/etc/hive/hive.toml";

/// Runs a command until what it prints has, or has not, this word.
async fn prints(bed: &Bed, words: &[&str], word: &str, wanted: bool) {
    soon(&format!("{words:?}: {word} {wanted}"), async {
        while bed.tries(words).await.1.contains(word) != wanted {}
    })
    .await;
}

#[tokio::test]
async fn a_reload_of_a_file_that_is_not_right_fails_or_is_in_the_status() {
    let Some(bed) = Bed::boot(CONFIG).await else { return };
    bed.run(&["systemctl", "start", "hived"]).await;
    let pid = bed.main_pid("hived").await;

    bed.write(FILE, &format!("{CONFIG}rol = \"a word that is no key\"\n"));
    let (reloaded, _) = bed.tries(&["systemctl", "reload", "hived"]).await;
    assert!(!reloaded, "the check of the file fails");
    let log = bed.run(&["journalctl", "-o", "cat", "-u", "hived"]).await;
    assert!(log.contains("unknown key `rol`"), "{log}");

    // The check of the file alone looks at no users.
    bed.write(FILE, &format!("{CONFIG}users = [\"not-there\"]\n"));
    bed.run(&["systemctl", "reload", "hived"]).await;
    prints(&bed, &["hivectl", "status"], "not-there", true).await;
    let (_, printed) = bed.tries(&["hivectl", "doctor"]).await;
    assert!(printed.contains("correct hive.toml"), "{printed}");

    bed.write(FILE, CONFIG);
    bed.run(&["systemctl", "reload", "hived"]).await;
    prints(&bed, &["hivectl", "status"], "not-there", false).await;
    assert_eq!(bed.main_pid("hived").await, pid, "one broker all the time");
    bed.end().await;
}

/// Only with version 2 of the control groups systemd notices that the kernel has killed a command,
/// so this looks at the setting.
#[tokio::test]
async fn a_command_that_is_killed_for_lack_of_memory_does_not_end_its_unit() {
    let Some(bed) = Bed::boot(CONFIG).await else { return };
    for unit in ["hived", "hive@ada"] {
        assert_eq!(bed.property(unit, "OOMPolicy").await, "continue");
    }
    bed.end().await;
}
