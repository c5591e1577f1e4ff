//! Units of systemd: those in which the programs of an agent run, and those whose journal agents
//! may read.
//!
//! Invariant: a unit that passes is one full name that systemd can have, and neither a pattern nor
//! an option of a command, so that a misspelt one is found before an agent is locked out.

use super::section::Section;
use super::values::AGENT_IN_UNIT;

/// Longest name of a unit in systemd.
const UNIT_CHARS_MAX: usize = 255;

/// The types of units.
const TYPES: [&str; 11] = [
    "automount",
    "device",
    "mount",
    "path",
    "scope",
    "service",
    "slice",
    "socket",
    "swap",
    "target",
    "timer",
];

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

/// Reads the units whose journal agents may read.
pub(super) fn of_journal(section: &mut Section<'_, '_, '_>) -> Vec<String> {
    let key = "journal_units";
    let mut units = Vec::new();
    for (unit, span) in section.texts(key).unwrap_or_default() {
        if is_full_name(&unit) {
            units.push(unit);
        } else {
            let sentence = format!(
                "`{}` is not the full name of a unit of systemd, as nginx.service",
                unit.escape_debug()
            );
            section.object(span, key, sentence, None);
        }
    }
    units
}

fn is_unit(unit: &str) -> bool {
    let of_a_type = [".service", ".scope"].iter().any(|suffix| unit.ends_with(suffix));
    of_a_type && is_full_name(unit)
}

/// Returns whether a text is the full name of a unit of any type.
fn is_full_name(unit: &str) -> bool {
    let stem = unit.rsplit_once('.').filter(|(_, kind)| TYPES.contains(kind)).map(|(stem, _)| stem);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    let is_name = |stem: &str| {
        !stem.is_empty()
            && !stem.starts_with(['@', '-'])
            && !stem.ends_with('@')
            && stem.chars().all(is_plain)
    };
    unit.len() <= UNIT_CHARS_MAX && stem.is_some_and(is_name)
}
