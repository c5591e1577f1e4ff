//! Checks that need the whole file: the tree of agents.
//!
//! Invariant: in a valid configuration each chain of parents ends at a root.

use std::collections::HashSet;

use super::error::Findings;
use super::sections::Places;
use super::values::Config;
use crate::name::{AgentName, nearest};

/// Checks that each parent exists and no agent is its own ancestor.
pub(super) fn tree(config: &Config, places: &Places, findings: &mut Findings<'_>) {
    let mut rooted = HashSet::new();
    for (name, agent) in &config.agents {
        let (Some(parent), Some(span)) = (&agent.parent, places.get(name)) else { continue };
        let key = format!("agents.{name}.parent");
        if !config.agents.contains_key(parent) {
            let near = nearest(
                parent.as_str(),
                config.agents.keys().filter(|other| *other != name).map(AgentName::as_str),
            );
            let sentence = format!("the parent `{parent}` of `{name}` is not in the file");
            findings.add_near(span.clone(), key, sentence, near.first().copied());
        } else if let Some(circle) = circle(config, name, &mut rooted) {
            findings.add(
                span.clone(),
                key,
                format!("`{name}` would be its own ancestor: {circle}"),
            );
        }
    }
}

/// Returns the path from `name` over its parents back to itself, if there is one. Each circle is
/// reported once, at its first name. `rooted` has the agents that are known to be below a root: no
/// path is followed twice.
fn circle<'c>(
    config: &'c Config,
    name: &'c AgentName,
    rooted: &mut HashSet<&'c AgentName>,
) -> Option<String> {
    let (mut way, mut seen) = (vec![name], HashSet::from([name]));
    let mut here = name;
    while let Some(parent) = config.agents.get(here).and_then(|agent| agent.parent.as_ref()) {
        if parent == name {
            way.push(parent);
            let first = way.iter().min() == Some(&name);
            let words: Vec<&str> = way.into_iter().map(AgentName::as_str).collect();
            return first.then(|| words.join(" -> "));
        }
        if rooted.contains(parent) {
            break;
        }
        if !seen.insert(parent) {
            return None;
        }
        way.push(parent);
        here = parent;
    }
    rooted.extend(way);
    None
}
