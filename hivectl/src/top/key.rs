//! Keys, parsed from the bytes of a terminal.
//!
//! What it is not: a reader. Callers feed bytes, and a sequence may be split anywhere; unknown
//! sequences are skipped.
//!
//! Invariant: no control character leaves it but the line breaks and tabs of a paste.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Ctrl(char),
    /// Text that was pasted, line breaks as `\n`.
    Paste(String),
    Enter,
    /// Enter together with Alt, or Ctrl-J: a line break in a text.
    LineBreak,
    Escape,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Move(Move),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
}

const ESCAPE: u8 = 0x1b;
const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
/// A paste over this is left out; no text that is typed here may be as long.
const PASTE_BYTES_MAX: usize = 64 * 1024;
const SEQUENCE_BYTES_MAX: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Keys {
    pending: Vec<u8>,
    /// Whether the rest of a paste that is too long is still to come; it must not be taken for
    /// keys.
    dropping: bool,
}

enum Parsed {
    Key(Key, usize),
    Nothing(usize),
    TooLong,
    More,
}

impl Keys {
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut at = 0;
        loop {
            let rest = &self.pending[at..];
            if self.dropping {
                let end = rest.windows(PASTE_END.len()).position(|window| window == PASTE_END);
                self.dropping = end.is_none();
                // The end itself may be torn.
                at += end.map_or(rest.len().saturating_sub(PASTE_END.len()), |end| {
                    end + PASTE_END.len()
                });
                if self.dropping {
                    break;
                }
                continue;
            }
            match parse(rest) {
                Parsed::Key(key, length) => {
                    keys.push(key);
                    at += length;
                }
                Parsed::Nothing(length) => at += length,
                Parsed::TooLong => self.dropping = true,
                Parsed::More => break,
            }
        }
        self.pending.drain(..at);
        keys
    }

    /// Returns whether what came last may be the beginning of a sequence: if nothing follows soon,
    /// [`Self::flush`].
    pub(crate) fn is_torn(&self) -> bool {
        !self.pending.is_empty() && !self.dropping && !self.pending.starts_with(PASTE_BEGIN)
    }

    /// Nothing followed: a lone escape was the key, and the rest was none.
    pub(crate) fn flush(&mut self) -> Vec<Key> {
        let escape = self.pending == [ESCAPE];
        self.pending.clear();
        if escape { vec![Key::Escape] } else { Vec::new() }
    }
}

fn parse(bytes: &[u8]) -> Parsed {
    match *bytes {
        [] => Parsed::More,
        [ESCAPE, ..] => sequence(bytes),
        [b'\r', ..] => Parsed::Key(Key::Enter, 1),
        [b'\n', ..] => Parsed::Key(Key::LineBreak, 1),
        [b'\t', ..] => Parsed::Key(Key::Tab, 1),
        [0x7f | 0x08, ..] => Parsed::Key(Key::Backspace, 1),
        [byte @ 0x01..=0x1a, ..] => Parsed::Key(Key::Ctrl(char::from(byte - 1 + b'a')), 1),
        [0x00..=0x1f, ..] => Parsed::Nothing(1),
        [lead, ..] => character(lead, bytes),
    }
}

fn character(lead: u8, bytes: &[u8]) -> Parsed {
    let length = match lead {
        0x00..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        0x80..=0xbf | 0xf8..=0xff => return Parsed::Nothing(1),
    };
    let Some(encoded) = bytes.get(..length) else { return Parsed::More };
    match std::str::from_utf8(encoded).ok().and_then(|text| text.chars().next()) {
        Some(c) if !c.is_control() => Parsed::Key(Key::Char(c), length),
        Some(_) => Parsed::Nothing(length),
        None => Parsed::Nothing(1),
    }
}

fn sequence(bytes: &[u8]) -> Parsed {
    match *bytes {
        [_] | [_, b'O'] | [_, b'['] | [_, b'[', b'['] => Parsed::More,
        [_, b'\r' | b'\n', ..] => Parsed::Key(Key::LineBreak, 2),
        [_, ESCAPE, ..] => Parsed::Key(Key::Escape, 1),
        [_, b'O', last, ..] => named(b"", last, 3),
        // Function keys of the kernel's own console.
        [_, b'[', b'[', _, ..] => Parsed::Nothing(4),
        [_, b'[', ..] if bytes.starts_with(PASTE_BEGIN) => paste(bytes),
        [_, b'[', ref rest @ ..] => {
            let Some(end) = rest.iter().position(|byte| !(0x20..=0x3f).contains(byte)) else {
                return if bytes.len() < SEQUENCE_BYTES_MAX {
                    Parsed::More
                } else {
                    Parsed::Nothing(bytes.len())
                };
            };
            named(&rest[..end], rest[end], end + 3)
        }
        // A key together with Alt: it means nothing here, and must not be taken for the key alone.
        [_, lead, ..] => match character(lead, &bytes[1..]) {
            Parsed::Key(_, length) | Parsed::Nothing(length) => Parsed::Nothing(length + 1),
            Parsed::TooLong | Parsed::More => Parsed::More,
        },
        [] => Parsed::More,
    }
}

/// Returns the key of a sequence with these parameters and this last byte. Shift, Alt and Ctrl
/// beside it are passed over.
fn named(parameters: &[u8], last: u8, length: usize) -> Parsed {
    let number = parameters.split(|byte| *byte == b';').next().unwrap_or_default();
    let key = match (last, number) {
        (b'A', _) => Key::Move(Move::Up),
        (b'B', _) => Key::Move(Move::Down),
        (b'C', _) => Key::Move(Move::Right),
        (b'D', _) => Key::Move(Move::Left),
        (b'H', _) | (b'~', b"1" | b"7") => Key::Move(Move::Home),
        (b'F', _) | (b'~', b"4" | b"8") => Key::Move(Move::End),
        (b'M', b"") => Key::Enter,
        (b'Z', _) => Key::BackTab,
        (b'~', b"3") => Key::Delete,
        (b'~', b"5") => Key::Move(Move::PageUp),
        (b'~', b"6") => Key::Move(Move::PageDown),
        _ => return Parsed::Nothing(length),
    };
    Parsed::Key(key, length)
}

fn paste(bytes: &[u8]) -> Parsed {
    let text = &bytes[PASTE_BEGIN.len()..];
    let Some(end) = text.windows(PASTE_END.len()).position(|window| window == PASTE_END) else {
        return if text.len() < PASTE_BYTES_MAX { Parsed::More } else { Parsed::TooLong };
    };
    let text = String::from_utf8_lossy(&text[..end]).replace("\r\n", "\n").replace('\r', "\n");
    let text = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    Parsed::Key(Key::Paste(text), PASTE_BEGIN.len() + end + PASTE_END.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(bytes: &[u8]) -> Vec<Key> {
        Keys::default().feed(bytes)
    }

    #[test]
    fn characters_and_control_keys_are_distinguished() {
        assert_eq!(fed("aä日🐝".as_bytes()), ['a', 'ä', '日', '🐝'].map(Key::Char));
        assert_eq!(
            fed(b"\r\n\t\x7f\x08\x03\x00\x1f"),
            [Key::Enter, Key::LineBreak, Key::Tab, Key::Backspace, Key::Backspace, Key::Ctrl('c')]
        );
        assert_eq!(fed(b"\xff\xc3(\xc2\x9bx"), [Key::Char('('), Key::Char('x')]);
    }

    #[test]
    fn sequences_are_keys() {
        for (bytes, key) in [
            ("\x1b[A", Key::Move(Move::Up)),
            ("\x1bOB", Key::Move(Move::Down)),
            ("\x1b[1;5C", Key::Move(Move::Right)),
            ("\x1b[D", Key::Move(Move::Left)),
            ("\x1b[H", Key::Move(Move::Home)),
            ("\x1b[4~", Key::Move(Move::End)),
            ("\x1b[5~", Key::Move(Move::PageUp)),
            ("\x1b[6;2~", Key::Move(Move::PageDown)),
            ("\x1b[3~", Key::Delete),
            ("\x1b[Z", Key::BackTab),
            ("\x1bOM", Key::Enter),
            ("\x1b\r", Key::LineBreak),
        ] {
            assert_eq!(fed(bytes.as_bytes()), std::slice::from_ref(&key), "{bytes:?}");
            // A sequence that is split anywhere is the same key, and its pieces yield no other key.
            for at in 1..bytes.len() {
                let mut keys = Keys::default();
                assert_eq!(keys.feed(&bytes.as_bytes()[..at]), [], "{bytes:?} up to {at}");
                assert!(keys.is_torn(), "{bytes:?} up to {at}");
                assert_eq!(
                    keys.feed(&bytes.as_bytes()[at..]),
                    std::slice::from_ref(&key),
                    "{bytes:?} from {at}"
                );
                assert!(!keys.is_torn());
            }
        }
    }

    #[test]
    fn an_unknown_sequence_leaves_nothing_behind() {
        for bytes in
            ["\x1b[15~", "\x1b[[A", "\x1b[<0;3;4M", "\x1bd", "\x1bä", "\x1b[?1;2c", "\x1b[I"]
        {
            assert_eq!(fed(format!("{bytes}z").as_bytes()), [Key::Char('z')], "{bytes:?}");
        }
    }

    #[test]
    fn an_escape_is_one_when_nothing_follows() {
        let mut keys = Keys::default();
        assert_eq!(keys.feed(b"\x1b"), []);
        assert_eq!(keys.flush(), [Key::Escape]);
        assert_eq!(keys.feed(b"\x1b\x1b[A"), [Key::Escape, Key::Move(Move::Up)]);
        assert_eq!(keys.feed(b"\x1b["), []);
        assert_eq!(keys.flush(), []);
        assert_eq!(keys.feed(b"x"), [Key::Char('x')]);
    }

    #[test]
    fn a_paste_is_one_text_whatever_is_in_it() {
        let mut keys = Keys::default();
        assert_eq!(keys.feed(b"\x1b[200~one\r"), []);
        assert!(!keys.is_torn(), "a paste may take its time");
        assert_eq!(
            keys.feed(b"two\x1b[A\x03\x1b[201~q"),
            [Key::Paste("one\ntwo[A".to_owned()), Key::Char('q')]
        );
    }

    #[test]
    fn no_part_of_a_paste_that_is_too_long_is_taken_for_keys() {
        let mut keys = Keys::default();
        assert_eq!(keys.feed(&[PASTE_BEGIN, &vec![b'd'; PASTE_BYTES_MAX]].concat()), []);
        assert!(!keys.is_torn());
        assert_eq!(keys.feed(b"ddd\x1b[20"), []);
        assert_eq!(keys.feed(b"1~q"), [Key::Char('q')]);
    }
}
