//! The levels that were chosen, in words.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use hive_core::isolation::{Found, Level};
use hive_core::name::AgentName;

use super::bwrap::Bubblewrap;
use super::verdict::Verdict;
use super::{Isolation, shown};
use crate::output::note;
use crate::supervise::files::display_path;
use crate::supervise::setup::plan::Plan;

/// The level of one agent, and why it is no better one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) level: Level,
    pub(super) stated: Option<Level>,
    /// Why a better level is not used, a sentence each.
    pub(super) why: Vec<String>,
    pub(super) found: Found,
}

impl Isolation {
    pub(crate) fn announce(&mut self, plan: &Arc<Plan>, chosen: &BTreeMap<AgentName, Choice>) {
        let mut groups: Vec<(&Choice, Vec<&AgentName>)> = Vec::new();
        for (name, choice) in chosen {
            match groups.iter_mut().find(|(other, _)| *other == choice) {
                Some((_, names)) => names.push(name),
                None => groups.push((choice, vec![name])),
            }
        }
        let all = groups.len() <= 1;
        for (choice, names) in groups {
            let names: Vec<&str> = names.into_iter().map(AgentName::as_str).collect();
            let of = if all { String::new() } else { format!(" of {}", names.join(", ")) };
            note(&choice.sentence(&of, self.bwrap.as_ref().ok()));
        }
        for sentence in self.sharing(plan).sentences() {
            note(&sentence);
        }
        self.announce_hidden(plan, chosen);
    }

    /// Prints the directories of PATH that sandboxes do not show.
    fn announce_hidden(&self, plan: &Arc<Plan>, chosen: &BTreeMap<AgentName, Choice>) {
        let Ok(bwrap) = &self.bwrap else { return };
        let mut hidden: BTreeMap<Vec<PathBuf>, Vec<&str>> = BTreeMap::new();
        for agent in &plan.agents {
            let Some(choice) =
                chosen.get(&agent.name).filter(|choice| choice.level == Level::Sandbox)
            else {
                continue;
            };
            let verdict = Verdict { level: choice.level, stated: None, notes: Vec::new() };
            let confined = self.confined(bwrap.clone(), plan, agent, verdict);
            hidden.entry(shown::hidden_on_path(&confined)).or_default().push(agent.name.as_str());
        }
        for (dirs, names) in hidden.into_iter().filter(|(dirs, _)| !dirs.is_empty()) {
            let dirs: Vec<String> = dirs.iter().map(|dir| display_path(dir)).collect();
            note(&format!(
                "    {} do not see these directories of PATH: {}",
                names.join(", "),
                dirs.join(", ")
            ));
            note(
                "    `readable` under [agents.NAME] in hive.toml adds one, if the agent needs its programs",
            );
        }
    }
}

impl Choice {
    fn sentence(&self, of: &str, bwrap: Option<&Bubblewrap>) -> String {
        let by = bwrap.map(|bwrap| format!(", by {}", bwrap.program.display())).unwrap_or_default();
        let findings: Vec<&str> =
            self.found.findings.iter().map(|finding| finding.sentence.as_str()).collect();
        let why: Vec<&str> = self.why.iter().map(String::as_str).chain(findings).collect();
        let because = if why.is_empty() { String::new() } else { format!(": {}", why.join("; ")) };
        let states =
            |level: Level| if self.stated == Some(level) { ", as hive.toml states" } else { "" };
        match self.level {
            Level::Sandbox if because.is_empty() => format!("isolation{of}: sandbox{by}"),
            Level::Sandbox => format!("PARTLY ISOLATED{of}: sandbox{by}{because}"),
            Level::SharedFiles => format!(
                "PARTLY ISOLATED{of}: shared_files{by}{}{because}",
                states(Level::SharedFiles)
            ),
            Level::None if self.stated == Some(Level::None) => {
                format!("isolation{of}: none, as hive.toml states{because}")
            }
            Level::None => format!(
                "NOT ISOLATED{of}{because}. A shell tool of an agent could open the sockets of the others, and the operator's; {}.",
                crate::view::status::ACCEPT_ISOLATION
            ),
        }
    }
}
