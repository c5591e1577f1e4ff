//! Plots of the report: a picture of each workload, with a bar for the median of each figure, a
//! line from its smallest to its largest value, and a mark for each bound.
//!
//! Invariant: the figures of one unit have one scale, which begins at zero.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::report::Line;

/// Width of the picture, and where the bars begin and end.
const WIDTH: f64 = 900.0;
const LEFT: f64 = 330.0;
const RIGHT: f64 = 800.0;
/// Height of a figure, and of the heading of a unit.
const ROW: f64 = 22.0;
const BAR: f64 = 12.0;
const STYLE: &str = "text{font:12px sans-serif;fill:#222}.h{font-weight:bold}.bar{fill:#7aa6c2}\
                     .missed{fill:#d08770}.whisker{stroke:#222}.bound{stroke:#a03030;stroke-dasharray:3 2}";

/// Writes `WORKLOAD.svg` into a directory for each workload of the report.
pub(crate) fn write(lines: &[Line], dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir)?;
    let mut workloads: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        workloads.entry(line.workload).or_default().push(line);
    }
    for (workload, lines) in workloads {
        std::fs::write(dir.join(format!("{workload}.svg")), picture(workload, &lines)?)?;
    }
    Ok(())
}

/// Returns the picture of one workload.
fn picture(workload: &str, lines: &[&Line]) -> Result<String, std::fmt::Error> {
    let mut units: Vec<&str> = Vec::new();
    for line in lines {
        if !units.contains(&line.unit) {
            units.push(line.unit);
        }
    }
    let (mut body, mut y) = (String::new(), ROW);
    text(&mut body, (10.0, y), "h", workload)?;
    for unit in units {
        let of_unit: Vec<&&Line> = lines.iter().filter(|line| line.unit == unit).collect();
        let scale = of_unit.iter().map(|line| reach(line)).fold(f64::MIN_POSITIVE, f64::max);
        y += 1.5 * ROW;
        text(&mut body, (LEFT, y), "h", if unit.is_empty() { "ratio" } else { unit })?;
        for line in of_unit {
            y += ROW;
            row(&mut body, y, line, |value| {
                LEFT + (RIGHT - LEFT) * (value / scale).clamp(0.0, 1.0)
            })?;
        }
    }
    let height = y + ROW;
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\">\n\
         <style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n"
    ))
}

/// Returns the largest value of a figure and its bounds.
fn reach(line: &Line) -> f64 {
    let bounds = line.bounds.iter().flat_map(|bounds| bounds.all());
    bounds.fold(line.sample.quantile(1.0), f64::max)
}

/// Draws one figure.
fn row(out: &mut String, y: f64, line: &Line, x: impl Fn(f64) -> f64) -> std::fmt::Result {
    let (median, middle) = (line.sample.median(), y - BAR / 2.0 + 2.0);
    let (min, max) = (line.sample.quantile(0.0), line.sample.quantile(1.0));
    let is_missed = line.bounds.is_some_and(|bounds| !bounds.is_met_by(median));
    let class = if is_missed { "missed" } else { "bar" };
    text(out, (10.0, y), "what", &line.what)?;
    writeln!(
        out,
        "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\"/>",
        middle - BAR / 2.0,
        x(median) - LEFT
    )?;
    stroke(out, "whisker", (x(min), middle), (x(max), middle))?;
    for end in [min, max] {
        stroke(out, "whisker", (x(end), middle - 3.0), (x(end), middle + 3.0))?;
    }
    for bound in line.bounds.iter().flat_map(|bounds| bounds.all()) {
        stroke(out, "bound", (x(bound), middle - 9.0), (x(bound), middle + 9.0))?;
    }
    let digits = if median.abs() >= 100.0 { 0 } else { 2 };
    text(out, (RIGHT + 10.0, y), "value", &format!("{median:.digits$}"))
}

fn stroke(out: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) -> std::fmt::Result {
    let ((x1, y1), (x2, y2)) = (from, to);
    writeln!(
        out,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    )
}

fn text(out: &mut String, (x, y): (f64, f64), class: &str, text: &str) -> std::fmt::Result {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    writeln!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{y:.1}\">{text}</text>")
}
