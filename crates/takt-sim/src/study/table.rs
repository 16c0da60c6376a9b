//! Results as a flat table.

use std::fmt;

/// One value.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// There is none.
    Null,
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Anything else.
    Text(String),
}

/// What the values of a column are, missing ones aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Numbers.
    Number,
    /// Text.
    Text,
}

/// Name and kind of a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Unique name.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
}

/// Columns and rows.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
}

impl Cell {
    /// The kind of a column with this value.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Text(_) => Kind::Text,
            Self::Null | Self::Int(_) | Self::Float(_) => Kind::Number,
        }
    }

    /// The value as a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Null | Self::Text(_) => None,
        }
    }
}

/// As in a CSV file, without quotes: numbers so that reading them gives the same bits.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Table {
    /// The position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// As CSV with a header (RFC 4180, but lines end in a line feed alone).
    pub fn to_csv(&self) -> String {
        let line = |cells: Vec<String>| cells.join(",") + "\n";
        let header = line(self.columns.iter().map(|column| quoted(&column.name)).collect());
        let rows =
            self.rows.iter().map(|row| line(row.iter().map(|cell| quoted(&cell.to_string())).collect()));
        std::iter::once(header).chain(rows).collect()
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_keeps_every_bit_and_every_character() {
        let column = |name: &str, kind| Column { name: name.to_owned(), kind };
        let table = Table {
            columns: vec![column("a,b", Kind::Text), column("n", Kind::Number)],
            rows: vec![
                vec![Cell::Text("say \"hi\"\nthere".to_owned()), Cell::Float(0.1 + 0.2)],
                vec![Cell::Null, Cell::Float(1e300)],
                vec![Cell::Text(String::new()), Cell::Float(f64::INFINITY)],
            ],
        };
        let expected = "\"a,b\",n\n\"say \"\"hi\"\"\nthere\",0.30000000000000004\n,1e300\n,inf\n";
        assert_eq!(table.to_csv(), expected);
    }
}
