//! The filter of a program's log, as `HIVE_LOG` has it: levels and targets, separated by commas;
//! and the journal of systemd, as a place of the log ([`journal`]).
//!
//! What it is not: the `EnvFilter` of tracing-subscriber, which filters by spans too and brings an
//! engine for regular expressions. Invariant: a filter by spans is an error, never ignored.

pub mod journal;

use tracing_subscriber::filter::{ParseError, Targets};

/// A directive that is neither a level, nor a target, nor a target with a level.
#[derive(Debug, thiserror::Error)]
#[error("invalid filter directive {directive:?}: write LEVEL, TARGET or TARGET=LEVEL")]
pub struct Invalid {
    directive: String,
    source: Option<ParseError>,
}

/// Parses a filter, for example `info,hive_broker=debug`. An empty one passes errors only.
pub fn parse(text: &str) -> Result<Targets, Invalid> {
    checked(text).collect::<Result<_, _>>().map(join)
}

/// Parses a filter and reports its invalid directives instead of failing.
pub fn parse_lossy(text: &str, mut report: impl FnMut(Invalid)) -> Targets {
    join(checked(text).filter_map(|directive| directive.map_err(&mut report).ok()).collect())
}

fn checked(text: &str) -> impl Iterator<Item = Result<&str, Invalid>> {
    text.split(',').map(str::trim).filter(|directive| !directive.is_empty()).map(|directive| {
        let invalid = |source| Invalid { directive: directive.to_owned(), source };
        if directive.contains(['[', ']', '{', '}']) {
            return Err(invalid(None));
        }
        directive.parse::<Targets>().map_err(|error| invalid(Some(error)))?;
        Ok(directive)
    })
}

fn join(directives: Vec<&str>) -> Targets {
    directives.join(",").parse().expect("each directive was parsed by itself")
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    #[test]
    fn blanks_and_empty_directives_change_nothing() {
        let filter = parse(" info, hive_broker=debug,,").expect("a filter");
        assert_eq!(filter, parse("info,hive_broker=debug").expect("a filter"));
        assert_eq!(filter.default_level(), Some(LevelFilter::INFO));
        assert_eq!(parse("").expect("a filter").default_level(), Some(LevelFilter::ERROR));
    }

    #[test]
    fn filters_by_spans_and_unknown_levels_are_reported() {
        for directive in ["[turn]", "hive_broker[{agent=ada}]=debug", "hive_broker=loud", "a=b=c"] {
            let text = format!("warn,{directive}");
            let error = parse(&text).expect_err("invalid").to_string();
            assert!(error.contains(directive) && error.contains("TARGET=LEVEL"), "{error}");
            let mut reported = 0;
            assert_eq!(parse_lossy(&text, |_| reported += 1), parse("warn").expect("a filter"));
            assert_eq!(reported, 1, "{text}");
        }
    }
}
