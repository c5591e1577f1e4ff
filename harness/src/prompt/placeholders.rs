//! Replacement of `{name}` placeholders, in one pass.
//!
//! Invariant: a value is never scanned, so no part of it is taken for a placeholder.

/// Returns the template with each known `{name}` replaced by its value. Unknown names and lone
/// braces stay.
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(
        template.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>(),
    );
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let (before, from_brace) = rest.split_at(open);
        filled.push_str(before);
        let known = values.iter().find_map(|(name, value)| {
            let after = from_brace.strip_prefix('{')?.strip_prefix(name)?.strip_prefix('}')?;
            Some((*value, after))
        });
        if let Some((value, after)) = known {
            filled.push_str(value);
            rest = after;
        } else {
            filled.push('{');
            rest = &from_brace[1..];
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_never_filled_again() {
        assert_eq!(fill("{a} and {b}", &[("a", "{b}"), ("b", "{a}")]), "{b} and {a}");
    }

    #[test]
    fn unknown_names_and_lone_braces_stay() {
        assert_eq!(fill("{x} {a {a}} {{a} }{", &[("a", "1")]), "{x} {a 1} {1 }{");
        assert_eq!(fill("", &[("a", "1")]), "");
        assert_eq!(fill("ä{a}ö", &[("a", "ü")]), "äüö");
    }
}
