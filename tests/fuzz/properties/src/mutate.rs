//! Seeded changes of inputs, for the short run of the main suite.
//!
//! What it is not: guided by coverage, which libFuzzer is. Invariant: the same seed and the same
//! inputs give the same bytes on every machine.

/// Longest input that is made, in bytes.
const BYTES_MAX: usize = 4096;

/// Pieces that parsers stumble over, put in anywhere.
const PIECES: [&[u8]; 24] = [
    b"\n",
    b"\r\n",
    b"| ",
    b"> ",
    b"@/etc/passwd",
    b"\\@",
    b"\0",
    b"\x1b[2J",
    b"\xe2\x80\xae",
    b"\xe2\x80\xa8",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b"18446744073709551615",
    b"-1",
    b"1e999",
    b"null",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
];

/// A reproducible source of random numbers (xorshift).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The source with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `bound`, or 0 where that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.number() % bound).unwrap_or(0)
    }
}

/// Makes one input from others.
pub fn mutated(chance: &mut Chance, inputs: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = inputs.get(chance.below(inputs.len())).cloned().unwrap_or_default();
    for _ in 0..=chance.below(6) {
        once(chance, &mut bytes, inputs);
    }
    bytes.truncate(BYTES_MAX);
    bytes
}

fn once(chance: &mut Chance, bytes: &mut Vec<u8>, inputs: &[Vec<u8>]) {
    let at = chance.below(bytes.len() + 1);
    let end = (at + chance.below(16)).min(bytes.len());
    match chance.below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        1 if at < bytes.len() => bytes[at] = chance.number().to_le_bytes()[0],
        2 => drop(bytes.drain(at..end)),
        3 => {
            let copied = bytes[at..end].to_vec();
            let to = chance.below(bytes.len() + 1);
            bytes.splice(to..to, copied);
        }
        4 => bytes.truncate(at),
        5 => {
            // The beginning of this one and the end of another.
            let other = inputs.get(chance.below(inputs.len())).map_or(&[][..], Vec::as_slice);
            bytes.truncate(at);
            bytes.extend(&other[chance.below(other.len() + 1)..]);
        }
        6 => {
            let times = 1 + chance.below(40);
            let copied = bytes[at..end].repeat(times);
            bytes.splice(at..at, copied);
        }
        _ => {
            let piece = PIECES[chance.below(PIECES.len())];
            bytes.splice(at..at, piece.iter().copied());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        let inputs = [b"{\"a\": 1}".to_vec(), b"name = \"x\"".to_vec()];
        let run = |seed| {
            let mut chance = Chance::new(seed);
            (0..200).map(|_| mutated(&mut chance, &inputs)).collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
        assert!(
            run(7).iter().collect::<std::collections::BTreeSet<_>>().len() > 150,
            "they differ"
        );
    }

    #[test]
    fn nothing_to_begin_with_is_no_trouble() {
        let mut chance = Chance::new(1);
        assert!((0..100).all(|_| mutated(&mut chance, &[]).len() <= BYTES_MAX));
    }
}
