//! The sandbox keys of `[agents.NAME]`, and `isolation` of both tables.
//!
//! Invariant: a path is absolute, begins with `~/`, or is relative to the file; the program that
//! starts the agent decides on the host whether it may be granted.

use std::path::PathBuf;

use super::section::Section;
use super::values::SandboxConfig;
use crate::isolation::Level;
use crate::name::nearest;

/// Maximum paths in one list: each is a mount.
const PATHS_MAX: usize = 64;

/// Reads the keys of one agent.
pub(super) fn read(section: &mut Section<'_, '_, '_>) -> SandboxConfig {
    SandboxConfig {
        isolation: isolation(section),
        readable: paths(section, "readable"),
        writable: paths(section, "writable"),
        devices: devices(section),
        user_namespaces: section.flag("user_namespaces").unwrap_or(false),
    }
}

/// Reads the level of isolation.
pub(super) fn isolation(section: &mut Section<'_, '_, '_>) -> Option<Level> {
    let key = "isolation";
    let (word, span) = section.text(key)?;
    let known = Level::ALL.into_iter().find(|level| level.word() == word);
    if known.is_none() {
        let near = nearest(&word, Level::ALL.map(Level::word)).first().copied();
        let sentence = "`isolation` must be \"sandbox\", \"shared_files\" or \"none\"; leave it out for the best that works here";
        section.object(span, key, sentence.to_owned(), near);
    }
    known
}

fn paths(section: &mut Section<'_, '_, '_>, key: &'static str) -> Vec<PathBuf> {
    let Some(span) = section.value(key).map(toml::Spanned::span) else { return Vec::new() };
    let texts = section.texts(key).unwrap_or_default();
    if texts.len() > PATHS_MAX {
        section.object(
            span,
            key,
            format!("`{key}` has {} paths, more than {PATHS_MAX}", texts.len()),
            None,
        );
        return Vec::new();
    }
    let mut paths = Vec::new();
    for (text, span) in texts {
        let home_of_another = text.starts_with('~') && text != "~" && !text.starts_with("~/");
        if text.is_empty() || text.chars().any(char::is_control) || home_of_another {
            let sentence = format!(
                "`{key}` must be paths: absolute, beginning with `~/`, or relative to the directory of the file"
            );
            section.object(span, key, sentence, None);
        } else {
            paths.push(PathBuf::from(text));
        }
    }
    paths
}

fn devices(section: &mut Section<'_, '_, '_>) -> Vec<PathBuf> {
    let key = "devices";
    let span = section.value(key).map(toml::Spanned::span);
    let (devices, others): (Vec<PathBuf>, _) =
        paths(section, key).into_iter().partition(|path| path.starts_with("/dev"));
    if let (Some(other), Some(span)) = (others.first(), span) {
        section.object(span, key, format!("`{}` is not below /dev", other.display()), None);
    }
    devices
}
