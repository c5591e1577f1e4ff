//! Tokens: secrets that prove a lease or a session; and other random bytes.

use std::cell::RefCell;

/// Random bytes of the token of a session or of a log.
const BYTES: usize = 16;
/// Random bytes of a lease's token. A lease is looked for in the inbox of one agent, on the socket
/// of that agent; rows have its token for days, so it is short.
const LEASE_BYTES: usize = 8;
/// Random bytes that are fetched at once.
const POOL_BYTES: usize = 32 * BYTES;

/// Random bytes that no token has used yet.
struct Pool {
    bytes: [u8; POOL_BYTES],
    used: usize,
}

thread_local! {
    static POOL: RefCell<Pool> =
        const { RefCell::new(Pool { bytes: [0; POOL_BYTES], used: POOL_BYTES }) };
}

impl Pool {
    /// Returns bytes that no other token has; memory keeps no copy of them.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        if self.used + N > self.bytes.len() {
            getrandom::fill(&mut self.bytes).expect("Linux has random numbers once it has booted");
            self.used = 0;
        }
        let mut bytes = [0; N];
        bytes.swap_with_slice(&mut self.bytes[self.used..self.used + N]);
        self.used += N;
        bytes
    }
}

/// Returns a new secret of 128 random bits, as 32 hexadecimal digits.
pub(crate) fn new() -> String {
    secret::<BYTES>()
}

/// Returns the secret of a new lease: 64 random bits, as 16 hexadecimal digits.
pub(crate) fn of_lease() -> String {
    secret::<LEASE_BYTES>()
}

/// Returns random bytes.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if !hive_fault::fill(&mut bytes) {
        bytes = POOL.with_borrow_mut(Pool::take);
    }
    bytes
}

fn secret<const N: usize>() -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let bytes = random::<N>();
    let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    nibbles.map(|nibble| char::from(DIGITS[usize::from(nibble)])).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    #[test]
    fn no_token_is_given_twice() {
        let tokens: HashSet<String> =
            (0..1000).flat_map(|_| [super::new(), super::of_lease()]).collect();
        assert_eq!(tokens.len(), 2000);
        assert_eq!(tokens.iter().filter(|token| token.len() == 32).count(), 1000);
        assert_eq!(tokens.iter().filter(|token| token.len() == 16).count(), 1000);
        assert!(tokens.iter().all(|token| token.bytes().all(|byte| byte.is_ascii_hexdigit())));
    }
}
