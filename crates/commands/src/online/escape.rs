//! Escapes text from other sources for this terminal.

/// The text as one line that can't move the cursor or change colours: control characters are escaped.
pub(crate) fn line(text: &str) -> String {
    text.chars().flat_map(|letter| visible(letter, false)).collect()
}

/// Like `line`, but keeps line ends and tabs.
pub(crate) fn lines(text: &str) -> String {
    text.chars().flat_map(|letter| visible(letter, true)).collect()
}

fn visible(letter: char, is_layout_kept: bool) -> impl Iterator<Item = char> {
    let kept = is_layout_kept && matches!(letter, '\n' | '\t');
    // Unicode does not count bidirectional marks as control characters.
    let is_bidirectional =
        matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_escaped = !kept && (letter.is_control() || is_bidirectional);
    let escaped = is_escaped.then(|| letter.escape_default());
    escaped.into_iter().flatten().chain((!is_escaped).then_some(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(line("a\x1b[2Jb\r\n\tc\u{202e}\u{9b}"), "a\\u{1b}[2Jb\\r\\n\\tc\\u{202e}\\u{9b}");
        assert_eq!(lines("a\nb\tc\r\x07 ä"), "a\nb\tc\\r\\u{7} ä");
    }
}
