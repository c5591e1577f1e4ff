//! One table of the file, read key by key.
//!
//! Invariant: [`Section::finish`] reports each key that nobody asked for; what was asked for is
//! what is known, so the two cannot part.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Findings;
use crate::name::nearest;

type Value<'d> = &'d Spanned<DeValue<'d>>;

/// A table that is being read.
pub(super) struct Section<'a, 'd, 't> {
    path: String,
    table: &'d DeTable<'d>,
    known: Vec<&'static str>,
    findings: &'a mut Findings<'t>,
}

impl<'a, 'd, 't> Section<'a, 'd, 't> {
    /// The table under `path`; an empty path is the whole file.
    pub(super) fn new(
        path: String,
        table: &'d DeTable<'d>,
        findings: &'a mut Findings<'t>,
    ) -> Self {
        Self { path, table, known: Vec::new(), findings }
    }

    /// Reports what nobody asked for.
    pub(super) fn finish(self) {
        let place =
            if self.path.is_empty() { "the file".to_owned() } else { format!("[{}]", self.path) };
        for (key, _) in self.table {
            let word = key.get_ref().as_ref();
            if self.known.contains(&word) {
                continue;
            }
            let near = nearest(word, self.known.iter().copied()).first().copied();
            let mut sentence = format!("unknown key `{}` in {place}", shown(word));
            if near.is_none() {
                sentence.push_str(&format!("; known are {}", list(self.known.iter().copied())));
            }
            self.findings.add_near(key.span(), self.key(word), sentence, near);
        }
    }

    /// A finding about the value of `key`.
    pub(super) fn object(
        &mut self,
        span: Range<usize>,
        key: &str,
        sentence: String,
        near: Option<&str>,
    ) {
        let key = self.key(key);
        self.findings.add_near(span, key, sentence, near);
    }

    /// A remark about the value of `key`, which is valid.
    pub(super) fn remark(&mut self, span: Range<usize>, key: &str, sentence: String) {
        let key = self.key(key);
        self.findings.remark(span, key, sentence);
    }

    /// The value of a key, untyped, with the place it stands at.
    pub(super) fn value(&mut self, key: &'static str) -> Option<Value<'d>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table.iter().find(|(found, _)| found.get_ref() == key).map(|(_, value)| value)
    }

    /// A text that is not empty.
    pub(super) fn text(&mut self, key: &'static str) -> Option<(String, Range<usize>)> {
        let value = self.value(key)?;
        let text = self.typed(key, value, "a string", DeValue::as_str)?;
        if text.is_empty() {
            self.object(value.span(), key, format!("`{key}` is empty; leave it out instead"), None);
            return None;
        }
        Some((text.to_owned(), value.span()))
    }

    /// A whole number within bounds.
    pub(super) fn number(&mut self, key: &'static str, bounds: RangeInclusive<u64>) -> Option<u64> {
        let value = self.value(key)?;
        self.whole(key, value, &bounds)
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        let value = self.value(key)?;
        self.typed(key, value, "true or false", DeValue::as_bool)
    }

    /// A list of texts, each with its place.
    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<(String, Range<usize>)>> {
        let value = self.value(key)?;
        let items = self.typed(key, value, "a list of strings", DeValue::as_array)?;
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            let text = self.typed(key, item, "a list of strings", DeValue::as_str)?;
            texts.push((text.to_owned(), item.span()));
        }
        Some(texts)
    }

    /// A list of whole numbers within bounds.
    pub(super) fn numbers(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<u64>,
    ) -> Option<Vec<u64>> {
        let value = self.value(key)?;
        let items = self.typed(key, value, "a list of numbers", DeValue::as_array)?;
        items.iter().map(|item| self.whole(key, item, &bounds)).collect()
    }

    /// A table of texts, as an environment is.
    pub(super) fn map(&mut self, key: &'static str) -> BTreeMap<String, (String, Range<usize>)> {
        let Some(value) = self.value(key) else { return BTreeMap::new() };
        let Some(table) = self.typed(key, value, "a table of strings", DeValue::as_table) else {
            return BTreeMap::new();
        };
        let mut map = BTreeMap::new();
        for (name, value) in table {
            let path = format!("{key}.{}", name.get_ref());
            if let Some(text) = self.typed(&path, value, "a string", DeValue::as_str) {
                map.insert(name.get_ref().clone().into_owned(), (text.to_owned(), name.span()));
            }
        }
        map
    }

    /// A table of whole numbers within bounds, each with the place of its name.
    pub(super) fn numbers_by_name(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<u64>,
    ) -> BTreeMap<String, (u64, Range<usize>)> {
        let Some(table) = self.table(key) else { return BTreeMap::new() };
        let mut numbers = BTreeMap::new();
        for (name, value) in table {
            let path = format!("{key}.{}", name.get_ref());
            if let Some(number) = self.whole(&path, value, &bounds) {
                numbers.insert(name.get_ref().clone().into_owned(), (number, name.span()));
            }
        }
        numbers
    }

    /// A table below this one; an absent one is `None`.
    pub(super) fn table(&mut self, key: &'static str) -> Option<&'d DeTable<'d>> {
        let value = self.value(key)?;
        self.typed(key, value, "a table", DeValue::as_table)
    }

    /// Keys that nobody has asked for so far.
    pub(super) fn unknown(&self) -> Vec<&'d str> {
        self.table
            .iter()
            .map(|(key, _)| key.get_ref().as_ref())
            .filter(|word| !self.known.contains(word))
            .collect()
    }

    /// Who collects the findings; for reading a table below this one.
    pub(super) fn findings(&mut self) -> &mut Findings<'t> {
        self.findings
    }

    /// The path of a key or table below this one.
    pub(super) fn key(&self, key: &str) -> String {
        if self.path.is_empty() { shown(key) } else { format!("{}.{}", self.path, shown(key)) }
    }

    fn typed<T>(
        &mut self,
        key: &str,
        value: Value<'d>,
        wanted: &str,
        cast: impl Fn(&'d DeValue<'d>) -> Option<T>,
    ) -> Option<T> {
        let cast = cast(value.get_ref());
        if cast.is_none() {
            let (written, found) = (shown(key), named(value.get_ref()));
            self.object(
                value.span(),
                key,
                format!("`{written}` must be {wanted}, not {found}"),
                None,
            );
        }
        cast
    }

    fn whole(&mut self, key: &str, value: Value<'d>, bounds: &RangeInclusive<u64>) -> Option<u64> {
        let number = self.typed(key, value, "a whole number", DeValue::as_integer)?;
        let read = u64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .filter(|read| bounds.contains(read));
        if read.is_none() {
            let (least, most) = (bounds.start(), bounds.end());
            let wanted = if *most == u64::MAX {
                format!("at least {least}")
            } else {
                format!("from {least} to {most}")
            };
            // The TOML parser lets what stands between two digits through, whatever it is.
            let number = shown(number.as_str());
            self.object(
                value.span(),
                key,
                format!("`{}` must be {wanted}, not {number}", shown(key)),
                None,
            );
        }
        read
    }
}

/// Words in a row: `a`, `b` and `c`.
pub(super) fn list<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let mut quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match (quoted.pop(), quoted.is_empty()) {
        (None, _) => "none".to_owned(),
        (Some(only), true) => only,
        (Some(last), false) => format!("{} and {last}", quoted.join(", ")),
    }
}

/// A key from the file, fit to be printed on one line of a terminal.
fn shown(key: &str) -> String {
    if key.chars().any(char::is_control) { key.escape_debug().to_string() } else { key.to_owned() }
}

fn named(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
