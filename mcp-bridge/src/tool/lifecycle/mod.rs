//! The tools of the group `lifecycle`, for the agents below the caller.
//!
//! Invariant: a call stores what is wanted and waits for no process, so its text reports what is
//! stored, and leaves it to a notice to report what has become of the harness.

pub(super) mod kill;
pub(super) mod list_containers;
pub(super) mod restart;
pub(super) mod start;

use hive_proto::v1::Agent;
use schemars::JsonSchema;
use serde::Deserialize;

use super::recipient;
use crate::error::Refusal;
use crate::render::one_line;

const NAME_CHARS_MAX: usize = 63;

/// The arguments of a tool that is about one agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Child {
    /// Name of a child, or of any agent below you if your policy lets you.
    agent: String,
}

/// Parses the name of an agent from a model; empty for none.
fn named(agent: &str) -> Result<String, Refusal> {
    match agent.trim() {
        recipient::EVERYONE => {
            Err(Refusal::arguments("agent: `*` is no agent: name one of your children"))
        }
        name => Ok(name.to_owned()),
    }
}

fn name(agent: &Agent) -> String {
    one_line(&agent.name, NAME_CHARS_MAX)
}

/// Returns what happens to the open turn of an agent whose harness drains; empty for none.
fn handed_back(agent: &Agent) -> &'static str {
    match agent.open_turn_ids[..] {
        [] => "",
        [..] => "; its running turn is handed back, which costs its mail no attempt",
    }
}

/// Returns who gets the notice. With the capability `manage_subtree`, the parent is not always the
/// caller.
fn noticed(agent: &Agent) -> String {
    let parent = one_line(&agent.parent, NAME_CHARS_MAX);
    format!("This is stored; its parent {parent} gets a notice when it is done.")
}

#[cfg(test)]
fn kim() -> Agent {
    Agent { name: "kim".to_owned(), parent: "alice".to_owned(), ..Agent::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_trimmed_and_everyone_is_refused() {
        assert_eq!(named(" kim\n"), Ok("kim".to_owned()));
        let refusal = named(" * ").expect_err("it is no agent");
        assert!(refusal.code == "FIELD_INVALID" && refusal.sentence.contains("`*` is no agent"));
    }
}
