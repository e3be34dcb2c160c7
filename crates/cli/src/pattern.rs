//! Shell patterns, by which `-h` finds elements: `*`, `?`, `[a-z]`.

/// Whether a name is a pattern.
pub(crate) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// Whether a pattern matches the whole of a name.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    fn at(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.first(), name.first()) {
            (None, None) => true,
            (Some(b'*'), _) => at(&pattern[1..], name) || (!name.is_empty() && at(pattern, &name[1..])),
            (Some(b'?'), Some(_)) => at(&pattern[1..], &name[1..]),
            (Some(b'['), Some(letter)) => match pattern.iter().position(|byte| *byte == b']') {
                Some(end) => set(&pattern[1..end], *letter) && at(&pattern[end + 1..], &name[1..]),
                None => false,
            },
            (Some(one), Some(other)) => one == other && at(&pattern[1..], &name[1..]),
            _ => false,
        }
    }
    fn set(mut set: &[u8], letter: u8) -> bool {
        let inverted = set.first().is_some_and(|first| *first == b'^' || *first == b'!');
        set = if inverted { &set[1..] } else { set };
        let mut found = false;
        while let Some((&low, rest)) = set.split_first() {
            if let [b'-', high, ..] = rest {
                found |= (low..=*high).contains(&letter);
                set = &rest[2..];
            } else {
                found |= low == letter;
                set = rest;
            }
        }
        found != inverted
    }
    at(pattern.as_bytes(), name.as_bytes())
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
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
