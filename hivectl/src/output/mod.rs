//! Output to stdout: a table or text for people, or JSON for programs.
//!
//! The JSON shape is one for all commands. An object carries its schema:
//! `{"schema":"hive.turn.v1","id":12,...}`. A list is an array of such objects, and an empty one is
//! `[]`. A stream (`--follow`) is one object per line. Within a schema version fields are only
//! added. Every field is always present, `null` without a value; times are ISO 8601 in UTC; choices
//! are lower-case words.
//!
//! Invariant: this module alone writes to stdout, but for the screen of `top`.

pub(crate) mod progress;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod wrap;

use std::io::{self, IsTerminal as _, Write};

use schemars::JsonSchema;
use serde::Serialize;

use self::style::Style;
use crate::error::Failure;

pub(crate) trait View: JsonSchema + Serialize {
    /// The name and version of its JSON.
    const SCHEMA: &'static str;
}

/// Something that is a row of a table.
pub(crate) trait Row: View {
    const HEADER: &'static [&'static str];
    /// A note to a person if there is no row.
    const NONE: &'static str;
    /// One cell for each column; the last one may be cut to the terminal's width.
    fn cells(&self, style: &Style) -> Vec<String>;
}

pub(crate) trait Text: View {
    /// Returns the lines, without the final line break.
    fn text(&self, style: &Style) -> String;
}

/// A view with its schema, as it is printed.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Tagged<'v, V> {
    /// The name and version of this shape.
    schema: &'static str,
    #[serde(flatten)]
    view: &'v V,
}

/// Returns a view with its schema.
pub(crate) fn tagged<V: View>(view: &V) -> Tagged<'_, V> {
    Tagged { schema: V::SCHEMA, view }
}

#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    pub(crate) style: Style,
    writer: io::Stdout,
}

impl Output {
    pub(crate) fn stdout(json: bool) -> Self {
        let stdout = io::stdout();
        let style = if stdout.is_terminal() { Style::terminal() } else { Style::plain() };
        Self { json, style, writer: stdout }
    }

    pub(crate) fn list<V: Row>(&mut self, rows: &[V]) -> Result<(), Failure> {
        if self.json {
            let rows: Vec<_> = rows.iter().map(tagged).collect();
            return self.json_line(&rows);
        }
        if rows.is_empty() {
            note(V::NONE);
            return Ok(());
        }
        let text = table::render(
            V::HEADER,
            rows.iter().map(|row| row.cells(&self.style)).collect(),
            &self.style,
        );
        self.write(&text)
    }

    pub(crate) fn one<V: Text>(&mut self, view: &V) -> Result<(), Failure> {
        self.one_as(view, V::text)
    }

    /// Prints one thing, to a person in these words.
    pub(crate) fn one_as<V: View>(
        &mut self,
        view: &V,
        describe: impl FnOnce(&V, &Style) -> String,
    ) -> Result<(), Failure> {
        if self.json {
            return self.json_line(&tagged(view));
        }
        let text = describe(view, &self.style);
        self.write(&format!("{text}\n"))
    }

    /// Prints several things one below the other; as JSON they are a list.
    pub(crate) fn each<V: Text>(&mut self, views: &[V]) -> Result<(), Failure> {
        if self.json {
            let views: Vec<_> = views.iter().map(tagged).collect();
            return self.json_line(&views);
        }
        views.iter().try_for_each(|view| self.one(view))
    }

    /// Prints a line of text; only for output without JSON.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.write(&format!("{text}\n"))
    }

    /// Prints bytes; only for output that is no text.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes).and_then(|()| self.writer.flush())
    }

    fn json_line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value).expect("views have string keys and finite numbers");
        self.write(&format!("{text}\n"))
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.writer
            .write_all(text.as_bytes())
            .and_then(|()| self.writer.flush())
            .map_err(Failure::Output)
    }
}

/// Prints a note to a person, to stderr.
pub(crate) fn note(text: &str) {
    // A closed stderr is no failure.
    let _ = writeln!(io::stderr(), "{text}");
}
