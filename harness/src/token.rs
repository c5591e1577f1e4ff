//! Random tokens: request ids and process tokens.
//!
//! Invariant: a token has 128 bits from the operating system, in hexadecimal digits, so that it
//! cannot be guessed and all are distinct.

use std::fmt::Write as _;

/// Returns a new random token of 32 characters.
///
/// # Panics
/// If the operating system has no random numbers: there is no safe way to continue.
pub fn random() -> String {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).expect("the operating system gives random numbers");
    bytes.iter().fold(String::with_capacity(32), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns a random fraction from 0 to 1, for jitter.
pub fn fraction() -> f64 {
    let number = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(number) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_enough_and_differ() {
        let (one, other) = (random(), random());
        assert!(
            one.len() >= hive_core::limits::PROCESS_TOKEN_CHARS_MIN
                && one.len() <= hive_core::limits::TOKEN_CHARS_MAX
        );
        assert_ne!(one, other);
        assert!((0.0..=1.0).contains(&fraction()));
    }
}
