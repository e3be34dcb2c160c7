//! Finds an argument of an element in the source text.

use click_lang::Location;

/// The location of the first argument text `value` of the element that is declared at `declared`. `None` if it is not
/// written there, for example because it is the value of a variable.
pub(crate) fn find(text: &str, declared: &Location, value: &str) -> Option<Location> {
    if value.is_empty() {
        return None;
    }
    let before = declared.span.start;
    let open = before + text.get(before..)?.find('(')?;
    // Only the rest of the declaration may be between its start and the parenthesis.
    let is_name =
        |letter: char| letter.is_alphanumeric() || letter.is_whitespace() || "_@/$:,".contains(letter);
    if !text.get(before..open)?.chars().all(is_name) {
        return None;
    }
    let arguments = text.get(open..open + length(text.get(open..)?))?;
    let is_part = |letter: char| letter.is_alphanumeric() || "_-./".contains(letter);
    let (at, _) = arguments.match_indices(value).find(|(at, _)| {
        let (left, right) = (arguments.get(..*at), arguments.get(at + value.len()..));
        !left.is_some_and(|left| left.ends_with(is_part))
            && !right.is_some_and(|right| right.starts_with(is_part))
    })?;
    let start = open + at;
    let between = text.get(before..start)?;
    let above = between.matches('\n').count();
    let column = match above {
        0 => declared.column + u32::try_from(between.chars().count()).ok()?,
        _ => 1 + u32::try_from(between.rsplit('\n').next()?.chars().count()).ok()?,
    };
    Some(Location {
        file: declared.file.clone(),
        line: declared.line + u32::try_from(above).ok()?,
        column,
        span: start..start + value.len(),
    })
}

/// The length of the parenthesized text at the start of `text`. Parentheses in quotes do not count.
fn length(text: &str) -> usize {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (None, '(') => depth += 1,
            (None, ')') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_found_in_their_own_declaration() {
        let check = |text: &str, start: usize, value: &str, expected: Option<(u32, u32, usize)>| {
            let column = u32::try_from(start).expect("a short text") + 1;
            let declared = Location { file: "f".into(), line: 1, column, span: start..start + 1 };
            let found =
                find(text, &declared, value).map(|found| (found.line, found.column, found.span.start));
            assert_eq!(found, expected, "{text}: {value}");
        };
        check("A(x.pcap) -> B(y)", 0, "x.pcap", Some((1, 3, 2)));
        check("A(x) -> B(y)", 0, "y", None);
        check("a, b :: A(\n  N 1,\n  F \"x)y\", G z)", 0, "z", Some((3, 14, 31)));
        check("a -> A(x)", 0, "x", None);
        check("A(xx, x)", 0, "x", Some((1, 7, 6)));
        check("A($F)", 0, "x", None);
        check("A(", 0, "x", None);
        check("A", 0, "", None);
        check("ä", 1, "x", None);
        check("A(x)", 99, "x", None);
    }
}
