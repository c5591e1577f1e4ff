//! Tokens: secrets that prove a lease or a session.

/// Returns a new secret of 128 random bits, as 32 hexadecimal digits.
pub(crate) fn new() -> String {
    let mut bytes = [0u8; 16];
    if !hive_fault::fill(&mut bytes) {
        getrandom::fill(&mut bytes).expect("Linux has random numbers once it has booted");
    }
    bytes.iter().fold(String::with_capacity(32), |mut text, byte| {
        for nibble in [byte >> 4, byte & 15] {
            text.push(
                char::from_digit(u32::from(nibble), 16).expect("a nibble is a hexadecimal digit"),
            );
        }
        text
    })
}
