//! A text that is being typed, with a cursor.
//!
//! Invariant: the cursor is between characters, and the text never exceeds its limit.

/// The text and the position of the cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field {
    text: String,
    /// In bytes.
    cursor: usize,
}

impl Field {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text before the cursor, and the text after it.
    pub(crate) fn halves(&self) -> (&str, &str) {
        self.text.split_at(self.cursor)
    }

    /// Inserts a text at the cursor; returns `false` if that exceeded `bytes_max`.
    pub(crate) fn insert(&mut self, text: &str, bytes_max: usize) -> bool {
        if self.text.len() + text.len() > bytes_max {
            return false;
        }
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        true
    }

    /// Takes the character before the cursor away.
    pub(crate) fn backspace(&mut self) {
        if self.cursor > 0 {
            self.left();
            self.text.remove(self.cursor);
        }
    }

    /// Takes the character after the cursor away.
    pub(crate) fn delete(&mut self) {
        if self.cursor < self.text.len() {
            self.text.remove(self.cursor);
        }
    }

    pub(crate) fn cut_before(&mut self) {
        self.text.drain(..self.cursor);
        self.cursor = 0;
    }

    pub(crate) fn left(&mut self) {
        self.cursor -= self.text[..self.cursor].chars().next_back().map_or(0, char::len_utf8);
    }

    pub(crate) fn right(&mut self) {
        self.cursor += self.text[self.cursor..].chars().next().map_or(0, char::len_utf8);
    }

    pub(crate) fn home(&mut self) {
        self.cursor = 0;
    }

    pub(crate) fn end(&mut self) {
        self.cursor = self.text.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_edited_at_the_cursor_whatever_the_characters_take() {
        let mut field = Field::default();
        assert!(field.insert("aä日", 100));
        field.left();
        field.backspace();
        assert_eq!(field.halves(), ("a", "日"));
        assert!(field.insert("🐝", 100));
        field.delete();
        field.delete();
        assert_eq!(field.halves(), ("a🐝", ""));
        field.right();
        field.home();
        field.backspace();
        field.left();
        field.right();
        assert_eq!(field.halves(), ("a", "🐝"));
        field.cut_before();
        field.end();
        assert_eq!(field.halves(), ("🐝", ""));
    }

    #[test]
    fn the_log_does_not_exceed_its_limit() {
        let mut field = Field::default();
        assert!(field.insert("ab", 3));
        assert!(!field.insert("ä", 3));
        assert!(field.insert("c", 3));
        assert_eq!(field.text(), "abc");
    }
}
