//! Hidden characters: characters that a model reads and a person does not see. Text of a peer may
//! not contain them.
//!
//! Invariant: this is the only list; each program shows these characters in its own way.

/// Returns whether a character is invisible, changes the direction of text, or ends a line
/// invisibly. Line ends, tabs and other controls below U+0020 are not covered. Joiners (U+200C,
/// U+200D) are excluded: scripts and emoji need them.
#[must_use]
pub fn hides(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        // Letters without a shape, and marks of notations that are not used here.
        | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_mail_counts_as_seen() {
        for c in "aä字🙂 \u{200c}\u{200d}\u{300}".chars() {
            assert!(!hides(c), "{c:?} is seen, or needed");
        }
        for c in ['\u{202e}', '\u{e0041}', '\u{3164}', '\u{ad}', '\u{85}', '\u{2028}'] {
            assert!(hides(c), "{c:?}");
        }
    }
}
