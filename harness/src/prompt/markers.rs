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

    #[track_caller]
    fn golden(template: &str, expected: &str) {
        assert_eq!(select(template, "agent"), expected, "{template:?}");
    }

    #[test]
    fn text_outside_of_blocks_is_always_in() {
        golden("a\nb\n", "a\nb\n");
        golden("", "");
        golden("a <!-- an ordinary comment --> b", "a <!-- an ordinary comment --> b");
    }

    #[test]
    fn blocks_of_the_role_are_kept_and_others_elided() {
        golden("a<!-- role:agent -->b<!-- /role:agent -->c", "abc");
        golden("a<!-- role:manager -->b<!-- /role:manager -->c", "ac");
        golden("a\n<!-- role:agent -->\nb\n<!-- /role:agent -->\nc\n", "a\nb\nc\n");
        golden("a\n<!-- role:manager -->\nb\n<!-- /role:manager -->\nc\n", "a\nc\n");
        golden(
            "<!-- role:manager -->\nm\n<!-- /role:manager -->\n<!-- role:agent -->\na\n<!-- /role:agent -->\n",
            "a\n",
        );
    }

    #[test]
    fn white_space_inside_a_marker_is_tolerated() {
        for open in [
            "<!--role:agent-->",
            "<!--   role:agent-->",
            "<!-- role: agent -->",
            "<!--\trole :agent\n-->",
        ] {
            golden(&format!("a{open}b<!--/role:agent-->c"), "abc");
            golden(&format!("{}x<!-- / role:manager -->c", open.replace("agent", "manager")), "c");
        }
    }

    #[test]
    fn a_stray_opener_takes_over_until_its_closer() {
        golden("a<!-- role:agent -->b<!-- role:manager -->c<!-- /role:manager -->d", "abd");
        golden("a<!-- role:manager -->b<!-- role:agent -->c<!-- /role:agent -->d", "acd");
    }

    #[test]
    fn a_stray_opener_takes_over_until_the_end() {
        golden("a<!-- role:agent -->b<!-- role:manager -->c", "ab");
        golden("a<!-- role:manager -->b", "a");
        golden("a<!-- role:agent -->b", "ab");
    }

    #[test]
    fn after_the_override_the_first_block_is_not_resumed() {
        // No nesting: after the inner closer nothing is active, and the outer closer is a mismatch.
        golden(
            "<!-- role:manager -->a<!-- role:agent -->b<!-- /role:agent -->c<!-- /role:manager -->d",
            "bcd",
        );
    }

    #[test]
    fn a_mismatched_closer_is_elided_and_closes_nothing() {
        golden("a<!-- role:manager -->b<!-- /role:agent -->c<!-- /role:manager -->d", "ad");
        golden("a<!-- role:agent -->b<!-- /role:manager -->c<!-- /role:agent -->d", "abcd");
        golden("a<!-- /role:agent -->b", "ab");
    }

    #[test]
    fn half_markers_are_text() {
        golden("a<!-- role:agent b", "a<!-- role:agent b");
        golden("a<!-- role: -->b", "a<!-- role: -->b");
        golden("a<!-- role:a b -->c", "a<!-- role:a b -->c");
        golden("<!-- <!-- role:manager -->x", "<!-- ");
    }
}
