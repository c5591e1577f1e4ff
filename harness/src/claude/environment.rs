//! The environment of claude, built from an allow-list.
//!
//! Invariant: no `HIVE_*` variable reaches claude, whose tools and children inherit everything.
//! Configuration cannot disable the handling that makes a peer's words inert.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use hive_core::config::OWN_PREFIX;

use crate::inherited::is_common;

/// Prefixes of variables of claude and its API that pass.
const PASSED_BEGINNINGS: [&str; 3] = ["ANTHROPIC_", "CLAUDE_", "AWS_"];
/// Variables of a claude that started this harness. With them the agent's claude would join that
/// session.
const DROPPED: [&str; 8] = [
    "CLAUDE_CODE_CHILD_NOTES_DIR",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_PROJECT_DIR",
];

/// The directories of claude.
#[derive(Clone, Copy, Debug)]
pub struct Home<'a> {
    pub dir: &'a Path,
    pub temporary: &'a Path,
    /// Whether the agent is isolated: claude's state is then below `.claude`, which shell tasks do
    /// not see.
    pub is_isolated: bool,
}

/// Returns the whole environment of one claude process.
pub fn build(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    further: &BTreeMap<String, String>,
    home: Home<'_>,
    max_retries: u32,
) -> BTreeMap<OsString, OsString> {
    let Home { dir, temporary, is_isolated } = home;
    let passes = |name: &OsString| passes(name) && !(is_isolated && name == "TMPDIR");
    let mut environment: BTreeMap<OsString, OsString> =
        inherited.into_iter().filter(|(name, _)| passes(name)).collect();
    let further = further.iter().filter(|(name, _)| !name.starts_with(OWN_PREFIX));
    environment.extend(further.map(|(name, value)| (name.into(), value.into())));
    let ours: [(&str, OsString); 5] = [
        ("HOME", dir.into()),
        ("CLAUDE_CODE_TMPDIR", temporary.into()),
        ("CLAUDE_CODE_MAX_RETRIES", max_retries.to_string().into()),
        // `@path` in a peer's words must attach nothing.
        ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1".into()),
        ("DISABLE_AUTOUPDATER", "1".into()),
    ];
    environment.extend(ours.map(|(name, value)| (name.into(), value)));
    let config_dir = dir.join(".claude");
    // An agent that was isolated before keeps its state in that place.
    if is_isolated || config_dir.join(".claude.json").is_file() {
        environment.insert("CLAUDE_CONFIG_DIR".into(), config_dir.into());
    }
    environment
}

fn passes(name: &OsString) -> bool {
    let Some(name) = name.to_str() else { return false };
    let is_listed = is_common(name)
        || name == "DISABLE_TELEMETRY"
        || PASSED_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    is_listed && !DROPPED.contains(&name)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn home() -> Home<'static> {
        Home { dir: Path::new("/h"), temporary: Path::new("/h/t"), is_isolated: false }
    }

    #[test]
    fn an_isolated_agent_has_its_state_below_claudes_directory_and_no_temporary_directory_of_the_operators()
     {
        let inherited = || {
            ["TMPDIR", "LOCALE_ARCHIVE", "XDG_RUNTIME_DIR", "CLAUDE_CONFIG_DIR"]
                .map(|name| (name.into(), "x".into()))
        };
        let isolated =
            build(inherited(), &BTreeMap::new(), Home { is_isolated: true, ..home() }, 2);
        assert_eq!(isolated[OsStr::new("CLAUDE_CONFIG_DIR")], "/h/.claude");
        assert!(
            isolated.contains_key(OsStr::new("LOCALE_ARCHIVE"))
                && !isolated.contains_key(OsStr::new("TMPDIR"))
        );
        let open = build(inherited(), &BTreeMap::new(), home(), 2);
        assert!(
            open.contains_key(OsStr::new("TMPDIR"))
                && !open.contains_key(OsStr::new("XDG_RUNTIME_DIR"))
        );
        assert_eq!(open[OsStr::new("CLAUDE_CONFIG_DIR")], "x");
        // A home of an agent that was isolated before.
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join(".claude")).expect("created");
        std::fs::write(dir.path().join(".claude/.claude.json"), "{}").expect("written");
        let later = build([], &BTreeMap::new(), Home { dir: dir.path(), ..home() }, 2);
        assert_eq!(later[OsStr::new("CLAUDE_CONFIG_DIR")], *dir.path().join(".claude"));
    }

    #[test]
    fn only_listed_variables_pass() {
        let inherited =
            ["PATH", "HIVE_SOCKET", "LC_ALL", "SECRET", "ANTHROPIC_API_KEY", "HOME", "LD_PRELOAD"]
                .into_iter()
                .chain(DROPPED)
                .map(|name| (name.into(), "x".into()));
        let further =
            ["EXTRA", "HIVE_TURN_MAX_SECS"].map(|name| (name.to_owned(), "1".to_owned())).into();
        let environment = build(inherited, &further, home(), 2);
        let names: Vec<_> = environment.keys().filter_map(|name| name.to_str()).collect();
        let wanted = "ANTHROPIC_API_KEY CLAUDE_CODE_DISABLE_ATTACHMENTS CLAUDE_CODE_MAX_RETRIES CLAUDE_CODE_TMPDIR \
                      DISABLE_AUTOUPDATER EXTRA HOME LC_ALL PATH";
        assert_eq!(names.join(" "), wanted);
        assert_eq!(environment[&OsString::from("HOME")], "/h");
    }

    #[test]
    fn attachments_cannot_be_switched_on() {
        let further =
            BTreeMap::from([("CLAUDE_CODE_DISABLE_ATTACHMENTS".to_owned(), "0".to_owned())]);
        let environment = build([], &further, home(), 2);
        assert_eq!(environment[&OsString::from("CLAUDE_CODE_DISABLE_ATTACHMENTS")], "1");
    }
}
