//! Commands for a second terminal: only lines that work unchanged.

use std::path::{Path, PathBuf};

use crate::connect;
use crate::output::note;
use crate::supervise::files::display_path;
use crate::supervise::setup::binaries::on_path;
use crate::supervise::setup::plan::Plan;

pub(crate) fn print(plan: &Plan) {
    let program = program();
    let here = std::env::current_dir().unwrap_or_default();
    let command = command(&program, &plan.operator_socket(), &here);
    note(&format!(
        "the hive is up; its files are in {}, its logs in {}",
        display_path(&plan.base),
        display_path(&plan.log_dir)
    ));
    note("in a second terminal, in this directory:");
    if let Some(agent) = plan.agents.iter().find(|agent| agent.config.parent.is_none()) {
        note(&format!("    {command} send {} \"hello\"", agent.name));
    }
    note(&format!("    {command} inbox --follow"));
    note(&format!("    {command} topology"));
    note("Ctrl-C ends it.");
}

/// Returns how this program is called from the present directory.
fn program() -> String {
    let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("hivectl"));
    let known = on_path("hivectl").and_then(|path| path.canonicalize().ok());
    if known.is_some() && known == own.canonicalize().ok() {
        return "hivectl".to_owned();
    }
    let relative = display_path(&own);
    if relative.contains('/') { relative } else { format!("./{relative}") }
}

/// Returns the program, with its socket unless it finds that by itself.
fn command(program: &str, socket: &Path, here: &Path) -> String {
    let found = here.join(connect::socket(None, None, here));
    if found.canonicalize().is_ok_and(|found| found == socket) {
        return quoted(program);
    }
    format!("{} --socket {}", quoted(program), quoted(&socket.to_string_lossy()))
}

/// Returns a word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_named_only_where_it_would_not_be_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let here = dir.path().canonicalize().expect("a path");
        let socket = here.join(".hive/run/hived.sock");
        std::fs::create_dir_all(here.join(".hive/run")).expect("a directory");
        std::fs::write(&socket, "").expect("a file");
        assert_eq!(command("hivectl", &socket, &here), "hivectl");
        assert_eq!(
            command("hivectl", Path::new("/r/hived.sock"), &here),
            "hivectl --socket /r/hived.sock"
        );
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
        assert_eq!(quoted("./target/debug/hivectl"), "./target/debug/hivectl");
    }
}
