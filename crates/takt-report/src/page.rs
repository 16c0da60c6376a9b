//! The page as a whole: head, verdict, table of apps, and the order of everything else.

use takt_trace::{AppSummary, Summary};

use crate::html::{count, escape, finite, millis, percent};
use crate::svg::number;
use crate::{Run, bars, histogram, jobs, misses, timeline, utilisation};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page may use what it contains and nothing else, whatever a name might smuggle in.
const POLICY: &str =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// A whole page around `body`; `title` is escaped already.
pub(crate) fn document(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title} – Takt</title>\n<style>{STYLE}</style></head>\n<body>\n{body}</body></html>\n"
    )
}

pub(crate) fn render(runs: &[Run]) -> String {
    let title = title(runs);
    let mut body = format!("<header><h1>{title}</h1>");
    body.push_str(&subtitle(runs));
    body.push_str(&verdict(runs));
    body.push_str("</header>\n<main>\n");
    if !runs.is_empty() {
        let colours = Colours::new(runs);
        body.push_str(&apps(runs, &colours));
        body.push_str(&jobs::section(runs));
        body.push_str(&deadlines(runs));
        body.push_str(&utilisations(runs));
        body.push_str(&timelines(runs, &colours));
        body.push_str(&histograms(runs));
        body.push_str(&all_misses(runs));
        body.push_str(&facts(runs));
    }
    let scripts = [timeline::SCRIPT, SCRIPT].map(|script| format!("<script>{script}</script>\n"));
    body.push_str("</main>\n");
    body.push_str(&scripts.concat());
    document(&title, &body)
}

/// A number for each app by name, so that an app has one colour on the whole page.
struct Colours(Vec<String>);

impl Colours {
    fn new(runs: &[Run]) -> Self {
        let mut names: Vec<String> = Vec::new();
        for app in runs.iter().flat_map(|run| &run.summary.apps) {
            if !names.contains(&app.name) {
                names.push(app.name.clone());
            }
        }
        Self(names)
    }

    fn of(&self, name: &str) -> usize {
        let at = self.0.iter().position(|other| other == name);
        at.unwrap_or(self.0.len())
    }
}

fn title(runs: &[Run]) -> String {
    let scenario = runs.first().map(|run| run.summary.scenario.as_str());
    escape(scenario.unwrap_or("No runs"))
}

fn subtitle(runs: &[Run]) -> String {
    let Some(first) = runs.first() else {
        return String::new();
    };
    let policies: Vec<String> = runs.iter().map(|run| escape(&run.summary.policy)).collect();
    format!(
        "<p class=\"sub\">{} · {} apps · {} s judged · seed {}</p>",
        policies.join(" against "),
        first.summary.apps.len(),
        number(finite(first.summary.judged_s)),
        first.summary.seed
    )
}

fn verdict(runs: &[Run]) -> String {
    let items: Vec<String> = runs.iter().map(|run| judged(&run.summary)).collect();
    format!("<ul class=\"verdict\">{}</ul>", items.concat())
}

/// One sentence on one run.
fn judged(summary: &Summary) -> String {
    let policy = escape(&summary.policy);
    let due: u64 = summary.apps.iter().map(|app| app.deadlines).sum();
    // Deadlines are kept from the top: what counts is down to whom.
    let kept = summary.apps.iter().take_while(|app| app.missed == 0).count();
    if kept == summary.apps.len() {
        return format!("<li><b>{policy}</b>: all {} deadlines met.</li>", count(due));
    }
    let missed: u64 = summary.apps.iter().map(|app| app.missed).sum();
    let below = summary.apps[kept..].iter().filter(|app| app.missed > 0);
    let mut listed: Vec<String> =
        below.clone().take(4).map(|app| format!("{} met {}", escape(&app.name), percent(app.met))).collect();
    let others = below.count() - listed.len();
    if others > 0 {
        listed.push(format!("{others} more apps missed some"));
    }
    let (class, lead) = match kept {
        0 => (" class=\"missed\"", "even the most important app missed deadlines".to_owned()),
        1 => ("", "the most important app met all its deadlines".to_owned()),
        kept => ("", format!("the {kept} most important apps met all their deadlines")),
    };
    format!(
        "<li{class}><b>{policy}</b>: {lead}; {} of {} were missed in all – {}.</li>",
        count(missed),
        count(due),
        listed.join(", ")
    )
}

fn apps(runs: &[Run], colours: &Colours) -> String {
    let mut out = String::from("<section><h2>Apps</h2><div class=\"wide\"><table><thead><tr>");
    out.push_str(
        "<th rowspan=\"2\">App</th><th rowspan=\"2\" class=\"num\">Priority</th>\
         <th rowspan=\"2\" class=\"num\">Wanted FPS</th>",
    );
    for run in runs {
        let policy = escape(&run.summary.policy);
        out.push_str(&format!("<th colspan=\"6\" class=\"run\">{policy}</th>"));
    }
    out.push_str("</tr><tr>");
    for _ in runs {
        out.push_str(
            "<th class=\"num first\">FPS</th><th class=\"num\">Met</th>\
             <th class=\"num\">Missed</th><th class=\"num\">Response p99</th>\
             <th class=\"num\">Blocked max</th><th class=\"num\">GPU share</th>",
        );
    }
    out.push_str("</tr></thead><tbody>");
    for name in &colours.0 {
        out.push_str(&app_row(runs, name, colours.of(name)));
    }
    out.push_str("</tbody></table></div>");
    out.push_str(
        "<p class=\"note\">Response: from the moment a frame may start to its end. \
         Blocked: the longest time a ready group waited for work of less important apps.</p></section>\n",
    );
    out
}

fn app_row(runs: &[Run], name: &str, colour: usize) -> String {
    let find = |run: &Run| run.summary.apps.iter().find(|app| app.name == name).cloned();
    let (priority, wanted) =
        runs.iter().find_map(find).map_or((0, 0.0), |app| (app.priority, app.fps_target));
    let mut out = format!(
        "<tr><td><span class=\"swatch\" style=\"background:var(--app{})\"></span>{}</td>\
         <td class=\"num\">{priority}</td><td class=\"num\">{}</td>",
        colour % 8,
        escape(name),
        number(finite(wanted))
    );
    for run in runs {
        match find(run) {
            Some(app) => out.push_str(&app_cells(&app)),
            None => out.push_str("<td class=\"first\" colspan=\"6\">not in this run</td>"),
        }
    }
    out.push_str("</tr>");
    out
}

fn app_cells(app: &AppSummary) -> String {
    let class = if app.missed > 0 { "num bad" } else { "num good" };
    format!(
        "<td class=\"num first\">{:.2}</td><td class=\"{class}\">{}</td>\
         <td class=\"num\">{} of {}</td><td class=\"num\">{}</td><td class=\"num\">{}</td>\
         <td class=\"num\">{}</td>",
        finite(app.fps),
        percent(app.met),
        count(app.missed),
        count(app.deadlines),
        if app.frames == 0 { "–".to_owned() } else { millis(app.response_us.p99) },
        millis(app.blocking_us_max),
        percent(app.gpu_share)
    )
}

fn deadlines(runs: &[Run]) -> String {
    let apps = runs.iter().flat_map(|run| &run.summary.apps);
    let fps_max = apps.fold(1.0f64, |max, app| max.max(app.fps).max(app.fps_target));
    columns("Met deadlines and frame rates", runs, |run| bars::chart(&run.summary, fps_max))
}

fn utilisations(runs: &[Run]) -> String {
    let lengths = runs.iter().map(|run| run.summary.duration_s);
    let seconds = lengths.fold(0.0, f64::max);
    columns("GPU utilisation", runs, |run| utilisation::chart(&run.summary, seconds))
}

/// A section with one picture per run, next to each other.
fn columns(title: &str, runs: &[Run], picture: impl Fn(&Run) -> String) -> String {
    let mut out = format!("<section><h2>{title}</h2><div class=\"columns\">");
    for run in runs {
        out.push_str(&format!("<figure><h3>{}</h3>{}</figure>", escape(&run.summary.policy), picture(run)));
    }
    out.push_str("</div></section>\n");
    out
}

fn timelines(runs: &[Run], colours: &Colours) -> String {
    let mut out = String::from("<section><h2>Timing diagram</h2>");
    out.push_str(
        "<p class=\"note\">App lanes: groups from the moment of submission, as long as they were \
         predicted to run. SCHED: ▼ dispatch, ‖ held back. GPU: groups as they were executed, in \
         the colour of their app. Lines lead from submission over dispatch to execution, dotted \
         lines are vsyncs, and frames that missed their deadline are outlined in red, with a \
         cross at the deadline.</p>",
    );
    if runs.len() > 1 {
        out.push_str(
            "<p class=\"noprint\"><label><input type=\"checkbox\" id=\"link-timelines\" checked> \
             move and zoom all diagrams together</label></p>",
        );
    }
    for (index, run) in runs.iter().enumerate() {
        let policy = escape(&run.summary.policy);
        out.push_str(&format!("<h3>{policy}</h3>"));
        out.push_str(&timeline::diagram(run, index, |name| colours.of(name)));
    }
    out.push_str("</section>\n");
    out
}

fn histograms(runs: &[Run]) -> String {
    let mut out = String::from("<section><h2>When frames finish</h2>");
    out.push_str(
        "<p class=\"note\">Share of frames (vertical) by how much of the time from release to \
         deadline they used. Right of the dashed line is too late.</p>",
    );
    for run in runs {
        let policy = escape(&run.summary.policy);
        out.push_str(&format!("<h3>{policy}</h3><div class=\"multiples\">"));
        for app in &run.summary.apps {
            out.push_str(&format!(
                "<figure><figcaption>{} <span class=\"sub\">priority {}, {} frames</span>\
                 </figcaption>{}</figure>",
                escape(&app.name),
                app.priority,
                count(app.frames),
                histogram::chart(app, &run.summary.policy)
            ));
        }
        out.push_str("</div>");
    }
    out.push_str("</section>\n");
    out
}

fn all_misses(runs: &[Run]) -> String {
    let mut out = String::from("<section><h2>Missed deadlines and their causes</h2>");
    for (index, run) in runs.iter().enumerate() {
        let policy = escape(&run.summary.policy);
        out.push_str(&format!("<h3>{policy}</h3>"));
        out.push_str(&misses::table(&run.summary, index));
    }
    out.push_str("</section>\n");
    out
}

fn facts(runs: &[Run]) -> String {
    let mut out = String::from("<section><h2>Runs</h2><div class=\"columns\">");
    for Run { summary, meta, .. } in runs {
        let scheduler = &summary.scheduler;
        let rows = [
            ("Scenario", escape(&summary.scenario)),
            ("Seed", summary.seed.to_string()),
            ("Event hash", escape(&summary.event_hash)),
            ("Refresh rate", format!("{} Hz", number(f64::from(meta.refresh.mhz()) / 1000.0))),
            ("Decisions", count(scheduler.runs)),
            ("Groups dispatched", count(scheduler.dispatched)),
            ("Completions lost", count(scheduler.lost)),
            ("Events refused", count(scheduler.refused)),
            ("GPU utilisation", percent(summary.gpu.utilisation)),
        ];
        let rows = rows.map(|(term, value)| format!("<dt>{term}</dt><dd>{value}</dd>"));
        out.push_str(&format!("<div><h3>{}</h3><dl>{}</dl></div>", escape(&summary.policy), rows.concat()));
    }
    out.push_str("</div></section>\n");
    out
}
