//! Text that is safe to show: nothing in it acts on a terminal, hides, or breaks a line unseen.
//!
//! What it is not: the product's own lists of characters; it is a second opinion on them.
//! Invariant: what is taken for invisible here is so in Unicode (`Default_Ignorable_Code_Point`,
//! controls, separators of lines), but for what scripts and emoji need.

/// Whether a character must not stand in what a model or a terminal is shown, line ends and tabs
/// apart.
pub fn acts_or_hides(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        // Letters that have no shape, and joiners that join nothing.
        | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}')
}

/// The first character of a text that must not be shown.
pub fn offender(text: &str) -> Option<char> {
    text.chars().find(|c| acts_or_hides(*c))
}

/// Whether a text is one line without control characters.
pub fn one_line(text: &str) -> bool {
    !text.contains(char::is_control)
}
