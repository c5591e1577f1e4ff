//! Starts of an agent's claude, by number and purpose: the cost of a hive.
//!
//! Invariant: a start is noted before claude does anything, with the number of its agent's claudes
//! that lived at that moment.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::{Rig, soon};
use crate::binary;
use crate::scripted::appear;

/// The beginning of each line; the arguments follow.
const OTHERS: &str = "others=";

impl Rig {
    /// A claude that notes each of its starts, and becomes the scripted one then. There is one for
    /// each agent.
    pub fn noting_claude(&self, agent: &str) -> PathBuf {
        let (program, notes) = (self.path(format!("{agent}.claude")), self.notes(agent));
        if program.exists() {
            return program;
        }
        let scripted = binary::find("hive-scripted", "scripted-claude");
        std::fs::write(&notes, b"").expect("a file");
        // The directory of a process that is dead and not yet reaped cannot be read.
        let script = format!(
            "#!/bin/sh\nn=0\nfor comm in /proc/[0-9]*/comm; do\n\
             read -r name 2>/dev/null <\"$comm\" && [ \"$name\" = scripted-claude ] || continue\n\
             [ \"$(readlink \"${{comm%comm}}cwd\")\" = \"$PWD\" ] && n=$((n + 1))\ndone\n\
             printf '%s\\n' \"{OTHERS}$n $*\" >>'{}'\nexec '{}' \"$@\"\n",
            notes.display(),
            scripted.display()
        );
        std::fs::write(&program, script).expect("a program");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))
            .expect("it can be run");
        program
    }

    /// The command lines of an agent's [`noting_claude`](Self::noting_claude), start by start.
    pub fn starts(&self, agent: &str) -> Vec<String> {
        let notes = std::fs::read_to_string(self.notes(agent)).unwrap_or_default();
        let line = |line: &str| {
            let alone = line.strip_prefix(OTHERS).and_then(|line| line.strip_prefix("0 "));
            alone
                .unwrap_or_else(|| {
                    panic!("a claude of {agent} was started beside another: {notes}")
                })
                .to_owned()
        };
        notes.lines().map(line).collect()
    }

    /// Returns the command lines of the starts for turns.
    pub fn turn_starts(&self, agent: &str) -> Vec<String> {
        self.starts(agent).into_iter().filter(|line| line.contains("--print")).collect()
    }

    /// Waits until an agent's [`noting_claude`](Self::noting_claude) was started so often with this
    /// on its command line.
    pub async fn started(&self, agent: &str, text: &str, times: usize) {
        let notes = self.notes(agent);
        let noted = appear::said(&notes, text, times);
        soon(&format!("claude of {agent} is started with `{text}` ({times})"), noted)
            .await
            .expect("the notes can be watched");
    }

    fn notes(&self, agent: &str) -> PathBuf {
        self.path(format!("{agent}.starts"))
    }
}
