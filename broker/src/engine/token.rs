//! Tokens: secrets that prove a lease or a session.

use std::cell::RefCell;

/// Random bits of one token, in bytes.
const BYTES: usize = 16;
/// Tokens whose bits are fetched at once.
const AT_ONCE: usize = 32;

/// Random bytes that no token has used yet.
struct Pool {
    bytes: [u8; BYTES * AT_ONCE],
    used: usize,
}

thread_local! {
    static POOL: RefCell<Pool> =
        const { RefCell::new(Pool { bytes: [0; BYTES * AT_ONCE], used: BYTES * AT_ONCE }) };
}

impl Pool {
    /// Returns bytes that no other token has; memory keeps no copy of them.
    fn take(&mut self) -> [u8; BYTES] {
        if self.used == self.bytes.len() {
            getrandom::fill(&mut self.bytes).expect("Linux has random numbers once it has booted");
            self.used = 0;
        }
        let mut bytes = [0; BYTES];
        bytes.swap_with_slice(&mut self.bytes[self.used..self.used + BYTES]);
        self.used += BYTES;
        bytes
    }
}

/// Returns a new secret of 128 random bits, as 32 hexadecimal digits.
pub(crate) fn new() -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bytes = [0; BYTES];
    if !hive_fault::fill(&mut bytes) {
        bytes = POOL.with_borrow_mut(Pool::take);
    }
    let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    nibbles.map(|nibble| char::from(DIGITS[usize::from(nibble)])).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    #[test]
    fn no_token_is_given_twice() {
        let tokens: HashSet<String> = (0..1000).map(|_| super::new()).collect();
        assert_eq!(tokens.len(), 1000);
        let is_hex =
            |token: &String| token.len() == 32 && token.bytes().all(|b| b.is_ascii_hexdigit());
        assert!(tokens.iter().all(is_hex));
    }
}
