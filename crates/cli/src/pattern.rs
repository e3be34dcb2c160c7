//! Shell patterns, by which `-h` finds elements: `*`, `?`, `[a-z]`.

/// Whether a name is a pattern.
pub(crate) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// Whether a pattern matches the whole of a name.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.as_bytes(), name.as_bytes());
    // What stands behind the last star, and of what it was tried last: the only place where another try can help.
    let mut star = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            (pattern, star) = (rest, Some((rest, name)));
        } else if let ([], []) = (pattern, name) {
            return true;
        } else if let Some(rest) = name.first().and_then(|letter| behind(pattern, *letter)) {
            (pattern, name) = (rest, &name[1..]);
        } else if let Some((rest, [_, later @ ..])) = star {
            (pattern, name, star) = (rest, later, Some((rest, later)));
        } else {
            return false;
        }
    }
}

/// What follows in a pattern behind what matches a letter; none: nothing does.
fn behind(pattern: &[u8], letter: u8) -> Option<&[u8]> {
    let (first, rest) = pattern.split_first()?;
    match first {
        b'?' => Some(rest),
        b'[' => {
            let end = rest.iter().position(|byte| *byte == b']')?;
            is_in(&rest[..end], letter).then_some(&rest[end + 1..])
        }
        _ => (*first == letter).then_some(rest),
    }
}

/// Whether a letter is in a set such as `a-z_`, or `^a` for all but one.
fn is_in(set: &[u8], letter: u8) -> bool {
    let (inverted, mut set) = match set {
        [b'^' | b'!', rest @ ..] => (true, rest),
        _ => (false, set),
    };
    let mut found = false;
    while let Some((&low, rest)) = set.split_first() {
        if let [b'-', high, rest @ ..] = rest {
            found |= (low..=*high).contains(&letter);
            set = rest;
        } else {
            found |= low == letter;
            set = rest;
        }
    }
    found != inverted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, expected) in [
            ("c*", "counter", true),
            ("?1", "c1", true),
            ("[a-c]1", "d1", false),
            ("[^a]", "b", true),
            ("c", "cc", false),
            ("a*b*c", "a-b-b-c", true),
            ("*b?", "abab", false),
            ("*[0-9]", "x10", true),
            ("[a", "a", false),
            ("**", "", true),
            (&"*a".repeat(40), &"a".repeat(39), false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
