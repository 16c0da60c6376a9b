//! Jobs that apps' own clocks release: how many were late, and when they finish.

use takt_trace::AppSummary;
use takt_trace::summary::JobsSummary;

use crate::html::{count, escape, millis};
use crate::{Run, histogram};

/// The section on jobs; empty if no app has a clock of its own.
pub(crate) fn section(runs: &[Run]) -> String {
    let mut out = String::new();
    for run in runs {
        let jobs = |app: &AppSummary| app.jobs.clone().map(|jobs| (app.name.clone(), jobs));
        let all: Vec<(String, JobsSummary)> = run.summary.apps.iter().filter_map(jobs).collect();
        if !all.is_empty() {
            out.push_str(&figure(&run.summary.policy, &all));
        }
    }
    if out.is_empty() {
        return out;
    }
    format!(
        "<section><h2>Jobs released by the apps' own clocks</h2>\
         <p class=\"note\">Response: from the release of a job to the end of its last group. \
         Share of jobs (vertical) by how much of their deadline they used.</p>{out}</section>\n"
    )
}

fn figure(policy: &str, all: &[(String, JobsSummary)]) -> String {
    let rows: String = all.iter().map(|(name, jobs)| row(name, jobs)).collect();
    let title = |name: &str| format!("When jobs of {name} finish under {policy}");
    let charts: String = all
        .iter()
        .filter(|(_, jobs)| jobs.histogram.iter().any(|bin| *bin > 0))
        .map(|(name, jobs)| {
            let chart = histogram::bins(&title(name), &jobs.histogram);
            format!("<figure><figcaption>{}</figcaption>{chart}</figure>", escape(name))
        })
        .collect();
    format!(
        "<h3>{}</h3><div class=\"wide\"><table><thead><tr><th>App</th><th class=\"num\">Period</th>\
         <th class=\"num\">Deadline</th><th class=\"num\">Late</th><th class=\"num\">Response p50</th>\
         <th class=\"num\">p99</th><th class=\"num\">max</th></tr></thead><tbody>{rows}</tbody></table></div>\
         <div class=\"multiples\">{charts}</div>",
        escape(policy)
    )
}

fn row(name: &str, jobs: &JobsSummary) -> String {
    let class = if jobs.late > 0 { "num bad" } else { "num good" };
    format!(
        "<tr><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td>\
         <td class=\"{class}\">{} of {}</td><td class=\"num\">{}</td><td class=\"num\">{}</td>\
         <td class=\"num\">{}</td></tr>",
        escape(name),
        millis(jobs.period_us),
        millis(jobs.deadline_us),
        count(jobs.late),
        count(jobs.count),
        millis(jobs.response_us.p50),
        millis(jobs.response_us.p99),
        millis(jobs.response_us.max),
    )
}
