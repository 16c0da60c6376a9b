//! Frames of real programs: the same programs several times, side by side.

use takt_trace::frames::{Frame, FrameFigures, MissedAt, Window};

use crate::html::{escape, finite, millis, percent};
use crate::page::document;
use crate::svg::number;
use crate::{strips, timeline};

/// A page about runs of the same programs.
#[derive(Clone, Debug, Default)]
pub struct FramesPage {
    /// What it is about.
    pub title: String,
    /// Where, how long, with what.
    pub subtitle: String,
    /// What is to be learned from it.
    pub findings: Vec<String>,
    /// What was to be seen, those of one program below each other.
    pub strips: Vec<Strip>,
    /// The runs.
    pub runs: Vec<Run>,
}

/// Pictures of a program at equal distances of time.
#[derive(Clone, Debug)]
pub struct Strip {
    /// The program.
    pub app: String,
    /// The run.
    pub run: String,
    /// Time between two frames that it is to show, in milliseconds.
    pub period_ms: f64,
    /// The pictures.
    pub cells: Vec<Cell>,
}

/// What a program showed at a moment.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The picture, as PNG.
    pub png: Vec<u8>,
    /// How long it had been there, in milliseconds.
    pub age_ms: u64,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// How it differs from the others.
    pub name: String,
    /// Its judged frames.
    pub window: Window,
    /// The programs, most important first; the same in all runs.
    pub apps: Vec<App>,
}

/// A program.
#[derive(Clone, Debug)]
pub struct App {
    /// How people call it.
    pub name: String,
    /// Its importance, if the page shows that.
    pub priority: u32,
    /// Frames per second it is to have; 0 if it takes what it gets.
    pub fps: f64,
    /// Its frames.
    pub frames: Vec<Frame>,
    /// What became of them.
    pub figures: FrameFigures,
    /// Deadlines that it missed.
    pub missed: Vec<MissedAt>,
    /// What its frames would take on the idle machine, as a share of one renderer's time.
    pub gpu_share: f64,
}

/// The page as HTML.
pub fn render(page: &FramesPage) -> String {
    let findings: Vec<String> =
        page.findings.iter().map(|finding| format!("<li>{}</li>", escape(finding))).collect();
    let mut body = format!(
        "<header><h1>{}</h1><p class=\"sub\">{}</p><ul class=\"verdict\">{}</ul></header>\n<main>\n",
        escape(&page.title),
        escape(&page.subtitle),
        findings.concat()
    );
    body += &strips::section(&page.strips);
    body += &table(&page.runs);
    body += &timelines(&page.runs);
    body += &format!("</main>\n<script>{}</script>\n", timeline::SCRIPT);
    document(&escape(&page.title), &body)
}

fn table(runs: &[Run]) -> String {
    let mut out = String::from(
        "<section><h2>Apps</h2><div class=\"wide\"><table><thead><tr><th rowspan=\"2\">App</th>\
         <th rowspan=\"2\" class=\"num\">Priority</th><th rowspan=\"2\" class=\"num\">Wanted FPS</th>",
    );
    for run in runs {
        out += &format!("<th colspan=\"4\" class=\"run\">{}</th>", escape(&run.name));
    }
    out += "</tr><tr>";
    for _ in runs {
        out += "<th class=\"num first\">FPS</th><th class=\"num\">Met</th>\
                <th class=\"num\">Response p99</th><th class=\"num\">Work</th>";
    }
    out += "</tr></thead><tbody>";
    for (index, app) in runs.first().map_or(&[][..], |run| &run.apps).iter().enumerate() {
        let wanted = if app.fps > 0.0 { number(finite(app.fps)) } else { "–".to_owned() };
        out += &format!(
            "<tr><td><span class=\"swatch\" style=\"background:var(--app{})\"></span>{}</td>\
             <td class=\"num\">{}</td><td class=\"num\">{wanted}</td>",
            index % 8,
            escape(&app.name),
            app.priority
        );
        for run in runs {
            out += &run.apps.get(index).map(cells).unwrap_or_default();
        }
        out += "</tr>";
    }
    out + "</tbody></table></div><p class=\"note\">Met: frames that the GPU had finished when they were due, of \
           those that were due. Response: from the moment a frame began to its end. Work: frames times what one \
           takes on the idle machine, as a share of one renderer's time.</p></section>\n"
}

fn cells(app: &App) -> String {
    let figures = &app.figures;
    let (class, met) = match figures.met_share {
        Some(share) if share >= 1.0 => ("num good", percent(share)),
        Some(share) => ("num bad", percent(share)),
        None => ("num", "–".to_owned()),
    };
    let response = match figures.frames {
        0 => "–".to_owned(),
        _ => millis(figures.response_us.p99),
    };
    format!(
        "<td class=\"num first\">{:.1}</td><td class=\"{class}\">{met}</td><td class=\"num\">{response}</td>\
         <td class=\"num\">{}</td>",
        finite(figures.fps),
        percent(app.gpu_share)
    )
}

fn timelines(runs: &[Run]) -> String {
    let mut out = String::from(
        "<section><h2>Frames over time</h2><p class=\"note\">Each box is a frame, from when the app began to \
         draw it to when the GPU had finished it. Boxes of frames that were on time are green, those of late ones \
         red, with a cross at each deadline that passed; frames without a deadline have the colour of their \
         app.</p>",
    );
    if runs.len() > 1 {
        out += "<p class=\"noprint\"><label><input type=\"checkbox\" id=\"link-timelines\" checked> \
                move and zoom all diagrams together</label></p>";
    }
    for (index, run) in runs.iter().enumerate() {
        out += &format!("<h3>{}</h3>", escape(&run.name));
        out += &timeline::frames(run, index);
    }
    out + "</section>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_trace::frames::judge;

    fn run(name: &str, took: u64) -> Run {
        let window = Window { from: 1_000_000_000, until: 1_100_000_000 };
        let frame = |number: u64| {
            let release = 1_000_000_000 + number * 10_000_000;
            Frame { number, release, begin: release, end: release + took }
        };
        let frames: Vec<Frame> = (0..10).map(frame).collect();
        let (figures, missed) = judge(&frames, 100.0, window);
        let app =
            App { name: "<dial>".into(), priority: 9, fps: 100.0, frames, figures, missed, gpu_share: 0.25 };
        Run { name: name.to_owned(), window, apps: vec![app] }
    }

    #[test]
    fn both_runs_are_shown_and_nothing_escapes() {
        let page = FramesPage {
            title: "live".into(),
            subtitle: "here".into(),
            findings: vec!["all <b>".into()],
            strips: vec![],
            runs: vec![run("alone & free", 12_000_000), run("with Takt", 4_000_000)],
        };
        let html = render(&page);
        assert!(html.contains("&lt;dial&gt;") && !html.contains("<dial>"));
        assert!(html.contains("alone &amp; free") && html.contains("all &lt;b&gt;"));
        assert!(html.contains("<td class=\"num bad\">0.0 %</td>"));
        assert!(html.contains("<td class=\"num good\">100 %</td>"));
        assert_eq!(html.matches("\"frames_only\":true").count(), 2);
        assert_eq!(html.matches("data-source=\"timeline-").count(), 2);
        // Ten deadlines were missed in the first run, none in the second.
        assert!(html.contains("10 frames of 1 apps, 10 deadlines missed"), "{html}");
        assert!(html.contains("10 frames of 1 apps, 0 deadlines missed"));
    }

    #[test]
    fn an_app_without_frames_has_no_response_time() {
        let mut app = run("alone", 4_000_000).apps.remove(0);
        assert!(cells(&app).contains(">4.00 ms</td>"), "{}", cells(&app));
        let window = Window { from: 0, until: 1_000_000_000 };
        (app.frames, app.fps) = (vec![], 0.0);
        app.figures = judge(&app.frames, app.fps, window).0;
        assert!(cells(&app).contains("<td class=\"num\">–</td><td class=\"num\">–</td>"), "{}", cells(&app));
    }
}
