//! Role markers: `<!-- role:X -->` … `<!-- /role:X -->` keep a block for one role.
//!
//! Invariant: text outside of all blocks is kept; text in a block is kept exactly if the block is
//! of the wanted role. Blocks do not nest: an opener replaces the previous one, and only its own
//! closer, or the end, ends it.

/// Returns the template without the markers and without the blocks of roles other than `role`.
pub fn select(template: &str, role: &str) -> String {
    let mut kept = String::with_capacity(template.len());
    let mut active: Option<&str> = None;
    let mut rest = template;
    while let Some((before, marker, after)) = next_marker(rest) {
        let at = template.len() - rest.len() + before.len();
        let begins_line = template[..at].is_empty() || template[..at].ends_with('\n');
        if active.is_none_or(|active| active == role) {
            kept.push_str(before);
        }
        // For a marker alone on its line, the line end is removed too.
        rest = if begins_line { after.strip_prefix('\n').unwrap_or(after) } else { after };
        match marker {
            Marker::Open(name) => active = Some(name),
            Marker::Close(name) if active == Some(name) => active = None,
            Marker::Close(_) => {}
        }
    }
    if active.is_none_or(|active| active == role) {
        kept.push_str(rest);
    }
    kept
}

enum Marker<'a> {
    Open(&'a str),
    Close(&'a str),
}

/// Returns the text before the next marker, the marker, and the text after it.
fn next_marker(text: &str) -> Option<(&str, Marker<'_>, &str)> {
    let mut from = 0;
    while let Some(found) = text[from..].find("<!--") {
        let start = from + found;
        let inner_start = start + "<!--".len();
        let length = text[inner_start..].find("-->")?;
        let inner = text[inner_start..inner_start + length].trim();
        if let Some(marker) = parse(inner) {
            return Some((&text[..start], marker, &text[inner_start + length + "-->".len()..]));
        }
        from = inner_start;
    }
    None
}

fn parse(inner: &str) -> Option<Marker<'_>> {
    let (closes, rest) = match inner.strip_prefix('/') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, inner),
    };
    let name = rest.strip_prefix("role")?.trim_start().strip_prefix(':')?.trim();
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    is_name.then_some(if closes { Marker::Close(name) } else { Marker::Open(name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_the_role_are_kept_and_others_are_not() {
        // Blocks do not nest: an opener replaces the previous one, and a foreign closer is dropped.
        let cases = [
            ("text outside", "a\nb\n", "a\nb\n"),
            ("text outside", "", ""),
            ("text outside", "a <!-- ordinary --> b", "a <!-- ordinary --> b"),
            ("a block", "a[a]b[/a]c", "abc"),
            ("a block", "a[m]b[/m]c", "ac"),
            ("a block", "a\n[a]\nb\n[/a]\nc\n", "a\nb\nc\n"),
            ("a block", "a\n[m]\nb\n[/m]\nc\n", "a\nc\n"),
            ("a block", "[m]\nm\n[/m]\n[a]\na\n[/a]\n", "a\n"),
            ("stray opener", "a[a]b[m]c[/m]d", "abd"),
            ("stray opener", "a[m]b[a]c[/a]d", "acd"),
            ("stray opener", "a[a]b[m]c", "ab"),
            ("stray opener", "a[m]b", "a"),
            ("stray opener", "a[a]b", "ab"),
            ("no resumption", "[m]a[a]b[/a]c[/m]d", "bcd"),
            ("wrong closer", "a[m]b[/a]c[/m]d", "ad"),
            ("wrong closer", "a[a]b[/m]c[/a]d", "abcd"),
            ("wrong closer", "a[/a]b", "ab"),
            ("half a marker", "a<!-- role:agent b", "a<!-- role:agent b"),
            ("half a marker", "a<!-- role: -->b", "a<!-- role: -->b"),
            ("half a marker", "a<!-- role:a b -->c", "a<!-- role:a b -->c"),
            ("half a marker", "<!-- [m]x", "<!-- "),
        ];
        for (case, template, expected) in cases {
            let template = template
                .replace("[a]", "<!-- role:agent -->")
                .replace("[/a]", "<!-- /role:agent -->")
                .replace("[m]", "<!-- role:manager -->")
                .replace("[/m]", "<!-- /role:manager -->");
            assert_eq!(select(&template, "agent"), expected, "{case}: {template:?}");
        }
    }

    #[test]
    fn white_space_inside_a_marker_is_tolerated() {
        for open in [
            "<!--role:agent-->",
            "<!--   role:agent-->",
            "<!-- role: agent -->",
            "<!--\trole :agent\n-->",
        ] {
            let kept = select(&format!("a{open}b<!--/role:agent-->c"), "agent");
            let other = format!("{}x<!-- / role:manager -->c", open.replace("agent", "manager"));
            assert_eq!((kept.as_str(), select(&other, "agent").as_str()), ("abc", "c"), "{open}");
        }
    }
}
