//! The distribution of the screen's lines: pure arithmetic for drawing and for keys that turn
//! pages.
//!
//! ```text
//! header            1
//! title, rows       waits on you
//! title, rows       stuck
//! title, rows       agents
//! status            1
//! keys              1
//! ```

/// Columns below which there is no use in drawing.
pub(crate) const COLUMNS_MIN: u16 = 40;
/// Lines below which there is no use in drawing.
pub(crate) const LINES_MIN: u16 = 10;
/// Lines that are no rows of a pane: header, status, keys, and a title for each pane.
const FIXED_LINES: u16 = 6;

pub(crate) fn too_small((columns, lines): (u16, u16)) -> bool {
    columns < COLUMNS_MIN || lines < LINES_MIN
}

/// Returns how many rows each pane gets of those that it wants. A pane that wants less than its
/// share leaves the rest to the others.
pub(crate) fn rows(lines: u16, wanted: [usize; 3]) -> [u16; 3] {
    let mut left = lines.saturating_sub(FIXED_LINES);
    let mut given = [0; 3];
    let mut order = [0, 1, 2];
    order.sort_by_key(|pane| wanted[*pane]);
    for (served, pane) in (0_u16..).zip(order) {
        // The last one takes what rounding left over.
        let share = left / (3 - served);
        given[pane] = u16::try_from(wanted[pane]).unwrap_or(u16::MAX).min(share);
        left -= given[pane];
    }
    given
}

/// Returns the first row to show, so that the chosen one is among those that fit. Returns the lines
/// of the options and of the text above them, in the form of an answer. The last two of its lines
/// are the text of the answer and its fault; of the rest the options get at most a half.
pub(crate) fn form(height: u16, options: usize) -> (u16, usize) {
    let between = height.saturating_sub(3);
    let options = u16::try_from(options).unwrap_or(u16::MAX).min(between.div_ceil(2));
    (options, usize::from(between - options))
}

/// Returns the lines between the header and the footer.
pub(crate) fn body(height: u16) -> u16 {
    height.saturating_sub(3)
}

pub(crate) fn first_row(chosen: usize, count: usize, rows: u16) -> usize {
    let rows = usize::from(rows);
    chosen.saturating_sub(rows / 2).min(count.saturating_sub(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_fairly() {
        assert_eq!(rows(24, [1000, 1000, 1000]), [6, 6, 6]);
        assert_eq!(rows(24, [0, 0, 1000]), [0, 0, 18]);
        assert_eq!(rows(24, [2, 0, 5]), [2, 0, 5]);
        assert_eq!(rows(24, [100, 1, 100]), [8, 1, 9]);
        assert_eq!(rows(10, [9, 9, 9]), [1, 1, 2]);
        assert_eq!(rows(3, [9, 9, 9]), [0, 0, 0]);
    }

    #[test]
    fn the_chosen_row_is_always_among_those_shown() {
        for count in 0..20 {
            for rows in 1..10 {
                for chosen in 0..count {
                    let first = first_row(chosen, count, rows);
                    assert!(
                        first <= chosen && chosen < first + usize::from(rows),
                        "{chosen} of {count} in {rows}"
                    );
                }
            }
        }
    }
}
