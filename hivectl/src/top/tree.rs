//! The order of agents in a tree, and the lines of the tree.
//!
//! Invariant: every agent has one line. An agent whose parent is not listed is a root; so is the
//! first of a ring, which the broker does not allow.

use std::collections::BTreeMap;

use hive_proto::v1::Agent;

/// A stem over this does not grow: no screen is as wide, and a deep tree of many agents must not
/// fill the memory.
const STEM_BYTES_MAX: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    pub(crate) agent: usize,
    pub(crate) stem: String,
}

pub(crate) fn branches(agents: &[Agent]) -> Vec<Branch> {
    let indices: BTreeMap<&str, usize> =
        agents.iter().enumerate().map(|(index, agent)| (agent.name.as_str(), index)).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); agents.len()];
    let mut roots = Vec::new();
    // By name, as the map has them.
    for &index in indices.values() {
        match indices.get(agents[index].parent.as_str()) {
            Some(parent) => children[*parent].push(index),
            None => roots.push(index),
        }
    }
    let mut grown = Growth {
        children,
        seen: vec![false; agents.len()],
        branches: Vec::with_capacity(agents.len()),
    };
    for root in roots.into_iter().chain(indices.into_values()) {
        grown.grow(root);
    }
    grown.branches
}

struct Growth {
    children: Vec<Vec<usize>>,
    seen: Vec<bool>,
    branches: Vec<Branch>,
}

impl Growth {
    /// A root with all below it. A tree may be as deep as it has agents, so this is no recursion.
    fn grow(&mut self, root: usize) {
        // An agent, its stem, and the stem that its children continue.
        let mut open = vec![(root, String::new(), String::new())];
        while let Some((agent, stem, below)) = open.pop() {
            if std::mem::replace(&mut self.seen[agent], true) {
                continue;
            }
            self.branches.push(Branch { agent, stem });
            let children = &self.children[agent];
            // Children are pushed in reverse order, so that the first one is popped first.
            for (number, child) in children.iter().enumerate().rev() {
                let last = number + 1 == children.len();
                let stem = format!("{below}{}", if last { "└ " } else { "├ " });
                let further = if below.len() > STEM_BYTES_MAX {
                    ""
                } else if last {
                    "  "
                } else {
                    "│ "
                };
                open.push((*child, stem, format!("{below}{further}")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(pairs: &[(&str, &str)]) -> Vec<String> {
        let agent = |(name, parent): &(&str, &str)| Agent {
            name: (*name).to_owned(),
            parent: (*parent).to_owned(),
            ..Agent::default()
        };
        let agents: Vec<Agent> = pairs.iter().map(agent).collect();
        branches(&agents)
            .into_iter()
            .map(|branch| format!("{}{}", branch.stem, agents[branch.agent].name))
            .collect()
    }

    #[test]
    fn children_stand_below_their_parents_by_name() {
        assert_eq!(
            drawn(&[("bob", "ada"), ("eve", "bob"), ("ada", ""), ("cid", "ada"), ("zoe", "gone")]),
            ["ada", "├ bob", "│ └ eve", "└ cid", "zoe"]
        );
    }

    #[test]
    fn every_agent_has_one_line_even_in_a_cycle() {
        assert_eq!(
            drawn(&[("ada", "bob"), ("bob", "ada"), ("cid", "cid")]),
            ["ada", "└ bob", "cid"]
        );
    }

    #[test]
    fn a_deep_tree_is_no_deep_recursion() {
        let names: Vec<String> = (0..3000).map(|number| format!("a{number:04}")).collect();
        let parents = std::iter::once("").chain(names.iter().map(String::as_str));
        let pairs: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(parents).collect();
        let drawn = drawn(&pairs);
        assert_eq!(drawn.len(), 3000);
        assert!(drawn.iter().all(|line| line.len() < 2 * STEM_BYTES_MAX));
    }
}
