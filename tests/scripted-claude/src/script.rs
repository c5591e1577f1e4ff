//! What a script says: for which prompt, which steps.
//!
//! A script is a JSON list of rules; the first whose `when` is in the prompt runs. Without one that
//! fits, [`super::duo`] runs.
//!
//! What is no mail has rules of its own, so that an empty `when` does not catch it: a prompt that
//! is a command, such as `/compact`, only those whose `when` begins with `/`; what claude does
//! besides turns, such as `claude auth status`, only those that begin with `$ `.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::failure::Failure;

/// Names the script's file.
pub const FILE_ENV: &str = "SCRIPTED_CLAUDE_FILE";

/// What to do at one kind of prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Text that the prompt contains; empty fits all.
    pub when: String,
    /// What is done, in this order.
    pub steps: Vec<Step>,
}

/// One thing that is done. In JSON the key says which: `{"text": "hi"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Step {
    /// Calls a tool, by its full name or by what stands behind `mcp__SERVER__`. What the prompt
    /// says can be put into the input, as [`super::fill`] tells.
    Tool {
        /// The tool.
        tool: String,
        /// Its input.
        #[serde(default)]
        input: Value,
    },
    /// Calls a tool, and makes a file exist as soon as the call is with the server.
    Call {
        /// The tool.
        call: String,
        /// Its input.
        #[serde(default)]
        input: Value,
        /// The file.
        touch: PathBuf,
    },
    /// Says something.
    Text {
        /// The words.
        text: String,
    },
    /// Answers the prompt as the friendly agent does.
    Duo {
        /// Has to be true.
        duo: bool,
    },
    /// Ends the process at once, without a result.
    Exit {
        /// The exit code.
        exit: u8,
    },
    /// Ends with a result in which these fields are set; exit code 1 if it is an error.
    Result {
        /// The fields.
        result: Map<String, Value>,
    },
    /// Ends as claude does where the API refuses.
    Fail {
        /// How it refuses.
        fail: Failure,
    },
    /// Ends a compaction as failed.
    CompactError {
        /// Why, in claude's words.
        compact_error: String,
    },
    /// Does further steps, but only where this file does not exist yet, and makes it: what is to
    /// happen once.
    First {
        /// The file.
        first: PathBuf,
        /// What is done.
        steps: Vec<Step>,
    },
    /// Ends the process by a signal to itself.
    Die {
        /// The signal's number.
        die: i32,
    },
    /// Does nothing any more.
    Hang {
        /// Has to be true.
        hang: bool,
    },
    /// Waits until a file exists.
    WaitFile {
        /// The file.
        wait_file: PathBuf,
    },
    /// Makes a file exist.
    Touch {
        /// The file.
        touch: PathBuf,
    },
    /// Starts a process and does not wait for it.
    Spawn {
        /// Program and arguments.
        spawn: Vec<String>,
        /// Whether in a session of its own.
        #[serde(default)]
        setsid: bool,
    },
    /// Starts a process that has left behind session, group and parent: a double fork.
    Daemon {
        /// Program and arguments.
        daemon: Vec<String>,
    },
    /// From now on SIGTERM has no effect.
    IgnoreSigterm {
        /// Whether it is ignored.
        ignore_sigterm: bool,
    },
    /// From now on SIGINT has no effect.
    IgnoreSigint {
        /// Whether it is ignored.
        ignore_sigint: bool,
    },
    /// Writes a line to stderr.
    Stderr {
        /// The line.
        stderr: String,
    },
    /// Writes a line to stdout as it is.
    Raw {
        /// The line.
        raw: String,
    },
    /// Sets what the next inferences say that they used.
    Usage {
        /// `input_tokens`, `output_tokens`, `cache_read_input_tokens`,
        /// `cache_creation_input_tokens`.
        usage: BTreeMap<String, u64>,
    },
}

/// Why there is no script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It cannot be read.
    #[error("the script {} cannot be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the host said.
        #[source]
        source: std::io::Error,
    },
    /// It is no list of rules.
    #[error("the script {} is not a list of rules: {source}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
}

/// Reads a script.
pub fn read(path: &Path) -> Result<Vec<Rule>, ScriptError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ScriptError::Unreadable { path: path.to_path_buf(), source })?;
    serde_json::from_str(&text)
        .map_err(|source| ScriptError::Invalid { path: path.to_path_buf(), source })
}

/// Writes a script, for tests.
pub fn write(path: &Path, rules: &[Rule]) -> std::io::Result<()> {
    std::fs::write(path, serde_json::to_vec_pretty(rules)?)
}

/// Beginnings of what is no mail.
const NO_MAIL: [&str; 2] = ["/", "$ "];

/// The steps for this prompt; `None` where no rule fits.
#[must_use]
pub fn steps<'a>(rules: &'a [Rule], prompt: &str) -> Option<&'a [Step]> {
    let special =
        NO_MAIL.into_iter().find(|beginning| prompt.starts_with(beginning)).unwrap_or_default();
    let fits = |rule: &&Rule| rule.when.starts_with(special) && prompt.contains(&rule.when);
    rules.iter().find(fits).map(|rule| rule.steps.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_told_by_its_key() {
        let text = r#"[{"when": "poison", "steps": [
            {"tool": "send", "input": {"to": "bob"}}, {"tool": "recv"}, {"text": "x"}, {"duo": true}, {"exit": 1}, {"result": {"is_error": true}},
            {"hang": true}, {"wait_file": "/f"}, {"touch": "/f"}, {"spawn": ["sleep", "1"], "setsid": true}, {"ignore_sigterm": true},
            {"ignore_sigint": true}, {"stderr": "x"}, {"raw": "x"}, {"usage": {"input_tokens": 5}},
            {"call": "recv", "touch": "/f"}, {"fail": "overloaded"}, {"fail": {"usage_limit": 4102444800}}, {"compact_error": "x"},
            {"first": "/f", "steps": [{"text": "x"}]}, {"die": 9}, {"daemon": ["sleep", "1"]}]}]"#;
        let rules: Vec<Rule> = serde_json::from_str(text).expect("it is a script");
        let again: Vec<Rule> = serde_json::from_str(&serde_json::to_string(&rules).expect("JSON"))
            .expect("it is a script");
        assert_eq!(rules, again);
        assert_eq!(rules[0].steps.len(), 22);
        assert!(
            matches!(&rules[0].steps[9], Step::Spawn { setsid: true, .. }),
            "{:?}",
            rules[0].steps[9]
        );
        assert!(matches!(&rules[0].steps[15], Step::Call { .. }), "{:?}", rules[0].steps[15]);
    }

    #[test]
    fn an_unknown_step_is_an_error() {
        for step in [r#"{"sleep": 1}"#, r#"{"text": "x", "sleep": 1}"#, r#"{"exit": 1000}"#] {
            let text = format!(r#"[{{"when": "", "steps": [{step}]}}]"#);
            assert!(serde_json::from_str::<Vec<Rule>>(&text).is_err(), "{step}");
        }
    }

    #[test]
    fn the_first_rule_that_fits_runs() {
        let rule = |when: &str, text: &str| Rule {
            when: when.to_owned(),
            steps: vec![Step::Text { text: text.to_owned() }],
        };
        let rules = [rule("attempt 2", "again"), rule("poison", "first")];
        assert_eq!(steps(&rules, "poison, attempt 2"), Some(&rules[0].steps[..]));
        assert_eq!(steps(&rules, "poison"), Some(&rules[1].steps[..]));
        assert_eq!(steps(&rules, "harmless"), None);
    }

    #[test]
    fn what_is_no_mail_has_rules_of_its_own() {
        let rule = |when: &str| Rule {
            when: when.to_owned(),
            steps: vec![Step::Text { text: when.to_owned() }],
        };
        let rules = [rule(""), rule("/compact"), rule("$ auth status")];
        assert_eq!(steps(&rules, "Message 1 about /compact"), Some(&rules[0].steps[..]));
        assert_eq!(steps(&rules, "/compact"), Some(&rules[1].steps[..]));
        assert_eq!(steps(&rules, "$ auth status"), Some(&rules[2].steps[..]));
        assert_eq!(steps(&rules, "/clear"), None);
        assert_eq!(steps(&rules, "$ auth login"), None);
    }
}
