//! Tables for people.

use std::fmt::Write;

use takt_trace::visible;

/// Which way a column is aligned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table that grows row by row and is as wide as its widest cells.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns, separated by `, `; a heading that starts with `<` is aligned left.
    pub(crate) fn new(headings: &str) -> Self {
        Self::with(headings.split(", "))
    }

    /// The same with columns from a list.
    pub(crate) fn with<'h>(headings: impl Iterator<Item = &'h str>) -> Self {
        let column = |heading: &str| match heading.strip_prefix('<') {
            Some(heading) => (heading.to_owned(), Align::Left),
            None => (heading.to_owned(), Align::Right),
        };
        Self { columns: headings.map(column).collect(), rows: Vec::new() }
    }

    /// Adds a row; whatever its cells contain, it is one line.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.iter().map(|cell| visible::line(cell).into_owned()).collect());
    }

    pub(crate) fn render(&self) -> String {
        let headings: Vec<String> = self.columns.iter().map(|(heading, _)| heading.clone()).collect();
        let all = || std::iter::once(&headings).chain(&self.rows);
        let width = |column: usize| {
            all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut out = String::new();
        for row in all() {
            let mut line = String::new();
            for ((cell, width), (_, align)) in row.iter().zip(&widths).zip(&self.columns) {
                let padding = " ".repeat(width - cell.chars().count());
                let (before, after) =
                    if *align == Align::Right { (padding.as_str(), "") } else { ("", padding.as_str()) };
                // Writing to a string cannot fail.
                let _ok = write!(line, "{before}{cell}{after}  ");
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

impl Table {
    /// The same for a document.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let mut out = line(&mut self.columns.iter().map(|(heading, _)| heading.as_str()));
        out += &line(&mut self.columns.iter().map(|(_, align)| match align {
            Align::Left => "---",
            Align::Right => "---:",
        }));
        for row in &self.rows {
            out += &line(&mut row.iter().map(String::as_str));
        }
        out
    }
}

/// `12.34 %`, with enough digits to tell 100 % from nearly 100 %.
pub(crate) fn percent(share: f64) -> String {
    let text = format!("{:.2} %", share * 100.0);
    if text == "100.00 %" && share < 1.0 { "99.99 %".to_owned() } else { text }
}

/// Milliseconds from microseconds.
pub(crate) fn ms(us: f64) -> String {
    format!("{:.2}", us / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new("<app, fps");
        table.row(vec!["speedometer".into(), "60".into()]);
        table.row(vec!["é".into(), "7.5".into()]);
        assert_eq!(table.render(), "app          fps\nspeedometer   60\né            7.5\n");
    }

    #[test]
    fn a_cell_makes_no_other_row() {
        let mut table = Table::new("<executable, user");
        table.row(vec!["/tmp/a  1000\n/usr/bin/dial".into(), "1000".into()]);
        assert_eq!(table.render().lines().count(), 2, "{}", table.render());
    }

    #[test]
    fn documents_get_the_same_cells() {
        let mut table = Table::new("<app, fps");
        table.row(vec!["menu".into(), "60".into()]);
        assert_eq!(table.markdown(), "| app | fps |\n| --- | ---: |\n| menu | 60 |\n");
    }

    #[test]
    fn nearly_all_is_not_all() {
        assert_eq!(percent(1.0), "100.00 %");
        assert_eq!(percent(0.999_999), "99.99 %");
        assert_eq!(percent(0.5), "50.00 %");
    }
}
