//! Small drawings in a terminal: horizontal bars and vertical columns.
//!
//! Invariant: no line is wider than the terminal, unless it is too narrow for anything; a value
//! above 0 is always visible.

use hive_core::time::WallTime;

use crate::output::style::Style;
use crate::output::wrap::{cut, width};

const BAR_COLUMNS: usize = 40;
/// Most columns of a name beside a bar.
const NAME_COLUMNS: usize = 40;
/// Lines of a column.
const HEIGHT: u64 = 5;
/// A column is at most so wide, with the space beside it.
const COLUMN_WIDTH: usize = 3;
/// The parts of a line, or of a character of a line, that can be filled.
const EIGHTHS: u64 = 8;

const LYING: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
const STANDING: [char; 8] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇'];

pub(super) fn bars(rows: &[(String, u64)], style: &Style) -> String {
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let numbers = most.to_string().len();
    let names = rows
        .iter()
        .map(|(name, _)| width(name))
        .max()
        .unwrap_or(0)
        .min(NAME_COLUMNS)
        .min(style.width / 2);
    let room = style.width.saturating_sub(names + numbers + 6).clamp(1, BAR_COLUMNS);
    let lines = rows.iter().map(|(name, count)| {
        let name = cut(name, names);
        let space = " ".repeat(names.saturating_sub(width(&name)));
        format!("  {name}{space}  {count:>numbers$}  {}", bar(*count, most, room, style.blocks))
    });
    lines.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

fn bar(count: u64, most: u64, room: usize, blocks: bool) -> String {
    let parts = share(count, most, room as u64 * EIGHTHS);
    let (whole, rest) = (as_columns(parts / EIGHTHS), (parts % EIGHTHS) as usize);
    if !blocks {
        return "#".repeat(whole.max(usize::from(count > 0)));
    }
    let mut bar = "█".repeat(whole);
    bar.extend((rest > 0).then(|| LYING[rest]));
    bar
}

/// Draws columns side by side, below a label for the highest and above the times of their begin and
/// end.
pub(super) fn columns(
    values: &[u64],
    label: fn(u64) -> String,
    (start, end): (Option<WallTime>, Option<WallTime>),
    style: &Style,
) -> String {
    let margin = |most: u64| width(&label(most)).max(1);
    // Too many values are added up below, and the sums may need a wider label. So there is space
    // for the label of the total.
    let room = style.width.saturating_sub(margin(values.iter().sum()) + 4).max(1);
    let together = values.len().div_ceil(room).max(1);
    let values: Vec<u64> = values.chunks(together).map(|chunk| chunk.iter().sum()).collect();
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let wide = (room / values.len().max(1)).clamp(1, COLUMN_WIDTH);
    let margin = margin(most);
    let (side, corner, floor) = if style.blocks { ('│', '└', "─") } else { ('|', '+', "-") };
    let mut lines = Vec::new();
    for line in (0..HEIGHT).rev() {
        let mark = if line + 1 == HEIGHT { label(most) } else { String::new() };
        let mut text = format!("  {mark:>margin$} {side}");
        for value in &values {
            let parts =
                share(*value, most, HEIGHT * EIGHTHS).saturating_sub(line * EIGHTHS).min(EIGHTHS);
            let c = filled(parts, style.blocks);
            let shown = if wide > 1 { wide - 1 } else { 1 };
            text.extend(
                std::iter::repeat_n(c, shown).chain(std::iter::repeat_n(' ', wide - shown)),
            );
        }
        lines.push(text.trim_end().to_owned());
    }
    let floor_columns = wide * values.len();
    lines.push(format!(
        "  {:>margin$} {corner}{}",
        label(0).chars().next().unwrap_or('0'),
        floor.repeat(floor_columns)
    ));
    let (start, end) = (style.time(start), style.time(end));
    let between = floor_columns.saturating_sub(width(&start) + width(&end)).max(1);
    lines.push(format!("  {:margin$}  {start}{}{end}", "", " ".repeat(between)));
    lines.join("\n")
}

fn filled(eighths: u64, blocks: bool) -> char {
    match (eighths, blocks) {
        (0, _) => ' ',
        (EIGHTHS.., true) => '█',
        (part, true) => STANDING[part as usize],
        (part, false) => {
            if part * 2 >= EIGHTHS {
                '#'
            } else {
                '.'
            }
        }
    }
}

/// Returns the share of a count in parts; at least one for a count above 0.
fn share(count: u64, most: u64, parts: u64) -> u64 {
    let share = u128::from(count) * u128::from(parts) / u128::from(most.max(1));
    u64::try_from(share).unwrap_or(parts).clamp(u64::from(count > 0), parts)
}

fn as_columns(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(columns: usize, blocks: bool) -> Style {
        let mut style = Style::plain();
        (style.width, style.blocks) = (columns, blocks);
        style
    }

    const VALUES: [u64; 24] =
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 40, 39, 21, 1, 0, 0, 0, 5, 0, 0, 1];

    fn drawn(wide: usize, blocks: bool) -> String {
        let rows = [("mcp__hive__send", 160), ("Read", 3), ("ein-日本語", 0)]
            .map(|(name, count)| (name.to_owned(), count));
        let style = style(wide, blocks);
        format!(
            "{}\n\n{}",
            bars(&rows, &style),
            columns(&VALUES, |value| value.to_string(), (None, None), &style)
        )
    }

    #[test]
    fn bars_and_columns_are_drawn_with_blocks_or_with_letters() {
        insta::assert_snapshot!("blocks", drawn(100, true));
        insta::assert_snapshot!("letters", drawn(100, false));
        assert!(
            drawn(100, false).is_ascii() || drawn(100, false).contains('日'),
            "only the name is not ASCII"
        );
    }

    #[test]
    fn nothing_is_wider_than_the_terminal_and_no_turn_is_lost() {
        insta::assert_snapshot!("narrow", drawn(30, true));
        for wide in 24..120 {
            for line in drawn(wide, true).lines() {
                assert!(width(line) <= wide, "{wide}: {line:?}");
            }
        }
        let few = [0, 0, 1, 1_000_000];
        let few = columns(&few, |value| value.to_string(), (None, None), &style(60, true));
        assert!(few.contains('▁'), "one beside a million is still there: {few}");
    }
}
