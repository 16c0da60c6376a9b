//! Reads compare files. Their content is hostile until read: every error has a place.

use std::borrow::Cow;
use std::fmt;

/// Rows that are read; a file with more is refused.
pub const ROWS_MAX: usize = 2_000_000;
/// Models that are read.
const MODELS_MAX: usize = 64;
/// Longest name of an app or kind that is kept.
const NAME_CHARS_MAX: usize = 64;
/// Longest time that is believed: eleven days.
const TIME_US_MAX: f64 = 1e12;

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
        write!(f, "{}:", self.line)?;
        if self.column > 0 {
            write!(f, "{}:", self.column)?;
        }
        write!(f, " {}\n  help: {}", self.message, self.remedy)
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
        let names = cells(1, header)?;
        let twice =
            names.iter().enumerate().find(|(at, name)| !name.is_empty() && names[..*at].contains(name));
        if let Some((at, name)) = twice {
            let message = format!("there are two columns {}", shortened(name));
            return Err(error(1, at + 1, &message, "give every column a name of its own"));
        }
        let find = |name: &str| names.iter().position(|other| other == name);
        let model = |(at, name): (usize, &Cow<'_, str>)| {
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
        let cells = cells(line, text)?;
        if cells.len() != self.count {
            let message = format!("{} cells where the first line has {}", cells.len(), self.count);
            return Err(error(line, cells.len().min(self.count), &message, "give every column a cell"));
        }
        let cell = |at: Option<usize>| at.and_then(|at| cells.get(at)).map_or("", |cell| cell.as_ref());
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

/// The cells of a line. Those in quotes may hold commas, and quotes if they are doubled.
fn cells(line: usize, text: &str) -> Result<Vec<Cow<'_, str>>, ParseError> {
    let mut cells = Vec::new();
    let mut rest = Some(text.trim_end_matches('\r'));
    while let Some(text) = rest {
        let (cell, after) = match text.trim_start().strip_prefix('"') {
            Some(quoted) => unquoted(quoted).map_err(|message| {
                error(
                    line,
                    cells.len() + 1,
                    message,
                    "write \"name, with comma\", and a quote within it twice",
                )
            })?,
            None => match text.split_once(',') {
                Some((cell, after)) => (Cow::Borrowed(cell.trim()), Some(after)),
                None => (Cow::Borrowed(text.trim()), None),
            },
        };
        cells.push(cell);
        rest = after;
    }
    Ok(cells)
}

/// A cell whose first quote was just read, and what follows after its comma.
fn unquoted(text: &str) -> Result<(Cow<'_, str>, Option<&str>), &'static str> {
    let mut end = 0;
    loop {
        end += text[end..].find('"').ok_or("a quote is not closed on its line")?;
        match text[end..].strip_prefix("\"\"") {
            Some(_) => end += 2,
            None => break,
        }
    }
    let (cell, after) = (&text[..end], text[end + 1..].trim_start());
    let cell = if cell.contains('"') { cell.replace("\"\"", "\"").into() } else { cell.into() };
    match after.strip_prefix(',') {
        Some(after) => Ok((cell, Some(after))),
        None if after.is_empty() => Ok((cell, None)),
        None => Err("there is text behind a closing quote"),
    }
}

/// A time in microseconds; nothing if the cell is empty or says that there is no bound.
fn time(line: usize, at: usize, cell: &str) -> Result<Option<f64>, ParseError> {
    if cell.is_empty() || cell == "inf" || cell == "∞" {
        return Ok(None);
    }
    match cell.parse::<f64>() {
        Ok(us) if (0.0..=TIME_US_MAX).contains(&us) => Ok(Some(us)),
        _ => {
            let message = format!("'{}' is no time", shortened(cell));
            Err(error(line, at + 1, &message, "write microseconds from 0 to 1e12, or leave the cell empty"))
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
    use proptest::prelude::*;

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
        check("", "1: the file is empty");
        check("a,b\n1,2\n", "1: there is no column measured_us");
        check("measured_us\n1\n", "1: there is no column pred_NAME_us");
        check("measured_us,pred_a_us\n1,2\n3,x\n", "3:2: 'x' is no time");
        check("measured_us,pred_a_us\n-1,2\n", "2:1: '-1' is no time");
        check("measured_us,pred_a_us\nnan,2\n", "2:1: 'nan' is no time");
        check("measured_us,pred_a_us\n1\n", "2:1: 1 cells where the first line has 2");
        check("measured_us,pred_a_us\n,1\n", "2:1: the measured time is missing");
        check("measured_us,pred_a_us\n1e13,1\n", "2:1: '1e13' is no time");
        check("measured_us,pred_a_us,measured_us\n", "1:3: there are two columns measured_us");
        check("app,measured_us,pred_a_us\n\"x,1,2\n", "2:1: a quote is not closed on its line");
        check("app,measured_us,pred_a_us\nx,\"1\"2,3\n", "2:2: there is text behind a closing quote");
    }

    #[test]
    fn quoted_cells_may_hold_commas_and_quotes() {
        let text = "\"app\", measured_us ,\"pred_a_us\"\r\n\"horse, \"\"big\"\"\",1, \"2\" \r\n\"\",3,\n";
        let comparison = Comparison::parse(text).unwrap();
        let apps: Vec<&str> = comparison.rows.iter().map(|row| row.app.as_str()).collect();
        assert_eq!(apps, ["horse, \"big\"", ""]);
        assert_eq!(comparison.rows[0].predicted_us, [Some(2.0)]);
        assert_eq!(comparison.rows[1].predicted_us, [None]);
    }

    fn any_cell() -> impl Strategy<Value = String> {
        prop_oneof![
            (0.0..2e12).prop_map(|us: f64| us.to_string()),
            any::<f64>().prop_map(|number| number.to_string()),
            prop::sample::select(vec!["", "inf", "1e-320", "-0", "\"", "\"a\"", "<b>&", "∞", "measured_us"])
                .prop_map(str::to_owned),
            "[ -~]{0,8}",
        ]
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(?s).{0,300}") {
            drop(Comparison::parse(&text));
        }

        #[test]
        fn whatever_is_read_gives_finite_figures_and_a_page(
            rows in prop::collection::vec(prop::collection::vec(any_cell(), 4), 0..20),
        ) {
            let header = "app,measured_us,pred_a_us,upper_a_us\n".to_owned();
            // Each row by itself, so that one bad row does not end them all.
            let good = rows.iter().map(|row| row.join(",") + "\n");
            let text = good.filter(|row| Comparison::parse(&(header.clone() + row)).is_ok());
            let comparison = Comparison::parse(&text.fold(header.clone(), |text, row| text + &row)).unwrap();
            for figures in super::super::figures(&comparison, Some(|row| row.app.as_str())) {
                for model in figures.models {
                    let all = [model.mae_us, model.mape, model.bias_us, model.max_us, model.under_predicted];
                    prop_assert!(all.iter().all(|value| value.is_finite()), "{all:?}");
                }
            }
            let page = super::super::render("any", &comparison, None);
            prop_assert!(!page.contains("NaN") && !page.contains("<b>&"));
        }
    }
}
