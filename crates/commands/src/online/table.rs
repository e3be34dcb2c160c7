//! Text tables.

use std::io::IsTerminal;

use crate::color::Palette;
use crate::columns::{padded, width};
use crate::{output, screen};

/// Spaces between columns.
const GAP: &str = "  ";

/// A column of a table.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    is_number: bool,
    /// Minimum width in terminal columns if the table is too wide; `None` if the column must not be truncated.
    min_width: Option<usize>,
}

impl Column {
    /// A text column that is never truncated.
    pub(crate) const fn text(title: &'static str) -> Column {
        Column { title, is_number: false, min_width: None }
    }

    /// A text column that may be truncated to `min_width` terminal columns.
    pub(crate) const fn flexible(title: &'static str, min_width: usize) -> Column {
        Column { title, is_number: false, min_width: Some(min_width) }
    }

    /// A number column.
    pub(crate) const fn number(title: &'static str) -> Column {
        Column { title, is_number: true, min_width: None }
    }
}

/// A table: its columns and rows. Each row has one text per column, without control characters.
pub(crate) struct Table<'a> {
    /// The columns.
    pub(crate) columns: &'a [Column],
    /// The rows.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table<'_> {
    /// The lines of the table, titles first; at most `max_width` columns wide if they can be truncated.
    pub(crate) fn lines(&self, max_width: usize) -> Vec<String> {
        let widths = self.widths(max_width);
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.to_string()).collect();
        std::iter::once(&titles).chain(&self.rows).map(|row| self.line(row, &widths)).collect()
    }

    fn widths(&self, max_width: usize) -> Vec<usize> {
        let longest = |(index, column): (usize, &Column)| {
            let texts = self.rows.iter().filter_map(|row| row.get(index)).map(|text| width(text));
            texts.chain([column.title.len()]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(longest).collect();
        let gaps = GAP.len() * self.columns.len().saturating_sub(1);
        let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(max_width);
        for (width, column) in widths.iter_mut().zip(self.columns).rev() {
            let spare = column
                .min_width
                .map_or(0, |min_width| width.saturating_sub(min_width.max(column.title.len())));
            *width -= spare.min(excess);
            excess -= spare.min(excess);
        }
        widths
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cell = |((text, column), columns): ((&String, &Column), &usize)| match column.is_number {
            true => format!("{text:>columns$}"),
            false => padded(text, *columns),
        };
        let cells: Vec<String> = row.iter().zip(self.columns).zip(widths).map(cell).collect();
        cells.join(GAP).trim_end().to_string()
    }
}

/// Prints a table on standard output, fitted to the terminal if it is one. Without rows, prints the sentence `if_empty`.
pub(crate) fn print(table: &Table, if_empty: &str) {
    if table.rows.is_empty() {
        eprintln!("{if_empty}");
        return;
    }
    let stdout = std::io::stdout();
    let mut lines = table.lines(if stdout.is_terminal() { screen::columns(&stdout) } else { usize::MAX });
    let Palette { bold, plain, .. } = Palette::of(&stdout);
    if let Some(titles) = lines.first_mut() {
        *titles = format!("{bold}{titles}{plain}");
    }
    output::text(&(lines.join("\n") + "\n"));
}

/// Ends a command that has no output besides its success.
pub(crate) fn print_success(is_json: bool) {
    if is_json {
        output::text("{}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_flexible_columns_are_truncated() {
        let columns = [Column::flexible("NAME", 6), Column::number("COUNT"), Column::text("STATE")];
        let rows = vec![
            vec!["firewall-of-customer".into(), "7".into(), "running".into()],
            vec!["b".into(), "1234567".into(), "stopped".into()],
        ];
        let table = Table { columns: &columns, rows };
        assert_eq!(
            table.lines(80),
            [
                "NAME                    COUNT  STATE",
                "firewall-of-customer        7  running",
                "b                     1234567  stopped"
            ]
        );
        assert_eq!(
            table.lines(28),
            ["NAME          COUNT  STATE", "firewall-…        7  running", "b           1234567  stopped"]
        );
        assert!(table.lines(0).iter().all(|line| width(line) <= 24));
    }

    #[test]
    fn wide_characters_keep_the_columns_aligned() {
        let columns = [Column::text("LABEL"), Column::text("STATE")];
        let rows = vec![vec!["箱箱箱".into(), "running".into()], vec!["box".into(), "stopped".into()]];
        let table = Table { columns: &columns, rows };
        assert_eq!(table.lines(80), ["LABEL   STATE", "箱箱箱  running", "box     stopped"]);
    }
}
