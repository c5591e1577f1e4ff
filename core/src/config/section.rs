//! One table of the file, read key by key.
//!
//! Invariant: [`Section::finish`] reports each key that was never requested. The requested keys are
//! the known keys, so the two sets are always equal.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Findings;
use super::keys::KeyKind;
use crate::name::nearest;
use crate::secret::Secret;

type Value<'d> = &'d Spanned<DeValue<'d>>;

/// A table that is being read.
pub(super) struct Section<'a, 'd, 't> {
    path: String,
    table: &'d DeTable<'d>,
    known: Vec<&'static str>,
    findings: &'a mut Findings<'t>,
}

impl<'a, 'd, 't> Section<'a, 'd, 't> {
    /// Creates a reader of the table under `path`; an empty path is the whole file.
    pub(super) fn new(
        path: String,
        table: &'d DeTable<'d>,
        findings: &'a mut Findings<'t>,
    ) -> Self {
        Self { path, table, known: Vec::new(), findings }
    }

    /// Reports the keys that were never requested.
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

    /// Adds a finding about the value of `key`.
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

    /// Adds a remark about the value of `key`, which is valid.
    pub(super) fn remark(&mut self, span: Range<usize>, key: &str, sentence: String) {
        let key = self.key(key);
        self.findings.remark(span, key, sentence);
    }

    /// Returns the untyped value of a key, with its place.
    pub(super) fn value(&mut self, key: &'static str) -> Option<Value<'d>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.request(key, None);
        self.table.iter().find(|(found, _)| found.get_ref() == key).map(|(_, value)| value)
    }

    /// Returns a non-empty text.
    pub(super) fn text(&mut self, key: &'static str) -> Option<(String, Range<usize>)> {
        self.request(key, Some(KeyKind::Text));
        let value = self.value(key)?;
        let text = self.typed(key, value, "a string", DeValue::as_str)?;
        if text.is_empty() {
            self.object(value.span(), key, format!("`{key}` is empty; leave it out instead"), None);
            return None;
        }
        Some((text.to_owned(), value.span()))
    }

    /// Returns a whole number within `bounds`.
    pub(super) fn number(&mut self, key: &'static str, bounds: RangeInclusive<u64>) -> Option<u64> {
        self.request(key, Some(KeyKind::number(&bounds)));
        let value = self.value(key)?;
        self.whole(key, value, &bounds)
    }

    /// Returns a boolean.
    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.request(key, Some(KeyKind::Flag));
        let value = self.value(key)?;
        self.typed(key, value, "true or false", DeValue::as_bool)
    }

    /// Returns a list of texts, each with its place.
    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<(String, Range<usize>)>> {
        self.request(key, Some(KeyKind::Texts));
        let value = self.value(key)?;
        let items = self.typed(key, value, "a list of strings", DeValue::as_array)?;
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            let text = self.typed(key, item, "a list of strings", DeValue::as_str)?;
            texts.push((text.to_owned(), item.span()));
        }
        Some(texts)
    }

    /// Returns a list of whole numbers within the bounds.
    pub(super) fn numbers(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<u64>,
    ) -> Option<Vec<u64>> {
        self.request(key, Some(KeyKind::Numbers));
        let value = self.value(key)?;
        let items = self.typed(key, value, "a list of numbers", DeValue::as_array)?;
        items.iter().map(|item| self.whole(key, item, &bounds)).collect()
    }

    /// Returns a non-empty text, or the place where it is kept.
    pub(super) fn secret(&mut self, key: &'static str) -> Option<(Secret, Range<usize>)> {
        self.request(key, Some(KeyKind::Secret));
        let value = self.value(key)?;
        if value.get_ref().as_table().is_some() {
            return Some((self.kept(key, value)?, value.span()));
        }
        self.text(key).map(|(text, span)| (Secret::Text(text), span))
    }

    /// Returns a table of texts that may be kept elsewhere, such as an environment.
    pub(super) fn secrets(
        &mut self,
        key: &'static str,
    ) -> BTreeMap<String, (Secret, Range<usize>)> {
        self.request(key, Some(KeyKind::Secrets));
        let Some(value) = self.value(key) else { return BTreeMap::new() };
        let Some(table) = self.typed(key, value, "a table of strings", DeValue::as_table) else {
            return BTreeMap::new();
        };
        let mut map = BTreeMap::new();
        for (name, value) in table {
            let path = format!("{key}.{}", name.get_ref());
            if let Some(secret) = self.kept(&path, value) {
                map.insert(name.get_ref().clone().into_owned(), (secret, name.span()));
            }
        }
        map
    }

    /// Returns a text, or the place where it is kept.
    fn kept(&mut self, path: &str, value: Value<'d>) -> Option<Secret> {
        match value.get_ref().as_table() {
            Some(table) => {
                let key = self.key(path);
                super::secret::place(key, table, value.span(), self.findings).map(Secret::Kept)
            }
            None => self
                .typed(
                    path,
                    value,
                    "a string, or a table with `file` or `credential`",
                    DeValue::as_str,
                )
                .map(|text| Secret::Text(text.to_owned())),
        }
    }

    /// Returns a table of whole numbers within the bounds, each with the place of its name.
    pub(super) fn numbers_by_name(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<u64>,
    ) -> BTreeMap<String, (u64, Range<usize>)> {
        self.request(key, Some(KeyKind::NumbersByName));
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

    /// Returns a table of texts, whose names the author chooses, each with its place.
    pub(super) fn texts_by_name(
        &mut self,
        key: &'static str,
    ) -> BTreeMap<String, (String, Range<usize>)> {
        self.request(key, Some(KeyKind::TextsByName));
        let Some(table) = self.table(key) else { return BTreeMap::new() };
        let mut texts = BTreeMap::new();
        for (name, value) in table {
            let path = format!("{key}.{}", name.get_ref());
            if let Some(text) = self.typed(&path, value, "a string", DeValue::as_str) {
                let place = (text.to_owned(), value.span());
                texts.insert(name.get_ref().clone().into_owned(), place);
            }
        }
        texts
    }

    /// Returns a table below this one; `None` if it is absent.
    pub(super) fn table(&mut self, key: &'static str) -> Option<&'d DeTable<'d>> {
        self.request(key, Some(KeyKind::Table));
        let value = self.value(key)?;
        self.typed(key, value, "a table", DeValue::as_table)
    }

    /// Returns the keys that were not requested so far.
    pub(super) fn unknown(&self) -> Vec<&'d str> {
        self.table
            .iter()
            .map(|(key, _)| key.get_ref().as_ref())
            .filter(|word| !self.known.contains(word))
            .collect()
    }

    /// Returns the collector of the findings, to read a table below this one.
    pub(super) fn findings(&mut self) -> &mut Findings<'t> {
        self.findings
    }

    /// Records a request, for the table of all keys.
    fn request(&mut self, key: &'static str, kind: Option<KeyKind>) {
        if self.findings.are_requests_kept() {
            let path = self.key(key);
            self.findings.request(path, kind);
        }
    }

    /// Returns the path of a key or table below this one.
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
            // The TOML parser accepts any character between two digits.
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

/// Joins words to a list: `a`, `b` and `c`.
pub(super) fn list<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let mut quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match (quoted.pop(), quoted.is_empty()) {
        (None, _) => "none".to_owned(),
        (Some(only), true) => only,
        (Some(last), false) => format!("{} and {last}", quoted.join(", ")),
    }
}

/// Escapes a key from the file so that it fits on one line of a terminal.
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
