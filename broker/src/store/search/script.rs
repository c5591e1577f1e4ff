//! Scripts without spaces between words: each of their characters is one word in the index.
//!
//! The tokenizer of SQLite takes a run of letters as one word, so a whole sentence in Chinese or
//! Japanese would be one. Invariant: the same function cuts texts and searches. So a run of such
//! characters in a search is the phrase of its characters, found if they follow each other.

use std::borrow::Cow;

/// Puts a space around each character of such a script. Any other text stays as it is.
pub(super) fn cut(text: &str) -> Cow<'_, str> {
    if !text.contains(is_word) {
        return Cow::Borrowed(text);
    }
    let mut cut = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if is_word(c) {
            cut.extend([' ', c, ' ']);
        } else {
            cut.push(c);
        }
    }
    Cow::Owned(cut)
}

/// Returns whether a character is a word by itself: Han, Hiragana, Katakana, Bopomofo, and the
/// syllables of Hangul, whose words carry their particles without a space.
fn is_word(c: char) -> bool {
    matches!(c,
        '\u{3005}'..='\u{3007}'     // iteration mark, closing mark, zero
        | '\u{3041}'..='\u{3096}' | '\u{309D}'..='\u{309F}'
        | '\u{30A1}'..='\u{30FA}' | '\u{30FC}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' | '\u{FF66}'..='\u{FF9F}'
        | '\u{3105}'..='\u{312F}' | '\u{31A0}'..='\u{31BF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFD}'
        | '\u{AC00}'..='\u{D7A3}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_these_scripts_are_cut() {
        assert!(matches!(cut("plain, Größe, привет, สวัสดี"), Cow::Borrowed(_)));
        let words =
            |text: &str| cut(text).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words("Rust言語 v2"), ["Rust", "言", "語", "v2"]);
        assert_eq!(words("データの山々"), ["デ", "ー", "タ", "の", "山", "々"]);
        assert_eq!(words("한국어를 a"), ["한", "국", "어", "를", "a"]);
        assert_eq!(words("ﾃﾞｰﾀ、晴れ。"), ["ﾃ", "ﾞ", "ｰ", "ﾀ", "、", "晴", "れ", "。"]);
    }
}
