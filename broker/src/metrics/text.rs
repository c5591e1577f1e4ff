//! The text format of Prometheus, version 0.0.4.
//!
//! Invariant: each family is written once, with its help and its type before its samples, and a
//! value of a label can have any characters.

use std::fmt::{Display, Write as _};

use crate::measures::Histogram;

/// The content type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, until the process ends.
    Counter,
    /// It grows and shrinks.
    Gauge,
}

/// A page that is being written.
#[derive(Debug, Default)]
pub struct Text(String);

/// A family whose samples are being written.
#[derive(Debug)]
pub struct Family<'t> {
    text: &'t mut String,
    name: &'static str,
}

impl Text {
    /// Begins a family.
    pub fn family(&mut self, kind: Kind, name: &'static str, help: &str) -> Family<'_> {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        self.head(kind, name, help);
        Family { text: &mut self.0, name }
    }

    /// Writes a histogram, whose values are `per_unit` for each unit in which it is shown.
    pub fn histogram(
        &mut self,
        name: &'static str,
        help: &str,
        histogram: &Histogram,
        per_unit: f64,
    ) {
        self.head("histogram", name, help);
        let shown = |value: u64| value as f64 / per_unit;
        let mut count = 0;
        for (bound, up_to) in histogram.buckets() {
            self.line(format_args!("{name}_bucket{{le=\"{}\"}} {up_to}", shown(bound)));
            count = up_to;
        }
        count += histogram.above();
        self.line(format_args!("{name}_bucket{{le=\"+Inf\"}} {count}"));
        self.line(format_args!("{name}_sum {}", shown(histogram.sum())));
        self.line(format_args!("{name}_count {count}"));
    }

    /// Returns the page.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }

    fn head(&mut self, kind: &str, name: &str, help: &str) {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string succeeds.
        let _written = writeln!(self.0, "{line}");
    }
}

impl Family<'_> {
    /// Writes a sample.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        self.text.push_str(self.name);
        for (number, (label, value)) in labels.iter().enumerate() {
            self.text.push(if number == 0 { '{' } else { ',' });
            self.text.push_str(label);
            self.text.push_str("=\"");
            for c in value.chars() {
                match c {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    other => self.text.push(other),
                }
            }
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        // Writing to a string succeeds.
        let _written = writeln!(self.text, " {value}");
        self
    }
}

/// Returns a name of the core as the value of a label.
#[must_use]
pub fn label(name: impl Display) -> String {
    name.to_string().replace(' ', "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measures::{Commit, Measures};
    use std::time::Duration;

    #[test]
    fn a_label_can_have_any_characters() {
        let mut text = Text::default();
        text.family(Kind::Gauge, "hive_x", "A \\ and\na line.")
            .sample(&[("a", "x\\y\"z\nä"), ("b", "")], 1)
            .sample(&[], 0.5);
        assert_eq!(
            text.into_string(),
            "# HELP hive_x A \\\\ and\\na line.\n# TYPE hive_x gauge\n\
             hive_x{a=\"x\\\\y\\\"z\\nä\",b=\"\"} 1\nhive_x 0.5\n"
        );
    }

    #[test]
    fn a_histogram_is_cumulative_and_ends_with_all() {
        let measures = Measures::default();
        for (items, micros) in [(1, 80), (600, 300), (2, 9_000_000)] {
            let took = Duration::from_micros(micros);
            measures.committed(Commit { took, sync: took / 2, items });
        }
        let mut text = Text::default();
        text.histogram("hive_s", "Times.", &measures.commit, 1e9);
        text.histogram("hive_n", "Items.", &measures.items, 1.0);
        let text = text.into_string();
        for line in [
            "# TYPE hive_s histogram",
            "hive_s_bucket{le=\"0.0001\"} 1",
            "hive_s_bucket{le=\"0.0005\"} 2",
            "hive_s_bucket{le=\"5\"} 2",
            "hive_s_bucket{le=\"+Inf\"} 3",
            "hive_s_sum 9.00038",
            "hive_s_count 3",
            "hive_n_bucket{le=\"2\"} 2",
            "hive_n_bucket{le=\"512\"} 2",
            "hive_n_sum 603",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
    }
}
