//! The tree of agents.
//!
//! Invariant: every agent is shown once; an agent whose parent is not listed is shown as a root.

use std::collections::BTreeMap;

use hive_core::message::OPERATOR;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use super::agent::Agent;
use super::{Word, counted};
use crate::output::Text;
use crate::output::style::Style;
use crate::output::text::visible_line;

/// An agent and its children; the list of roots is the whole tree.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Node {
    /// The agent's name.
    name: String,
    /// The state of its harness.
    #[schemars(with = "Word<v1::HarnessState>")]
    state: Option<String>,
    /// The status that the agent set.
    status_text: Option<String>,
    /// Deliveries that wait in its inbox.
    ready_count: u32,
    /// The number of dead letters in its inbox.
    dead_count: u32,
    /// The number of its loose ends.
    loose_end_count: usize,
    /// Its children, each with all below.
    children: Vec<Node>,
    #[serde(skip)]
    line: String,
}

/// Returns the roots of the tree of these agents, with all below them.
pub(crate) fn roots(
    agents: Vec<Agent>,
    loose_ends: &BTreeMap<String, usize>,
    style: &Style,
) -> Vec<Node> {
    let names: Vec<String> = agents.iter().map(|agent| agent.name.clone()).collect();
    let mut below: BTreeMap<Option<String>, Vec<Agent>> = BTreeMap::new();
    for agent in agents {
        let parent = agent.parent.clone().filter(|parent| names.contains(parent));
        below.entry(parent).or_default().push(agent);
    }
    nodes(None, &mut below, loose_ends, style)
}

fn nodes(
    parent: Option<String>,
    below: &mut BTreeMap<Option<String>, Vec<Agent>>,
    loose_ends: &BTreeMap<String, usize>,
    style: &Style,
) -> Vec<Node> {
    let agents = below.remove(&parent).unwrap_or_default();
    agents
        .into_iter()
        .map(|agent| {
            let children = nodes(Some(agent.name.clone()), below, loose_ends, style);
            let loose_end_count = loose_ends.get(&agent.name).copied().unwrap_or(0);
            let line = line(&agent, loose_end_count, style);
            let Agent { name, state, status_text, ready_count, dead_count, .. } = agent;
            Node {
                name,
                state,
                status_text,
                ready_count,
                dead_count,
                loose_end_count,
                children,
                line,
            }
        })
        .collect()
}

fn line(agent: &Agent, loose_end_count: usize, style: &Style) -> String {
    let name = style.head(&visible_line(&agent.name));
    let news = agent.news(&open(loose_end_count), style);
    format!("{name}  {}{news}", agent.state_cell(style))
}

/// Formats the number of loose ends, if there are any.
fn open(loose_end_count: usize) -> String {
    match loose_end_count {
        0 => String::new(),
        count => format!("  {}", counted(count, "loose end", "loose ends")),
    }
}

pub(crate) fn drawn(roots: &[Node], loose_ends: &BTreeMap<String, usize>, style: &Style) -> String {
    let own = loose_ends.get(OPERATOR).copied().unwrap_or(0);
    let mut lines = vec![format!("{}{}", style.head(OPERATOR), open(own))];
    draw(roots, "", &mut lines);
    lines.join("\n")
}

fn draw(nodes: &[Node], indent: &str, lines: &mut Vec<String>) {
    for (index, node) in nodes.iter().enumerate() {
        let last = index + 1 == nodes.len();
        lines.push(format!("{indent}{} {}", if last { "└──" } else { "├──" }, node.line));
        draw(&node.children, &format!("{indent}{}   ", if last { " " } else { "│" }), lines);
    }
}

impl Text for Node {
    fn text(&self, _: &Style) -> String {
        let mut lines = vec![self.line.clone()];
        draw(&self.children, "", &mut lines);
        lines.join("\n")
    }
}
