//! Arguments that are one of some words.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Parses a word as the value that it names.
pub(crate) fn choice<V: Copy + Send + Sync>(
    words: &'static [(&'static str, V)],
) -> impl TypedValueParser<Value = V> {
    PossibleValuesParser::new(words.iter().map(|(word, _)| *word)).map(|given| {
        let named = words.iter().find(|(word, _)| *word == given);
        named.expect("clap allows these words only").1
    })
}
