//! Task sets as CSV: one row per task, `set,task,C,D,T`, in µs.
//!
//! A header is optional. With one, columns may be in any order and others may stand between them.

use std::collections::BTreeSet;

use takt_analysis::task::{Task, TaskError};
use takt_core::limits::APPS_MAX;
use takt_sim::scenario::Diagnostic;

/// A set and where it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TaskSet {
    /// Its number in the file.
    pub(crate) number: u64,
    /// Its tasks, in order.
    pub(crate) tasks: Vec<Task>,
    /// Line of its first task.
    pub(crate) line: u32,
}

/// Errors listed at once: one slip often spoils every row.
const PROBLEMS_MAX: usize = 10;

const COLUMNS: [&str; 5] = ["set", "task", "C", "D", "T"];
const FORMAT: &str = "write rows of set,task,C,D,T with times in whole microseconds";

/// Reads a whole file; `name` is for messages.
pub(crate) fn parse(name: &str, text: &str) -> Result<Vec<TaskSet>, Vec<Diagnostic>> {
    let mut reader =
        Reader { name, problems: Vec::new(), sets: Vec::new(), seen: BTreeSet::new(), last: None };
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).peekable();
    let first = lines.next_if(|(_, line)| !line.trim_start().starts_with(|c: char| c.is_ascii_digit()));
    let layout = match first {
        None => Some(Layout { places: [0, 1, 2, 3, 4], columns_max: COLUMNS.len() }),
        Some((line, header)) => reader.header(line, header),
    };
    if let Some(layout) = layout {
        for (line, row) in lines {
            reader.row(line, row, &layout);
            if reader.problems.len() >= PROBLEMS_MAX {
                break;
            }
        }
        if reader.sets.is_empty() && reader.problems.is_empty() {
            reader.problem(1, 1, "there are no tasks".to_owned(), FORMAT);
        }
    }
    if reader.problems.is_empty() { Ok(reader.sets) } else { Err(reader.problems) }
}

/// Which columns a row has.
struct Layout {
    /// Where each of [`COLUMNS`] stands.
    places: [usize; 5],
    columns_max: usize,
}

struct Reader<'a> {
    name: &'a str,
    problems: Vec<Diagnostic>,
    sets: Vec<TaskSet>,
    /// Numbers of the sets so far.
    seen: BTreeSet<u64>,
    /// Set and task of the row before.
    last: Option<(u64, u64)>,
}

impl Reader<'_> {
    fn problem(&mut self, line: u32, column: u32, message: String, remedy: &str) {
        let file = self.name.to_owned();
        self.problems.push(Diagnostic { file, line, column, message, remedy: remedy.to_owned() });
    }

    fn header(&mut self, line: u32, header: &str) -> Option<Layout> {
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
        let mut places = [0; 5];
        for (place, wanted) in places.iter_mut().zip(COLUMNS) {
            match names.iter().position(|name| *name == wanted) {
                Some(found) => *place = found,
                None => {
                    let message =
                        format!("'{}' is no row and no header with a column {wanted}", short(header));
                    self.problem(line, 1, message, FORMAT);
                    return None;
                }
            }
        }
        Some(Layout { places, columns_max: names.len() })
    }

    fn row(&mut self, line: u32, row: &str, layout: &Layout) {
        let mut cells = Vec::new();
        let mut column: u32 = 1;
        for cell in row.split(',') {
            cells.push((column, cell));
            let width = u32::try_from(cell.chars().count()).unwrap_or(u32::MAX);
            column = column.saturating_add(width).saturating_add(1);
        }
        let mut numbers = [(0, 0); 5];
        for ((number, place), name) in numbers.iter_mut().zip(layout.places).zip(COLUMNS) {
            let Some((column, cell)) = cells.get(place) else {
                let message = format!("column {name} is missing in '{}'", short(row));
                return self.problem(line, column.saturating_sub(1), message, FORMAT);
            };
            let Ok(value) = cell.trim().parse::<u64>() else {
                let message = format!("{name} is '{}', which is no whole number", short(cell));
                return self.problem(line, *column, message, FORMAT);
            };
            *number = (*column, value);
        }
        if let Some((column, cell)) = cells.get(layout.columns_max) {
            let message = format!("'{}' is in a column too many", short(cell));
            return self.problem(line, *column, message, "name all columns in a header, or take it out");
        }
        self.task(line, numbers);
    }

    fn task(&mut self, line: u32, numbers: [(u32, u64); 5]) {
        let [(set_at, set), (task_at, task), (wcet_at, wcet), (deadline_at, deadline), (period_at, period)] =
            numbers;
        let task_of_row = match Task::new(wcet, deadline, period) {
            Ok(task) => task,
            Err(error) => {
                let (column, name, value) = match error {
                    TaskError::Wcet => (wcet_at, "C", wcet),
                    TaskError::Deadline => (deadline_at, "D", deadline),
                    TaskError::Period => (period_at, "T", period),
                };
                return self.problem(line, column, format!("{name} is {value}"), &error.to_string());
            }
        };
        let begins = self.last.is_none_or(|(last, _)| last != set);
        let expected = self.last.filter(|_| !begins).map(|(_, last)| last.saturating_add(1));
        self.last = Some((set, task));
        if begins && !self.seen.insert(set) {
            let message = format!("set {set} appears again");
            return self.problem(line, set_at, message, "keep the rows of a set together");
        }
        if expected.map_or(task > 1, |expected| task != expected) {
            let message = format!("task {task} of set {set} is out of order");
            return self.problem(line, task_at, message, "number the tasks of a set from 0 or 1, in order");
        }
        match self.sets.last_mut() {
            Some(known) if !begins && known.tasks.len() >= APPS_MAX => {
                let message = format!("set {set} has more than {APPS_MAX} tasks");
                self.problem(line, set_at, message, "split the set");
            }
            Some(known) if !begins => known.tasks.push(task_of_row),
            _ => self.sets.push(TaskSet { number: set, tasks: vec![task_of_row], line }),
        }
    }
}

/// Enough of a text to recognise it.
fn short(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    let text = text.trim();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        let problems = parse("f.csv", text).expect_err("something is wrong");
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    #[test]
    fn headers_are_optional_and_columns_may_be_named() {
        let plain = parse("f", "0,0,3,9,10\n0,1,4,20,20\n\n7,1,1,2,3\r\n").unwrap();
        assert_eq!(plain.len(), 2);
        assert_eq!(plain[0].tasks[1], Task::new(4, 20, 20).unwrap());
        assert_eq!((plain[1].number, plain[1].line), (7, 4));
        let named = parse("f", "set,U,task,C,D,T\n0,0.6,0,3,9,10\n0,0.6,1,4,20,20\n7,0.6,1,1,2,3\n").unwrap();
        assert_eq!(
            plain.iter().map(|s| &s.tasks).collect::<Vec<_>>(),
            named.iter().map(|s| &s.tasks).collect::<Vec<_>>()
        );
    }

    #[test]
    fn errors_name_the_place_the_value_and_the_remedy() {
        assert_eq!(
            problems("0,0,3,9,10\n0,1,x4,20,20\n"),
            "f.csv:2:5: C is 'x4', which is no whole number\n  \
             help: write rows of set,task,C,D,T with times in whole microseconds"
        );
        assert_eq!(
            problems("0,0,3,9\n"),
            "f.csv:1:8: column T is missing in '0,0,3,9'\n  \
             help: write rows of set,task,C,D,T with times in whole microseconds"
        );
        assert_eq!(
            problems("0,0,3,0,10\n"),
            "f.csv:1:7: D is 0\n  help: the deadline must be between 1 and 281474976710656"
        );
        assert_eq!(
            problems("0,0,1,1,1\n1,0,1,1,1\n0,1,1,1,1\n"),
            "f.csv:3:1: set 0 appears again\n  help: keep the rows of a set together"
        );
        assert_eq!(
            problems("0,0,1,1,1\n0,2,1,1,1\n"),
            "f.csv:2:3: task 2 of set 0 is out of order\n  help: number the tasks of a set from 0 or 1, in order"
        );
        assert!(problems("set,task,C,D\n").contains("no header with a column T"));
        assert!(problems("").contains("there are no tasks"));
        assert!(problems("0,0,1,1,1,1\n").contains("'1' is in a column too many"));
        assert!(problems("set,task,C,D,T,x\n0,0,1,1,1,2,3\n").contains("f.csv:2:13: '3'"));
        assert!(problems("-1,0,1,1,1\n").contains("'-1,0,1,1,1' is no row"));
        assert!(problems("0,0,1.5,1,1\n").contains("f.csv:1:5: C is '1.5'"));
        assert_eq!(parse("f", &"0,0,a,1,1\n".repeat(500)).unwrap_err().len(), PROBLEMS_MAX);
    }
}
