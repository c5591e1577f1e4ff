//! Words that the broker knows and clap does not check: tool groups and capabilities.

use std::ffi::OsStr;

use clap_complete::engine::ArgValueCompleter;
use hive_core::agent::{CAPABILITIES, TOOL_GROUPS};

use super::candidate::{Candidate, fitting};

/// Tool groups.
pub(crate) fn tool_groups() -> ArgValueCompleter {
    of(&TOOL_GROUPS, None)
}

/// Tool groups, and the word that takes them back to the default ones.
pub(crate) fn tool_groups_or_default() -> ArgValueCompleter {
    of(&TOOL_GROUPS, Some("default"))
}

/// Capabilities.
pub(crate) fn capabilities() -> ArgValueCompleter {
    of(&CAPABILITIES, None)
}

fn of(words: &'static [&'static str], further: Option<&'static str>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        fitting(current, words.iter().copied().chain(further).map(Candidate::word).collect())
    })
}
