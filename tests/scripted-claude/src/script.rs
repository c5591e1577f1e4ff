//! Scripts: the steps for each kind of prompt.
//!
//! A script is a JSON list of rules; the first whose `when` is in the prompt runs. If none matches,
//! [`super::duo`] runs.
//!
//! Other input has rules of its own, so that an empty `when` does not match it. A prompt that is a
//! command, such as `/compact`, matches only a `when` that begins with `/`. A command line other
//! than a turn, such as `claude auth status`, matches only a `when` that begins with `$ `.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::failure::Failure;

/// The variable with the script's file.
pub const FILE_ENV: &str = "SCRIPTED_CLAUDE_FILE";

/// The steps for one kind of prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Text that the prompt contains; an empty text matches all.
    pub when: String,
    pub steps: Vec<Step>,
}

/// One step. In JSON the key selects it: `{"text": "hi"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Step {
    /// Calls a tool, by its full name or by the part after `mcp__SERVER__`. [`super::fill`] puts
    /// values from the prompt into the input.
    Tool {
        tool: String,
        /// The tool's input.
        #[serde(default)]
        input: Value,
    },
    /// Calls a tool, and creates a file as soon as the server has the call.
    Call {
        /// The tool.
        call: String,
        /// The tool's input.
        #[serde(default)]
        input: Value,
        touch: PathBuf,
    },
    /// Writes text as the model.
    Text { text: String },
    /// Answers the prompt as the friendly agent does.
    Duo {
        /// Must be true.
        duo: bool,
    },
    /// Ends the process at once, without a result.
    Exit { exit: u8 },
    /// Ends with a result in which these fields are set; exit code 1 if it is an error.
    Result { result: Map<String, Value> },
    /// Ends as claude does if the API refuses.
    Fail { fail: Failure },
    /// Ends a compaction as failed.
    CompactError {
        /// The error in claude's words.
        compact_error: String,
    },
    /// Does further steps only if this file does not exist yet, and creates it: for steps that must
    /// happen once.
    First { first: PathBuf, steps: Vec<Step> },
    /// Ends the process by a signal to itself.
    Die { die: i32 },
    /// Hangs for ever.
    Hang {
        /// Must be true.
        hang: bool,
    },
    /// Waits until a file exists.
    WaitFile { wait_file: PathBuf },
    /// Creates a file.
    Touch { touch: PathBuf },
    /// Starts a process and does not wait for it.
    Spawn {
        spawn: Vec<String>,
        /// Whether it gets its own session.
        #[serde(default)]
        setsid: bool,
    },
    /// Starts a process that has left session, group and parent: a double fork.
    Daemon { daemon: Vec<String> },
    /// Makes SIGTERM have no effect from now on.
    IgnoreSigterm { ignore_sigterm: bool },
    /// Makes SIGINT have no effect from now on.
    IgnoreSigint { ignore_sigint: bool },
    /// Writes a line to stderr.
    Stderr { stderr: String },
    /// Writes a line to stdout as it is.
    Raw { raw: String },
    /// Sets the usage of the next inferences.
    Usage {
        /// `input_tokens`, `output_tokens`, `cache_read_input_tokens`,
        /// `cache_creation_input_tokens`.
        usage: BTreeMap<String, u64>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The script cannot be read.
    #[error("the script {} cannot be read", .path.display())]
    Unreadable {
        path: PathBuf,
        /// The host's error.
        #[source]
        source: std::io::Error,
    },
    /// The script is not a list of rules.
    #[error("the script {} is not a list of rules: {source}", .path.display())]
    Invalid {
        path: PathBuf,
        /// The parser's error.
        #[source]
        source: serde_json::Error,
    },
}

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

/// Prefixes of prompts that are not mail.
const NO_MAIL: [&str; 2] = ["/", "$ "];

/// Returns the steps for this prompt, or `None` if no rule matches.
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
    fn every_step_is_known_by_its_key() {
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
    fn a_prompt_without_mail_has_its_own_rules() {
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
