//! The script in claude's place.
//!
//! Invariant: it does no harm, however badly the confinement fails. Checks that only read run
//! everywhere. Checks that act run only where the script finds itself in a process table of its
//! own, and only on the hive's own directory. No process is ever signalled but with signal 0.

use std::path::Path;

/// Names and commands. The name is noted if the command succeeds.
///
/// `$R` is the hive's directory, `$ME` the agent, `$PEER` the other one, `$CTL` hivectl, `$HIVE`
/// hive. Each command has a shell and a time limit of its own.
type Attempts = &'static [(&'static str, &'static str)];

/// Read-only attempts, and those that an agent needs for its work.
const LOOK: Attempts = &[
    ("write-own-state", "echo x > own && test -s $R/agents/$ME/state/own"),
    ("write-own-home", "echo x > $R/agents/$ME/home/own"),
    ("ask-own-socket", "$CTL --socket $R/run/agents/$ME/hive.sock agents"),
    (
        "wake-own-socket",
        "$HIVE wake --socket $R/run/agents/$ME/hive.sock --from probe --body 'by the probe'",
    ),
    ("ask-operator-socket", "$CTL --socket $R/run/hived.sock agents"),
    ("ask-peer-socket", "$CTL --socket $R/run/agents/$PEER/hive.sock agents"),
    ("see-sockets", "ls $R/run/hived.sock $R/run/agents/$PEER/hive.sock"),
    ("list-peer-state", "ls $R/agents/$PEER/state"),
    ("list-peer-home", "ls $R/agents/$PEER/home"),
    ("see-peer", "ls $R/agents | grep -qx $PEER"),
    ("read-database", "cat $R/state/hive.db"),
    ("read-turn-lines", "cat $R/state/turn-events.db"),
    ("list-database", "ls $R/state | grep -q ."),
    ("read-log", "cat $R/log/hived.log"),
    ("list-logs", "ls $R/log | grep -q ."),
    ("see-broker-process", r"cat /proc/[0-9]*/cmdline | tr '\0' ' ' | grep -q 'hive[d] --config'"),
    ("see-peer-process", r"cat /proc/[0-9]*/environ | tr '\0' '\n' | grep -qx HIVE_LABEL=$PEER"),
    ("database-by-proc", "cat /proc/[0-9]*/root$R/state/hive.db | grep -q ."),
    ("socket-by-proc", "ls /proc/[0-9]*/root$R/run/hived.sock | grep -q ."),
    ("database-by-fd", "ls -l /proc/[0-9]*/fd | grep -q hive.db"),
];

/// Attempts that would act, were they not confined.
const ACT: Attempts = &[
    ("send-as-operator", "$CTL --socket $R/run/hived.sock send $PEER forged"),
    ("wake-peer", "$HIVE wake --socket $R/run/agents/$PEER/hive.sock --from probe --body forged"),
    ("operate-own-socket", "$CTL --socket $R/run/agents/$ME/hive.sock send $PEER forged"),
    ("status-on-own-socket", "$CTL --socket $R/run/agents/$ME/hive.sock status"),
    ("drain-on-own-socket", "$CTL --socket $R/run/agents/$ME/hive.sock drain"),
    ("unmount", "umount $R/state || umount -l $R/state || umount -l $R/agents"),
    ("unmount-in-namespace", "unshare --user --map-root-user --mount umount $R/state"),
    (
        "move-in-namespace",
        "unshare --user --map-root-user --mount sh -c 'mount --move $R/state /mnt && ls $R/state/hive.db'",
    ),
    (
        "bind-in-namespace",
        "unshare --user --map-root-user --mount sh -c 'mount --bind / /mnt && cat /mnt$R/state/hive.db'",
    ),
    (
        "rebind-in-namespace",
        "unshare --user --map-root-user --mount sh -c 'mount --rbind / /mnt && cat /mnt$R/state/hive.db'",
    ),
    ("enter-first-namespace", "nsenter --target 1 --mount cat $R/state/hive.db"),
    (
        "another-proc",
        r#"unshare --user --map-root-user --mount --pid --fork sh -c "mount -t proc proc /proc && cat /proc/[0-9]*/cmdline" | tr '\0' ' ' | grep -q 'hive[d] --config'"#,
    ),
    ("write-configuration", "echo >> $R/hive.toml"),
    (
        "replace-configuration",
        "cp $R/hive.toml $R/hive.toml.new && mv $R/hive.toml.new $R/hive.toml",
    ),
    ("remove-configuration", "rm $R/hive.toml || mv $R/hive.toml $R/hive.toml.old"),
    ("make-device", "mknod disk b 7 0 && head -c 1 disk"),
    // If this succeeds, it is in a directory that only the script sees; the test checks from
    // outside.
    (
        "plant",
        "mkdir -p $R/agents/$PEER/state; echo x > $R/agents/$PEER/state/planted; echo x > $R/state/planted; false",
    ),
    (
        "replace-peer-socket",
        "mkdir -p $R/run/agents/$PEER; ln -s $R/run/agents/$ME/hive.sock $R/run/agents/$PEER/hive.sock; false",
    ),
];

/// The script for a hive in `root`.
pub(crate) fn script(root: &Path) -> String {
    let root = root.display();
    let (scripted, ctl, hive) = (
        format!("{root}/bin/scripted-claude"),
        format!("{root}/bin/hivectl"),
        format!("{root}/bin/hive"),
    );
    let mut script = format!(
        "#!/bin/sh\n# Only a turn is probed from.\ncase $1 in --version | auth) exec {scripted} \"$@\" ;; esac\nR={root} CTL={ctl} HIVE={hive}\n\
         case $PWD in */ada/*) ME=ada PEER=bob ;; *) ME=bob PEER=ada ;; esac\nexport R CTL HIVE ME PEER\n\
         # The turns that its own wakes bring need no second look.\n[ -e could ] && exec {scripted} \"$@\"\n\
         try() {{\n  if timeout 20 sh -c \"$2\" > try.out 2> try.err < /dev/null; then echo \"$1\" >> could.part; fi\n  \
         {{ echo \"== $1\"; tail -n 3 try.out try.err; }} >> could.log 2>&1\n}}\n"
    );
    script.push_str(&lines(LOOK));
    script.push_str("if [ \"$(cat /proc/1/comm)\" = bwrap ]; then\necho apart >> could.part\n");
    script.push_str(&lines(ACT));
    script.push_str(&format!(
        "fi\necho '~done' >> could.part\nmv could.part could\nexec {scripted} \"$@\"\n"
    ));
    script
}

fn lines(attempts: Attempts) -> String {
    attempts
        .iter()
        .map(|(name, command)| format!("try {name} '{}'\n", command.replace('\'', r"'\''")))
        .collect()
}
