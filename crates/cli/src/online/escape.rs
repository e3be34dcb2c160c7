//! Texts of others on this terminal.

/// A text as one line in which nothing moves the cursor or changes a colour: control characters are written out.
pub(crate) fn line(text: &str) -> String {
    text.chars().flat_map(|letter| visible(letter, false)).collect()
}

/// The same, but line ends and tabs stay.
pub(crate) fn lines(text: &str) -> String {
    text.chars().flat_map(|letter| visible(letter, true)).collect()
}

fn visible(letter: char, is_layout_kept: bool) -> impl Iterator<Item = char> {
    let kept = is_layout_kept && matches!(letter, '\n' | '\t');
    // Marks that turn the direction of the text around are no control characters to Unicode.
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let hidden = !kept && (letter.is_control() || turns);
    let escaped = hidden.then(|| letter.escape_default());
    escaped.into_iter().flatten().chain((!hidden).then_some(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_moves_the_cursor() {
        assert_eq!(line("a\x1b[2Jb\r\n\tc\u{202e}\u{9b}"), "a\\u{1b}[2Jb\\r\\n\\tc\\u{202e}\\u{9b}");
        assert_eq!(lines("a\nb\tc\r\x07 ä"), "a\nb\tc\\r\\u{7} ä");
    }
}
