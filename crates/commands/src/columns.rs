//! Texts measured in terminal columns: a character may take none, one or two.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The number of columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The text, truncated to `columns` columns.
pub(crate) fn shorten(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_string();
    }
    let mut room = columns.saturating_sub(1);
    let fits = |character: &char| {
        let width = character.width().unwrap_or(0);
        let has_room = width <= room;
        room -= if has_room { width } else { 0 };
        has_room
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// The text, truncated or padded with spaces to exactly `columns` columns.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    let mut text = shorten(text, columns);
    text.extend(std::iter::repeat_n(' ', columns.saturating_sub(width(&text))));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_and_combining_characters_are_measured_in_columns() {
        assert_eq!((width("box"), width("箱箱"), width("e\u{301}")), (3, 4, 1));
        assert_eq!(
            (shorten("箱箱箱", 6), shorten("箱箱箱", 5), shorten("箱箱箱", 4)),
            ("箱箱箱".into(), "箱箱…".into(), "箱…".into())
        );
        assert_eq!(
            (padded("箱", 4), padded("box", 2), padded("箱箱箱", 4)),
            ("箱  ".into(), "b…".into(), "箱… ".into())
        );
    }
}
