//! Settings of a harness, and the values that a table of the file gives to them.
//!
//! Invariant: `hive serve` accepts each value that exists.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use super::section::Section;
use super::settings_list::{OF_AGENT, SETTINGS};
use crate::name::nearest;
use crate::time_of_day::TimeOfDay;

/// A setting of a harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its key in `[agents.NAME]` and in `[claude]`; with a `.` if it is in a table below.
    pub key: &'static str,
    /// The variable of `hive serve`.
    pub variable: &'static str,
    /// The values that it accepts.
    pub kind: Kind,
    /// The default, in the words of the documentation.
    pub default: &'static str,
    /// The effect, in the words of the documentation.
    pub meaning: &'static str,
}

/// The value that stands for no time of day.
pub const NEVER: &str = "never";
/// The only table that has settings of its own.
const RESET: &str = "reset";

/// The values that a setting accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number from the first to the second, both included.
    Number(u64, u64),
    /// Yes or no.
    Flag,
    /// A word from this list.
    Word(&'static [&'static str]),
    /// A file; a relative path is relative to `hive.toml`.
    File,
    /// A time of day as `04:00`, or [`NEVER`].
    Time,
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingValue {
    /// A whole number.
    Number(u64),
    /// Yes or no.
    Flag(bool),
    /// A word or a path.
    Text(String),
}

/// Formats the value as the variable of `hive serve` has it.
impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// The settings that one table of the file names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<&'static str, SettingValue>);

impl Settings {
    /// Returns the value of a key, if the table has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&SettingValue> {
        self.0.get(key)
    }

    /// Returns every key of the table, with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &SettingValue)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    /// Returns the variables of `hive serve`; these settings override those of `defaults`.
    #[must_use]
    pub fn variables(&self, defaults: &Self) -> BTreeMap<&'static str, String> {
        let value = |key: &str| self.get(key).or_else(|| defaults.get(key));
        SETTINGS
            .iter()
            .filter_map(|setting| Some((setting.variable, value(setting.key)?.to_string())))
            .collect()
    }

    /// Resolves each relative path against `base`.
    pub(super) fn resolve_paths(&mut self, base: &Path) {
        for setting in SETTINGS.iter().filter(|setting| setting.kind == Kind::File) {
            if let Some(SettingValue::Text(path)) = self.0.get_mut(setting.key) {
                *path = base.join(&*path).to_string_lossy().into_owned();
            }
        }
    }

    fn number(&self, key: &str) -> Option<u64> {
        match self.get(key)? {
            SettingValue::Number(number) => Some(*number),
            SettingValue::Flag(_) | SettingValue::Text(_) => None,
        }
    }
}

/// Reads the settings of `[claude]`, which apply to every agent.
pub(super) fn of_claude(section: &mut Section<'_, '_, '_>) -> Settings {
    let settings = read(section, |setting| setting.key != OF_AGENT);
    ordered(section, &settings, &Settings::default());
    resets(section, &Settings::default());
    settings
}

/// Reads the settings of an agent; `defaults` are those of `[claude]`.
pub(super) fn of_agent(section: &mut Section<'_, '_, '_>, defaults: &Settings) -> Settings {
    let settings = read(section, |_| true);
    ordered(section, &settings, defaults);
    resets(section, defaults);
    settings
}

fn read(section: &mut Section<'_, '_, '_>, is_here: impl Fn(&Setting) -> bool) -> Settings {
    let (below, here): (Vec<&Setting>, Vec<&Setting>) = SETTINGS
        .iter()
        .filter(|setting| is_here(setting))
        .partition(|setting| setting.key.contains('.'));
    let mut values: BTreeMap<_, _> = here
        .into_iter()
        .filter_map(|setting| Some((setting.key, value(section, setting.key, setting.kind)?)))
        .collect();
    if let Some(table) = section.table(RESET) {
        let place = section.key(RESET);
        let mut reset = Section::new(place, table, section.findings());
        for setting in below {
            let key = setting
                .key
                .strip_prefix(RESET)
                .and_then(|key| key.strip_prefix('.'))
                .expect("there is one such table");
            values.extend(value(&mut reset, key, setting.kind).map(|value| (setting.key, value)));
        }
        reset.finish();
    }
    Settings(values)
}

fn value(section: &mut Section<'_, '_, '_>, key: &'static str, kind: Kind) -> Option<SettingValue> {
    match kind {
        Kind::Number(least, most) => section.number(key, least..=most).map(SettingValue::Number),
        Kind::Flag => section.flag(key).map(SettingValue::Flag),
        Kind::Word(known) => word(section, key, known).map(SettingValue::Text),
        Kind::File => super::sections::line(section, key).map(SettingValue::Text),
        Kind::Time => time(section, key).map(SettingValue::Text),
    }
}

fn time(section: &mut Section<'_, '_, '_>, key: &'static str) -> Option<String> {
    let (text, span) = section.text(key)?;
    if text == NEVER || TimeOfDay::parse(&text).is_some() {
        return Some(text);
    }
    section.object(
        span,
        key,
        format!("`{key}` must be a time of day as \"04:00\", or \"{NEVER}\""),
        None,
    );
    None
}

fn word(
    section: &mut Section<'_, '_, '_>,
    key: &'static str,
    known: &[&'static str],
) -> Option<String> {
    let (word, span) = section.text(key)?;
    if known.contains(&word.as_str()) {
        return Some(word);
    }
    let near = nearest(&word, known.iter().copied()).first().copied();
    let words: Vec<String> = known.iter().map(|word| format!("\"{word}\"")).collect();
    section.object(span, key, format!("`{key}` must be {}", words.join(" or ")), near);
    None
}

/// Checks that the default time of a shell task is allowed; otherwise the harness would refuse to
/// start.
fn ordered(section: &mut Section<'_, '_, '_>, settings: &Settings, defaults: &Settings) {
    let (default_key, most_key) = ("bash_timeout_secs", "bash_timeout_max_secs");
    let Some(span) =
        section.value(default_key).or_else(|| section.value(most_key)).map(toml::Spanned::span)
    else {
        return;
    };
    let built_in =
        |key: &str| SETTINGS.iter().find(|setting| setting.key == key)?.default.parse().ok();
    let effective =
        |key: &str| settings.number(key).or_else(|| defaults.number(key)).or_else(|| built_in(key));
    if let (Some(default), Some(most)) = (effective(default_key), effective(most_key))
        && default > most
    {
        let sentence = format!("`{default_key}` ({default}) is greater than `{most_key}` ({most})");
        section.object(span, default_key, sentence, None);
    }
}

/// Checks that a table `reset` has a condition.
fn resets(section: &mut Section<'_, '_, '_>, defaults: &Settings) {
    let Some(value) = section.value(RESET) else { return };
    let Some(table) = value.get_ref().as_table() else { return };
    let is_there = |key: &str| {
        table.iter().any(|(found, _)| found.get_ref() == key)
            || defaults.get(&format!("{RESET}.{key}")).is_some()
    };
    if !is_there("daily_at") && !is_there("idle_minutes") {
        section.object(
            value.span(),
            RESET,
            "`reset` needs `daily_at`, `idle_minutes` or both".to_owned(),
            None,
        );
    }
}
