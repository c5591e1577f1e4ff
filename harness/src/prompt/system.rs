//! The system prompt: `prompts/system.md` for one agent.
//!
//! Invariant: it is rendered for every turn from the broker's newest values, so a changed policy,
//! parent or role takes effect at once.

use hive_core::tree::Kin;

use crate::prompt::{kin, markers, placeholders};

/// The role whose blocks are kept.
pub const ROLE: &str = "agent";

const TEMPLATE: &str = include_str!("../../../prompts/system.md");

/// The values of the prompt for one agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    /// The agent's short name.
    pub label: String,
    /// The hive's domain; empty for none.
    pub domain: String,
    pub operator_pronouns: String,
    /// The hive's name; empty for none.
    pub hive_name: String,
    /// The swarm's name; empty for none.
    pub swarm_name: String,
    pub mcp_server_name: String,
    /// The parent's name; empty for the operator.
    pub parent: String,
    /// The agent's purpose; empty if unknown.
    pub role: String,
    /// The parent's role, and the children.
    pub kin: Kin,
}

/// Returns the system prompt.
pub fn render(identity: &Identity) -> String {
    render_from(TEMPLATE, identity)
}

/// Returns the system prompt from another template.
pub fn render_from(template: &str, identity: &Identity) -> String {
    let Identity {
        label,
        domain,
        operator_pronouns,
        hive_name,
        swarm_name,
        mcp_server_name,
        parent,
        role,
        kin,
    } = identity;
    let qualified = if domain.is_empty() { label.clone() } else { format!("{label}@{domain}") };
    let hive = named(" on hive", hive_name);
    let swarm = named(" in swarm", swarm_name);
    let parent = kin::parent(parent, kin);
    let children = kin::children(kin, mcp_server_name, parent.len());
    let role = if role.trim().is_empty() { String::new() } else { format!("\n{}\n", role.trim()) };
    placeholders::fill(
        &markers::select(template, ROLE),
        &[
            ("label", label),
            ("qualified_label", &qualified),
            ("operator_pronouns", operator_pronouns),
            ("hive_identity", &hive),
            ("swarm_identity", &swarm),
            ("mcp", mcp_server_name),
            ("parent", &parent),
            ("children", &children),
            ("role", &role),
        ],
    )
}

/// Returns the prefix and the name in backticks; empty if there is no name.
fn named(prefix: &str, name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("{prefix} `{name}`") }
}

#[cfg(test)]
mod tests {
    use hive_core::name::AgentName;
    use hive_core::tree::Child;

    use super::*;

    fn bob() -> Identity {
        Identity {
            label: "bob".into(),
            operator_pronouns: "she/her".into(),
            mcp_server_name: "hive".into(),
            ..Identity::default()
        }
    }

    const TOOLS: &str = "send recv ask answer get_loose_ends cancel_loose_end remind request_next_turn set_status \
                         get_agent_meta list_agents";

    const ALL: &str = "{label}|{qualified_label}|{operator_pronouns}|{hive_identity}|{swarm_identity}|{mcp}|{parent}|{children}|{role}";

    #[test]
    fn names_that_are_not_set_leave_nothing_behind() {
        assert_eq!(
            render_from(ALL, &bob()),
            "bob|bob|she/her|||hive|the operator, for you are a root||"
        );
    }

    #[test]
    fn names_that_are_set_come_with_a_leading_blank_and_backticks() {
        let identity = Identity {
            domain: "hive.example".into(),
            hive_name: "alpha".into(),
            swarm_name: "beta".into(),
            mcp_server_name: "h2".into(),
            parent: "alice".into(),
            role: "You test.\n".into(),
            kin: Kin {
                parent_role: "reviews".into(),
                children: vec![Child {
                    name: AgentName::parse("carol").expect("a name"),
                    role: "{label}".into(),
                }],
                children_count: 1,
            },
            ..bob()
        };
        assert_eq!(
            render_from(ALL, &identity),
            "bob|bob@hive.example|she/her| on hive `alpha`| in swarm `beta`|h2|`alice` (its role: reviews)|\
             - Your children, each with its role:\n  - `carol`: {label}\n|\nYou test.\n"
        );
    }

    #[test]
    fn a_value_that_looks_like_a_placeholder_stays() {
        let identity =
            Identity { label: "{hive_identity}".into(), hive_name: "{label}".into(), ..bob() };
        assert_eq!(
            render_from("{label}{hive_identity}", &identity),
            "{hive_identity} on hive `{label}`"
        );
    }

    #[test]
    fn the_shipped_prompt_names_the_tools_and_leaves_nothing_open() {
        let prompt = render(&Identity { mcp_server_name: "other".into(), ..bob() });
        for tool in TOOLS.split(' ') {
            assert!(prompt.contains(&format!("`mcp__other__{tool}`")), "{tool}");
        }
        assert!(
            !prompt.contains("<!--") && !prompt.contains('{') && !prompt.contains("mcp__hive"),
            "{prompt}"
        );
        assert!(
            prompt.starts_with("You are `bob`, an agent. Your qualified name is `bob`.\n"),
            "{prompt}"
        );
    }

    #[test]
    fn every_placeholder_is_in_the_readme() {
        let readme = include_str!("../../../prompts/README.md");
        for name in ALL.split('|') {
            assert!(readme.contains(&format!("`{name}`")), "{name}");
        }
    }
}
