//! Counters in the text format of Prometheus ([ADR 0047](../../../../docs/adr/0047-prometheus-text-by-hand.md)).

use std::fmt::Write;

use takt_core::{Span, Stats};
use takt_trace::totals::{AppTotals, BUCKETS_US, Buckets, Totals};

use crate::control::members::Members;
use crate::rt::queues::LoopStats;

/// All counters.
#[derive(Debug)]
pub(crate) struct Counted<'a> {
    /// By app.
    pub(crate) totals: &'a Totals,
    /// The apps that are scheduled now.
    pub(crate) members: &'a Members,
    /// The core's counters.
    pub(crate) stats: Stats,
    pub(crate) loop_stats: LoopStats,
    /// An invariant of the core broke, and nothing is scheduled.
    pub(crate) broken: bool,
}

/// A page of metrics.
#[derive(Default)]
struct Page(String);

impl Counted<'_> {
    /// The text of all metrics.
    pub(crate) fn text(&self) -> String {
        let mut page = Page::default();
        self.daemon(&mut page);
        self.scheduled(&mut page);
        self.apps(&mut page);
        page.0
    }

    fn daemon(&self, page: &mut Page) {
        let (stats, turns) = (&self.stats, &self.loop_stats);
        for (name, help, value) in [
            ("takt_decisions_total", "Decisions taken.", stats.runs),
            ("takt_granted_total", "Command groups granted.", stats.dispatched),
            ("takt_completed_total", "Command groups whose end was reported.", stats.completed),
            ("takt_lost_total", "Command groups whose end was never reported.", stats.lost),
            ("takt_refused_total", "Requests that were refused.", stats.refused),
            ("takt_untold_total", "Records dropped because the queue was full.", turns.dropped),
            ("takt_uncounted_total", "Records missing in the counters below.", self.totals.gaps()),
        ] {
            page.head(name, "counter", help);
            page.line(name, &[], &value.to_string());
        }
        page.head("takt_turn_seconds", "summary", "Time of a turn of the scheduling loop.");
        page.line("takt_turn_seconds_sum", &[], &seconds(turns.busy));
        page.line("takt_turn_seconds_count", &[], &turns.turns.to_string());
        page.head("takt_turn_longest_seconds", "gauge", "The longest turn since the start.");
        page.line("takt_turn_longest_seconds", &[], &seconds(turns.longest));
    }

    fn scheduled(&self, page: &mut Page) {
        let help = "Whether an invariant of the scheduler broke, so that nothing is scheduled any more.";
        page.head("takt_broken", "gauge", help);
        page.line("takt_broken", &[], &u8::from(self.broken).to_string());
        page.head("takt_apps", "gauge", "Apps that are scheduled now.");
        page.line("takt_apps", &[], &self.members.iter().count().to_string());
        page.head("takt_app_protected", "gauge", "Whether the deadlines of an app are guaranteed.");
        for member in self.members.iter() {
            let (slot, priority) = (member.app.0.to_string(), member.params.priority.0.to_string());
            let labels = [("app", member.name.as_str()), ("slot", &slot), ("priority", &priority)];
            page.line("takt_app_protected", &labels, &u8::from(member.protected).to_string());
        }
    }

    fn apps(&self, page: &mut Page) {
        type Count = fn(&AppTotals) -> String;
        let counters: [(&str, &str, Count); 5] = [
            ("takt_frames_total", "Frames finished.", |app| app.frames.to_string()),
            ("takt_frames_met_total", "Frames finished in time.", |app| app.met.to_string()),
            ("takt_deadlines_missed_total", "Deadlines missed.", |app| app.missed.to_string()),
            ("takt_groups_total", "Command groups executed.", |app| app.groups.to_string()),
            ("takt_gpu_seconds_total", "Time on the GPU.", |app| seconds(app.gpu)),
        ];
        for (name, help, count) in counters {
            page.head(name, "counter", help);
            for (app, totals) in self.totals.apps() {
                page.line(name, &[("app", app)], &count(totals));
            }
        }
        type Of = fn(&AppTotals) -> &Buckets;
        let histograms: [(&str, &str, Of); 3] = [
            ("takt_blocking_seconds", "How long ready groups waited for less important work.", |app| {
                &app.blocking
            }),
            ("takt_response_seconds", "From the release of a frame to its end.", |app| &app.response),
            ("takt_estimate_error_seconds", "By how much predictions were wrong.", |app| &app.error),
        ];
        for (name, help, of) in histograms {
            page.head(name, "histogram", help);
            for (app, totals) in self.totals.apps() {
                page.histogram(name, app, of(totals));
            }
        }
    }
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: &str) {
        self.write(format_args!("{name}"));
        for (index, (label, text)) in labels.iter().enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            self.write(format_args!("{open}{label}=\"{}\"", escaped(text)));
        }
        let close = if labels.is_empty() { "" } else { "}" };
        self.write(format_args!("{close} {value}\n"));
    }

    fn histogram(&mut self, name: &str, app: &str, buckets: &Buckets) {
        let bucket = format!("{name}_bucket");
        let mut below = 0;
        for (us, count) in BUCKETS_US.iter().zip(buckets.counts) {
            below += count;
            let bound = seconds(Span::from_us(*us));
            self.line(&bucket, &[("app", app), ("le", &bound)], &below.to_string());
        }
        self.line(&bucket, &[("app", app), ("le", "+Inf")], &buckets.count.to_string());
        self.line(&format!("{name}_sum"), &[("app", app)], &seconds(buckets.sum));
        self.line(&format!("{name}_count"), &[("app", app)], &buckets.count.to_string());
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        // Formatting into a string cannot fail.
        self.0.write_fmt(text).unwrap_or_default();
    }
}

/// Seconds, exact to the nanosecond.
fn seconds(span: Span) -> String {
    (span.as_ns() as f64 / 1e9).to_string()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use takt_core::{AppId, Priority, Time};
    use takt_trace::{AppMeta, Observer};

    /// Reads the format: each sample with its labels, checked against the type of its family.
    fn parse(text: &str) -> BTreeMap<String, f64> {
        let mut samples = BTreeMap::new();
        let mut family = (String::new(), String::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a name and a type");
                assert!(["counter", "gauge", "histogram", "summary"].contains(&kind), "{line}");
                family = (name.to_owned(), kind.to_owned());
            } else if !line.starts_with("# HELP ") {
                let (sample, value) = line.rsplit_once(' ').expect("a sample and its value");
                let name = sample.split('{').next().unwrap_or_default();
                assert!(name.starts_with(&family.0), "{line} belongs to {family:?}");
                assert_eq!(family.1 == "counter", name.ends_with("_total"), "{line}");
                assert!(sample.contains('{') == sample.ends_with('}'), "{line}");
                let value = value.parse().expect("a number");
                assert!(samples.insert(sample.to_owned(), value).is_none(), "{line} comes twice");
            }
        }
        samples
    }

    #[test]
    fn the_page_can_be_read() {
        let mut totals = Totals::default();
        let name = "a \"b\"\\\n".to_owned();
        totals.meet(Time::ZERO, AppId(0), &AppMeta { name, priority: Priority(1), fps_mhz: 0, jobs: None });
        let loop_stats =
            LoopStats { turns: 4, busy: Span::from_us(6), longest: Span::from_us(3), dropped: 1 };
        let members = Members::new(4);
        let (stats, broken) = (Stats::default(), true);
        let counted = Counted { totals: &totals, members: &members, stats, loop_stats, broken };
        let text = counted.text();
        let samples = parse(&text);
        assert_eq!(samples["takt_turn_seconds_sum"], 6e-6);
        assert_eq!(samples["takt_turn_seconds_count"], 4.0);
        assert_eq!(samples["takt_untold_total"], 1.0);
        assert_eq!(samples["takt_broken"], 1.0);
        assert_eq!(samples["takt_frames_total{app=\"a \\\"b\\\"\\\\\\n\"}"], 0.0);
        let bounds = samples.keys().filter(|name| name.starts_with("takt_blocking_seconds_bucket"));
        assert_eq!(bounds.count(), BUCKETS_US.len() + 1);
    }

    #[test]
    fn buckets_are_cumulative() {
        let mut page = Page::default();
        let mut buckets = Buckets::default();
        (buckets.counts[0], buckets.counts[3], buckets.count) = (2, 5, 9);
        page.histogram("takt_x_seconds", "a", &buckets);
        for line in [
            "takt_x_seconds_bucket{app=\"a\",le=\"0.00001\"} 2",
            "takt_x_seconds_bucket{app=\"a\",le=\"0.00025\"} 7",
            "takt_x_seconds_bucket{app=\"a\",le=\"0.1\"} 7",
            "takt_x_seconds_bucket{app=\"a\",le=\"+Inf\"} 9",
        ] {
            assert!(page.0.lines().any(|found| found == line), "{line}: {}", page.0);
        }
    }
}
