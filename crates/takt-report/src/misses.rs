//! The list of missed deadlines, with a filter.

use takt_trace::{Miss, Summary};

use crate::html::{count, escape, millis};

/// Lines shown beyond which the browser would take long to lay out the table.
const ROWS_MAX: usize = 2_000;

/// The table of one run; `index` makes its elements unique on the page.
pub(crate) fn table(summary: &Summary, index: usize) -> String {
    let total: u64 = summary.apps.iter().map(|app| app.missed).sum();
    if total == 0 && summary.misses.is_empty() {
        return "<p class=\"good\">No deadline was missed.</p>".to_owned();
    }
    let mut out = filter(summary, index);
    out.push_str(&format!(
        "<div class=\"scroll\"><table class=\"misses\" id=\"misses-{index}\"><thead><tr>\
         <th class=\"num\">Deadline</th><th>App</th><th class=\"num\">Frame</th>\
         <th class=\"num\">Late by</th><th>Cause</th></tr></thead><tbody>"
    ));
    for miss in summary.misses.iter().take(ROWS_MAX) {
        out.push_str(&row(miss, slot(summary, &miss.app)));
    }
    out.push_str("</tbody></table></div>");
    let hidden = summary.misses.len().saturating_sub(ROWS_MAX) as u64 + summary.misses_omitted;
    if hidden > 0 {
        out.push_str(&format!("<p class=\"note\">{} more are not listed.</p>", count(hidden)));
    }
    out
}

fn filter(summary: &Summary, index: usize) -> String {
    let mut out = format!(
        "<p class=\"filter noprint\"><label>Show <select data-filter=\"misses-{index}\">\
         <option value=\"\">all apps</option>"
    );
    for (slot, app) in summary.apps.iter().enumerate() {
        if app.missed > 0 {
            out.push_str(&format!(
                "<option value=\"{slot}\">{} ({})</option>",
                escape(&app.name),
                count(app.missed)
            ));
        }
    }
    out.push_str("</select></label> <span aria-live=\"polite\"></span></p>");
    out
}

fn row(miss: &Miss, slot: Option<usize>) -> String {
    let late = miss.late_us.map_or_else(|| "never finished".to_owned(), millis);
    format!(
        "<tr data-app=\"{}\"><td class=\"num\">{:.4} s</td><td>{}</td><td class=\"num\">{}</td>\
         <td class=\"num\">{late}</td><td>{}</td></tr>",
        slot.map_or_else(String::new, |slot| slot.to_string()),
        miss.deadline_s,
        escape(&miss.app),
        miss.frame,
        escape(&miss.sentence)
    )
}

fn slot(summary: &Summary, app: &str) -> Option<usize> {
    summary.apps.iter().position(|other| other.name == app)
}
