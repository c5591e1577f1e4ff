//! The report: all figures with their bounds, as a table and as JSON.
//!
//! Invariant: a figure is judged by its median, and no verdict ends the bench.

use std::fmt;

use serde_json::{Value, json};

use crate::sample::Sample;

/// What a figure should be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    is_least: bool,
    must: f64,
    target: Option<f64>,
    moonshot: Option<f64>,
}

impl Bounds {
    /// Returns bounds for a figure that should be small.
    pub(crate) fn most(must: f64, target: f64, moonshot: f64) -> Self {
        Self { is_least: false, must, target: Some(target), moonshot: Some(moonshot) }
    }

    /// Returns bounds for a figure that should be large.
    pub(crate) fn least(must: f64, target: f64, moonshot: f64) -> Self {
        Self { is_least: true, ..Self::most(must, target, moonshot) }
    }

    /// Returns bounds for a figure that should be small, with one target.
    pub(crate) fn most_with_target(must: f64, target: f64) -> Self {
        Self { is_least: false, must, target: Some(target), moonshot: None }
    }

    /// Returns the one bound of a figure that should be small.
    pub(crate) fn only_most(must: f64) -> Self {
        Self { is_least: false, must, target: None, moonshot: None }
    }

    /// Returns the one bound of a figure that should be large.
    pub(crate) fn only_least(must: f64) -> Self {
        Self { is_least: true, ..Self::only_most(must) }
    }

    /// Returns the bounds that are set.
    pub(crate) fn all(self) -> impl Iterator<Item = f64> {
        [Some(self.must), self.target, self.moonshot].into_iter().flatten()
    }

    /// Returns whether this value is as it must be.
    pub(crate) fn is_met_by(self, value: f64) -> bool {
        self.is_met(value, self.must)
    }

    fn is_met(self, value: f64, bound: f64) -> bool {
        if self.is_least { value >= bound } else { value <= bound }
    }

    /// Returns the farthest bound that this value meets.
    fn verdict(self, value: f64) -> &'static str {
        let meets = |bound: Option<f64>| bound.is_some_and(|bound| self.is_met(value, bound));
        match () {
            () if meets(self.moonshot) => "moonshot",
            () if meets(self.target) => "target",
            () if meets(Some(self.must)) => "met",
            () => "MISSED",
        }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_least, must, target, moonshot } = self;
        write!(f, "{} {must}", if *is_least { ">=" } else { "<=" })?;
        for further in [target, moonshot].into_iter().flatten() {
            write!(f, "; {further}")?;
        }
        Ok(())
    }
}

/// A figure.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) workload: &'static str,
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) sample: Sample,
    pub(crate) bounds: Option<Bounds>,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Report {
    lines: Vec<Line>,
    /// Why the run does not count; `None`: nothing was compared that decides it.
    faults: Option<Vec<String>>,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a figure; `bound` says what it should be at most.
    pub(crate) fn add(
        &mut self,
        workload: &'static str,
        what: &str,
        unit: &'static str,
        sample: Sample,
        bound: Option<&'static str>,
    ) {
        let bound = bound.and_then(|text| text.parse().ok()).map(Bounds::only_most);
        self.figure(workload, what, unit, sample, bound);
    }

    /// Adds a figure with these bounds.
    pub(crate) fn figure(
        &mut self,
        workload: &'static str,
        what: &str,
        unit: &'static str,
        sample: Sample,
        bounds: Option<Bounds>,
    ) {
        self.lines.push(Line { workload, what: what.to_owned(), unit, sample, bounds });
    }

    /// Adds the median and the p95 of a time in milliseconds; `bound` is for the p95.
    pub(crate) fn add_quantiles(
        &mut self,
        workload: &'static str,
        what: &str,
        sample: Sample,
        bound: &'static str,
    ) {
        let p95 = [sample.quantile(0.95)].into_iter().collect();
        self.add(workload, &format!("{what}: p50"), "ms", sample, None);
        self.add(workload, &format!("{what}: p95"), "ms", p95, Some(bound));
    }

    /// Adds what the reference server reaches of Redis; below `least` the run does not count.
    pub(crate) fn reference(&mut self, workload: &'static str, of_redis: Sample, least: f64) {
        let reached = of_redis.median();
        let faults = self.faults.get_or_insert_default();
        if reached < least {
            faults.push(format!("ref reaches {reached:.2} of Redis in {workload}, not {least}"));
        }
        let bounds = Some(Bounds::only_least(least));
        self.figure(workload, "accepted, ref / Redis", "", of_redis, bounds);
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns all figures.
    pub(crate) fn json(&self) -> Value {
        let figures: Vec<Value> = self.lines.iter().map(figure).collect();
        let counts = self.faults.as_ref().map(Vec::is_empty);
        json!({ "counts": counts, "faults": self.faults, "figures": figures })
    }
}

fn figure(line: &Line) -> Value {
    let Line { workload, what, unit, sample, bounds } = line;
    let median = sample.median();
    let mut figure = json!({
        "workload": workload,
        "what": what,
        "unit": unit,
        "median": median,
        "min": sample.quantile(0.0),
        "max": sample.quantile(1.0),
        "values": sample.values(),
    });
    if let Some(bounds) = bounds {
        let met = |bound: f64| bounds.is_met(median, bound);
        figure["bounds"] = json!({
            "is": if bounds.is_least { "least" } else { "most" },
            "must": bounds.must,
            "target": bounds.target,
            "moonshot": bounds.moonshot,
        });
        figure["met"] = json!({
            "must": met(bounds.must),
            "target": bounds.target.map(met),
            "moonshot": bounds.moonshot.map(met),
        });
    }
    figure
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<4} {:<52} {:>10} {:>24} {:<5} {:<22} VERDICT",
            "", "WHAT", "MEDIAN", "(MIN .. MAX)", "UNIT", "MUST; TARGET; MOONSHOT"
        )?;
        for Line { workload, what, unit, sample, bounds } in &self.lines {
            let spread = format!("({:.2} .. {:.2})", sample.quantile(0.0), sample.quantile(1.0));
            let (median, bounds) = (sample.median(), *bounds);
            let verdict = bounds.map_or("", |bounds| bounds.verdict(median));
            let bounds = bounds.map(|bounds| bounds.to_string()).unwrap_or_default();
            writeln!(
                f,
                "{workload:<4} {what:<52} {median:>10.2} {spread:>24} {unit:<5} {bounds:<22} {verdict}"
            )?;
        }
        match self.faults.as_deref() {
            None => Ok(()),
            Some([]) => writeln!(f, "This run counts: the reference server is fast enough."),
            Some(faults) => writeln!(f, "THIS RUN DOES NOT COUNT: {}.", faults.join("; ")),
        }
    }
}
