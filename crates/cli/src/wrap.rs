//! Text in lines that hang under their first.

/// Columns of a line.
pub(crate) const WIDTH: usize = 80;

/// A text that begins at a column, its further lines under its first.
pub(crate) fn wrap(text: &str, indent: usize) -> String {
    let (mut lines, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
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
