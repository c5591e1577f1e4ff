//! Splitting of a stream of bytes into lines of limited length.
//!
//! Invariant: for any input, the memory stays within the limit, and every line is returned once, as
//! valid UTF-8.

/// A line, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its text, with invalid bytes replaced.
    pub text: String,
    /// Whether its end was cut off.
    pub cut: bool,
}

/// A splitter of bytes into lines.
#[derive(Debug)]
pub struct Splitter {
    bytes_max: usize,
    begun: Vec<u8>,
    cut: bool,
}

impl Splitter {
    /// Creates a splitter for lines of at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, begun: Vec::new(), cut: false }
    }

    /// Adds bytes and returns the lines that they complete.
    pub fn push(&mut self, mut bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.keep(&bytes[..end]);
            lines.push(self.end_line());
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
        lines
    }

    /// Returns the last line, if the stream ended without a line end.
    pub fn finish(&mut self) -> Option<Line> {
        (!self.begun.is_empty() || self.cut).then(|| self.end_line())
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.bytes_max.saturating_sub(self.begun.len());
        self.cut |= bytes.len() > room;
        self.begun.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self) -> Line {
        let bytes = std::mem::take(&mut self.begun);
        let cut = std::mem::take(&mut self.cut);
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Line { text, cut }
    }
}

/// Returns the longest beginning of a text that has at most `bytes_max` bytes.
pub fn beginning(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// Returns the longest end of a text that has at most `bytes_max` bytes.
pub fn ending(text: &str, bytes_max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes_max))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[Line]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn lines_come_out_whole_whatever_the_pieces() {
        let mut splitter = Splitter::new(100);
        assert!(splitter.push(b"a").is_empty());
        assert_eq!(texts(&splitter.push(b"b\nc\n\nd")), ["ab", "c", ""]);
        assert_eq!(splitter.finish().map(|line| line.text), Some("d".to_owned()));
        assert_eq!(splitter.finish(), None);
    }

    #[test]
    fn long_lines_are_cut_and_the_next_is_whole() {
        let mut splitter = Splitter::new(3);
        assert!(splitter.push(b"abc").is_empty());
        let lines = splitter.push(b"defgh\nij\n");
        assert_eq!(
            lines,
            [Line { text: "abc".into(), cut: true }, Line { text: "ij".into(), cut: false }]
        );
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(texts(&Splitter::new(9).push(b"a\xffb\n")), ["a\u{fffd}b"]);
    }

    #[test]
    fn cuts_respect_characters() {
        assert_eq!((beginning("aä", 2), ending("äa", 2), ending("abc", 9)), ("a", "a", "abc"));
    }
}
