//! Units of systemd in which the programs of an agent run.
//!
//! Invariant: a unit that passes is a name that systemd can have for a service or a scope, so that
//! a misspelt one is found before an agent is locked out.

use super::section::Section;
use super::values::AGENT_IN_UNIT;

/// Longest name of a unit in systemd.
const UNIT_CHARS_MAX: usize = 255;

/// Reads the unit of one agent.
pub(super) fn of_agent(section: &mut Section<'_, '_, '_>) -> Option<String> {
    let key = "unit";
    let (unit, span) = section.text(key)?;
    if is_unit(&unit) {
        return Some(unit);
    }
    let sentence =
        format!("`{}` is no service or scope of systemd, as hive@ada.service", unit.escape_debug());
    section.object(span, key, sentence, None);
    None
}

/// Reads the unit of all other agents, which has a place for the agent's name.
pub(super) fn of_agents(section: &mut Section<'_, '_, '_>) -> Option<String> {
    let key = "agent_unit";
    let (unit, span) = section.text(key)?;
    // One unit for all agents would let each of them use the sockets of the others.
    if unit.matches(AGENT_IN_UNIT).count() == 1 && is_unit(&unit.replace(AGENT_IN_UNIT, "ada")) {
        return Some(unit);
    }
    let sentence = format!(
        "`{}` is no service or scope of systemd with one `{AGENT_IN_UNIT}`, as hive@{AGENT_IN_UNIT}.service",
        unit.escape_debug()
    );
    section.object(span, key, sentence, None);
    None
}

fn is_unit(unit: &str) -> bool {
    let stem = unit.strip_suffix(".service").or_else(|| unit.strip_suffix(".scope"));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    let is_name = |stem: &str| {
        !stem.is_empty()
            && !stem.starts_with('@')
            && !stem.ends_with('@')
            && stem.chars().all(is_plain)
    };
    unit.len() <= UNIT_CHARS_MAX && stem.is_some_and(is_name)
}
