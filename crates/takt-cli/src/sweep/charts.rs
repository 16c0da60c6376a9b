//! Rows of results as lines to draw.

use takt_report::lines::{Panel, Point, Series};
use takt_sim::study::table::{Cell, Table};
use takt_sim::study::{Axis, Choice, Plot, Study};

/// The panels of a plot: one for each choice of its facet.
pub(super) fn panels(study: &Study, plot: &Plot, table: &Table) -> Vec<Panel> {
    let facets = split(study, plot.facet);
    facets.into_iter().map(|facet| panel(study, plot, table, facet)).collect()
}

/// An axis and one of its choices; nothing where there is no axis to split by.
type Part<'s> = Option<(usize, &'s Axis, &'s Choice)>;

fn split(study: &Study, axis: Option<usize>) -> Vec<Part<'_>> {
    match axis.and_then(|index| Some((index, study.axes.get(index)?))) {
        Some((index, axis)) => axis.choices.iter().map(|choice| Some((index, axis, choice))).collect(),
        None => vec![None],
    }
}

fn belongs(row: &[Cell], part: &Part<'_>) -> bool {
    part.is_none_or(|(index, _, choice)| row.get(index) == Some(&choice.label))
}

fn panel(study: &Study, plot: &Plot, table: &Table, facet: Part<'_>) -> Panel {
    let x = study.axes.get(plot.x);
    let numeric = x.is_some_and(|x| x.choices.iter().all(|choice| choice.label.number().is_some()));
    let choices = x.map_or(&[][..], |x| &x.choices);
    let names = (!numeric).then(|| choices.iter().map(|choice| choice.label.to_string()).collect());
    let title = match facet {
        Some((_, axis, choice)) => format!("{}: {} {}", plot.title, axis.title, choice.label),
        None => plot.title.clone(),
    };
    let y = table.column(&plot.y).unwrap_or(usize::MAX);
    let series = split(study, plot.series).into_iter().map(|part| {
        let mut points: Vec<Point> = Vec::new();
        for (place, choice) in choices.iter().enumerate() {
            let here = |row: &&Vec<Cell>| {
                row.get(plot.x) == Some(&choice.label) && belongs(row, &facet) && belongs(row, &part)
            };
            let values = table.rows.iter().filter(here).filter_map(|row| row.get(y)?.number());
            let x = choice.label.number().filter(|_| numeric).unwrap_or(place as f64);
            points.extend(point(x, &values.collect::<Vec<_>>()));
        }
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let name = part.map_or_else(|| plot.y_title.clone(), |(_, _, choice)| choice.label.to_string());
        Series { name, points }
    });
    Panel {
        title,
        x_title: x.map_or_else(String::new, |axis| axis.title.clone()),
        y_title: plot.y_title.clone(),
        series_title: plot
            .series
            .and_then(|index| study.axes.get(index))
            .map_or_else(String::new, |axis| axis.title.clone()),
        x_names: names,
        y_range: plot.y_range,
        series: series.collect(),
    }
}

/// The mean of several values and how far they reach; nothing if there are none.
fn point(x: f64, values: &[f64]) -> Option<Point> {
    let y = values.iter().fold(0.0, |sum, value| sum + value) / values.len() as f64;
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (!values.is_empty()).then_some(Point { x, y, spread: (low, high) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_sim::scenario::study_file;

    #[test]
    fn lines_follow_axes_and_average_the_rest() {
        let text = "name = \"s\"\nrepetitions = 2\n[sets]\ncount = 1\nutilisation = 0.5\n\
                    period_us = [10, 20]\n[test]\nanalysis = \"edf\"\n\
                    [[axis]]\nset = \"sets.tasks\"\nvalues = [3, 2]\n\
                    [[axis]]\nset = \"test.analysis\"\nvalues = [\"edf\", \"np-edf\"]\n\
                    [[plot]]\nx = \"tasks\"\ny = \"ratio\"\nfacet = \"analysis\"\ntitle = \"T\"\n\
                    [[plot]]\nx = \"analysis\"\ny = \"ratio\"\nseries = \"tasks\"\n";
        let study = study_file::parse("s", text, &|_| Err(String::new())).unwrap();
        let cells = |job: u64| vec![Cell::Int(1), Cell::Int(0), Cell::Int(0), Cell::Float(job as f64)];
        let rows = (0..study.jobs()).map(|job| study.row(job, cells(job))).collect();
        let table = Table { columns: study.columns(), rows };
        let first = panels(&study, &study.plots[0], &table);
        assert_eq!(first.len(), 2);
        assert_eq!(first[1].title, "T: analysis np-edf");
        // Jobs 2, 3 are tasks = 3 and np-edf, 6 and 7 tasks = 2.
        let expected =
            [Point { x: 2.0, y: 6.5, spread: (6.0, 7.0) }, Point { x: 3.0, y: 2.5, spread: (2.0, 3.0) }];
        assert_eq!(first[1].series[0].points, expected);
        let [second] = &panels(&study, &study.plots[1], &table)[..] else { panic!() };
        assert_eq!(second.x_names.as_deref(), Some(&["edf".to_owned(), "np-edf".to_owned()][..]));
        assert_eq!(second.series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>(), ["3", "2"]);
    }
}
