//! Wraps text with a hanging indent.

use crate::columns::width;

/// Width of a line in columns.
pub(crate) const WIDTH: usize = 80;

/// Wraps a text that starts at column `indent`. Further lines are indented to the same column.
pub(crate) fn wrap(text: &str, indent: usize) -> String {
    let (mut lines, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = width(word);
        if column > 0 && indent + column + 1 + length > WIDTH {
            lines += &format!("\n{:indent$}", "");
            column = 0;
        } else if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines += word;
        column += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_lines_are_indented() {
        let word = "w".repeat(30);
        assert_eq!(wrap(&format!("{word}  {word} {word}"), 10), format!("{word} {word}\n{:10}{word}", ""));
        assert_eq!(wrap("", 10), "");
    }
}
