//! Reads compare files. Their content is hostile until read: every error has a place.

use std::fmt;

/// Rows that are read; a file with more is refused.
pub const ROWS_MAX: usize = 2_000_000;
/// Models that are read.
const MODELS_MAX: usize = 64;
/// Longest name of an app or kind that is kept.
const NAME_CHARS_MAX: usize = 64;

/// A compare file.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The models, in the order of their columns.
    pub models: Vec<Model>,
    /// The command groups, in order.
    pub rows: Vec<Row>,
}

/// A prediction model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Model {
    /// Its name, from its column.
    pub name: String,
    /// Whether it also gives an upper estimate.
    pub has_upper: bool,
}

/// One command group.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Whose it was; empty if the file does not say.
    pub app: String,
    /// What kind of group; empty if the file does not say.
    pub kind: String,
    /// Measured time in microseconds.
    pub measured_us: f64,
    /// Predicted time of each model in microseconds, if it made one.
    pub predicted_us: Vec<Option<f64>>,
    /// Upper estimate of each model in microseconds, if it made one.
    pub upper_us: Vec<Option<f64>>,
}

/// What is wrong with a compare file, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column of the table, from 1; 0 if the whole line is meant.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}\n  help: {}", self.line, self.column, self.message, self.remedy)
    }
}

impl std::error::Error for ParseError {}

/// Where the known columns are.
#[derive(Default)]
struct Columns {
    count: usize,
    app: Option<usize>,
    kind: Option<usize>,
    measured: Option<usize>,
    models: Vec<(String, usize, Option<usize>)>,
}

impl Comparison {
    /// Reads the text of a compare file.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut lines = (1..).zip(text.lines());
        let (_, header) = lines.next().ok_or_else(|| error(1, 0, "the file is empty", HEADER_REMEDY))?;
        let columns = Columns::parse(header)?;
        let mut rows = Vec::new();
        for (line, text) in lines.filter(|(_, text)| !text.trim().is_empty()) {
            if rows.len() == ROWS_MAX {
                return Err(error(line, 0, &format!("more than {ROWS_MAX} rows"), "split the file"));
            }
            rows.push(columns.row(line, text)?);
        }
        let models = columns
            .models
            .iter()
            .map(|(name, _, upper)| Model { name: name.clone(), has_upper: upper.is_some() })
            .collect();
        Ok(Self { models, rows })
    }
}

const HEADER_REMEDY: &str = "the first line names the columns: measured_us and pred_NAME_us for each model";

impl Columns {
    fn parse(header: &str) -> Result<Self, ParseError> {
        let names: Vec<&str> = header.trim_end_matches('\r').split(',').map(str::trim).collect();
        let find = |name: &str| names.iter().position(|other| *other == name);
        let model = |(at, name): (usize, &&str)| {
            let model = name.strip_prefix("pred_")?.strip_suffix("_us")?;
            let upper = find(&format!("upper_{model}_us"));
            Some((shortened(model), at, upper))
        };
        let mut models: Vec<_> = names.iter().enumerate().filter_map(model).collect();
        // What `takt sim --trace FILE.csv` writes is a compare file, too.
        models.extend(find("predicted_us").map(|at| ("predicted".to_owned(), at, find("reserved_us"))));
        let measured = find("measured_us").or_else(|| find("cost_us"));
        if measured.is_none() {
            return Err(error(1, 0, "there is no column measured_us", HEADER_REMEDY));
        }
        if models.is_empty() {
            return Err(error(1, 0, "there is no column pred_NAME_us", HEADER_REMEDY));
        }
        if models.len() > MODELS_MAX {
            return Err(error(1, 0, &format!("more than {MODELS_MAX} models"), "split the file by models"));
        }
        Ok(Self { count: names.len(), app: find("app"), kind: find("kind"), measured, models })
    }

    fn row(&self, line: usize, text: &str) -> Result<Row, ParseError> {
        let cells: Vec<&str> = text.trim_end_matches('\r').split(',').map(str::trim).collect();
        if cells.len() != self.count {
            let message = format!("{} cells where the first line has {}", cells.len(), self.count);
            return Err(error(line, cells.len().min(self.count), &message, "give every column a cell"));
        }
        let cell = |at: Option<usize>| at.and_then(|at| cells.get(at).copied()).unwrap_or("");
        let measured_at = self.measured.unwrap_or(0);
        let measured_us = time(line, measured_at, cell(self.measured))?.ok_or_else(|| {
            error(line, measured_at + 1, "the measured time is missing", "leave rows without one out")
        })?;
        let column = |at: Option<usize>| at.map_or(Ok(None), |at| time(line, at, cell(Some(at))));
        let models = self.models.iter();
        Ok(Row {
            app: shortened(cell(self.app)),
            kind: shortened(cell(self.kind)),
            measured_us,
            predicted_us: models.clone().map(|(_, at, _)| column(Some(*at))).collect::<Result<_, _>>()?,
            upper_us: models.map(|(_, _, upper)| column(*upper)).collect::<Result<_, _>>()?,
        })
    }
}

/// A time in microseconds; nothing if the cell is empty or says that there is no bound.
fn time(line: usize, at: usize, cell: &str) -> Result<Option<f64>, ParseError> {
    if cell.is_empty() || cell == "inf" || cell == "∞" {
        return Ok(None);
    }
    match cell.parse::<f64>() {
        Ok(us) if us.is_finite() && us >= 0.0 => Ok(Some(us)),
        _ => {
            let message = format!("'{}' is no time", shortened(cell));
            Err(error(line, at + 1, &message, "write microseconds, 0 or more, or leave the cell empty"))
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(NAME_CHARS_MAX).collect()
}

fn error(line: usize, column: usize, message: &str, remedy: &str) -> ParseError {
    ParseError { line, column, message: message.to_owned(), remedy: remedy.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_may_come_in_any_order() {
        let header = "kind,pred_mars_us,measured_us,upper_mars_us,app,vertices";
        let text = format!("{header}\ndraw,100,120.5,130,cat,9\n\nswap,,7,,cat,0\n");
        let comparison = Comparison::parse(&text).unwrap();
        assert_eq!(comparison.models, [Model { name: "mars".into(), has_upper: true }]);
        assert_eq!(comparison.rows.len(), 2);
        assert_eq!(comparison.rows[0].predicted_us, [Some(100.0)]);
        assert_eq!(comparison.rows[0].upper_us, [Some(130.0)]);
        assert_eq!((comparison.rows[1].measured_us, &comparison.rows[1].predicted_us), (7.0, &vec![None]));
    }

    #[test]
    fn errors_name_line_column_value_and_remedy() {
        let check = |text: &str, expected: &str| {
            let error = Comparison::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
            assert!(error.contains("help: "));
        };
        check("", "1:0: the file is empty");
        check("a,b\n1,2\n", "1:0: there is no column measured_us");
        check("measured_us\n1\n", "1:0: there is no column pred_NAME_us");
        check("measured_us,pred_a_us\n1,2\n3,x\n", "3:2: 'x' is no time");
        check("measured_us,pred_a_us\n-1,2\n", "2:1: '-1' is no time");
        check("measured_us,pred_a_us\nnan,2\n", "2:1: 'nan' is no time");
        check("measured_us,pred_a_us\n1\n", "2:1: 1 cells where the first line has 2");
        check("measured_us,pred_a_us\n,1\n", "2:1: the measured time is missing");
    }
}
