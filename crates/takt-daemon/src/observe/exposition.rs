//! Counters in the text format of Prometheus ([ADR 0047](../../../../docs/adr/0047-prometheus-text-by-hand.md)).

use std::fmt::Write;

use takt_core::{AppId, Span, Stats};
use takt_trace::totals::{AppTotals, BUCKETS_US, Buckets};

use crate::control::members::{Member, Members};
use crate::control::statement::{Outsiders, Reason};
use crate::observe::audit::AuditCounts;
use crate::observe::counted_as::CountedAs;
use crate::observe::waits::Uncut;
use crate::rt::queues::LoopStats;

/// All counters.
#[derive(Debug)]
pub(crate) struct Counted {
    /// By [what an app is counted as](CountedAs).
    pub(crate) apps: Vec<(String, AppTotals)>,
    /// Records that are missing in these.
    pub(crate) uncounted: u64,
    /// The apps that are scheduled now.
    pub(crate) members: Members,
    /// The core's counters.
    pub(crate) stats: Stats,
    pub(crate) loop_stats: LoopStats,
    /// The longest time for which the control thread did not wait for connections.
    pub(crate) control_stall: Span,
    /// The names and domains of supervised apps that stopped drawing.
    pub(crate) silent: Vec<(String, String)>,
    /// How often ends of an app contradicted those of another one.
    pub(crate) early_ends: u64,
    /// Apps that matter less stand still for one of these.
    pub(crate) degraded: bool,
    /// An invariant of the core broke, and nothing is scheduled.
    pub(crate) broken: bool,
    /// Who uses the GPU without being scheduled.
    pub(crate) outsiders: Outsiders,
    /// Apps with work that cannot be cut and fits nowhere.
    pub(crate) uncut: Vec<(AppId, Uncut)>,
    /// Of the audit.
    pub(crate) audit: AuditCounts,
    /// Domains with a minimum share.
    pub(crate) shares: Vec<ShareCounts>,
}

/// What a domain with a minimum share had.
#[derive(Debug)]
pub(crate) struct ShareCounts {
    pub(crate) domain: String,
    /// Of the GPU's time, in the last whole window.
    pub(crate) had: f64,
    /// What it is to have.
    pub(crate) least: f64,
    /// Windows in which it waited and had less.
    pub(crate) violations: u64,
}

/// A page of metrics.
#[derive(Default)]
struct MetricsPage(String);

impl Counted {
    /// The text of all metrics.
    pub(crate) fn text(&self) -> String {
        let mut page = MetricsPage::default();
        self.daemon(&mut page);
        self.scheduled(&mut page);
        self.apps(&mut page);
        self.audit(&mut page);
        self.shares(&mut page);
        page.0
    }

    fn daemon(&self, page: &mut MetricsPage) {
        let (stats, turns) = (&self.stats, &self.loop_stats);
        for (name, help, value) in [
            ("takt_decisions_total", "Decisions taken.", stats.runs),
            ("takt_granted_total", "Command groups granted.", stats.dispatched),
            ("takt_completed_total", "Command groups whose end was reported.", stats.completed),
            ("takt_lost_total", "Command groups whose end was never reported.", stats.lost),
            ("takt_refused_total", "Requests that were refused.", stats.refused),
            (
                "takt_early_ends_total",
                "Contradictions between ends of groups that apps said.",
                self.early_ends,
            ),
            ("takt_untold_total", "Records dropped because the queue was full.", turns.dropped),
            ("takt_uncounted_total", "Records missing in the counters below.", self.uncounted),
        ] {
            page.head(name, "counter", help);
            page.line(name, &[], &value.to_string());
        }
        page.head("takt_turn_seconds", "summary", "Time of a turn of the scheduling loop.");
        page.line("takt_turn_seconds_sum", &[], &seconds(turns.busy));
        page.line("takt_turn_seconds_count", &[], &turns.turns.to_string());
        page.head("takt_turn_longest_seconds", "gauge", "The longest turn since the start.");
        page.line("takt_turn_longest_seconds", &[], &seconds(turns.longest));
        let help = "The longest time for which the control thread did not look at its connections.";
        page.head("takt_control_stall_seconds_max", "gauge", help);
        page.line("takt_control_stall_seconds_max", &[], &seconds(self.control_stall));
        let help = "Whether apps that matter less stand still until a supervised app draws again.";
        page.head("takt_degraded", "gauge", help);
        page.line("takt_degraded", &[], &u8::from(self.degraded).to_string());
        page.head("takt_app_silent", "gauge", "Supervised apps that stopped drawing.");
        for (app, domain) in &self.silent {
            page.line("takt_app_silent", &[("app", app), ("domain", domain)], "1");
        }
    }

    fn scheduled(&self, page: &mut MetricsPage) {
        let help = "Whether an invariant of the scheduler broke, so that nothing is scheduled any more.";
        page.head("takt_broken", "gauge", help);
        page.line("takt_broken", &[], &u8::from(self.broken).to_string());
        page.head("takt_apps", "gauge", "Apps that are scheduled now.");
        page.line("takt_apps", &[], &self.members.iter().count().to_string());
        page.head("takt_app_protected", "gauge", "Whether the contract of an app is covered.");
        for member in self.members.iter() {
            let (slot, priority) = (member.app.0.to_string(), member.priority().to_string());
            let [app, domain, listed] = of_app(member);
            let labels = [app, ("slot", &slot), ("priority", &priority), domain, listed];
            page.line("takt_app_protected", &labels, &u8::from(member.protected).to_string());
        }
        page.head(
            "takt_app_guaranteed",
            "gauge",
            "Whether the deadlines of an app are guaranteed, or why not.",
        );
        for member in self.members.iter() {
            let slot = member.app.0.to_string();
            let reason = member.statement.reason().map_or("", Reason::name);
            let [app, domain, listed] = of_app(member);
            let labels = [app, ("slot", &slot), ("reason", reason), domain, listed];
            let value = u8::from(member.statement.is_guaranteed()).to_string();
            page.line("takt_app_guaranteed", &labels, &value);
        }
        let help = "Predicted time of work that cannot be cut and has fitted nowhere for two seconds.";
        page.head("takt_uncut_seconds", "gauge", help);
        for (app, Uncut { estimate, command }) in &self.uncut {
            let slot = app.0.to_string();
            let name = self.members.get(*app).map_or("", |member| member.name.as_str());
            let labels = [("app", name), ("slot", &slot), ("command", &command.to_string())];
            page.line("takt_uncut_seconds", &labels, &seconds(estimate.span()));
        }
        page.head("takt_outsider", "gauge", "Processes that have the GPU open outside of Takt.");
        for one in &self.outsiders.found {
            let pid = one.pid.to_string();
            let labels = [("process", one.name.as_str()), ("pid", &pid), ("device", &one.device)];
            page.line("takt_outsider", &labels, "1");
        }
        page.head(
            "takt_outsiders_unseen",
            "gauge",
            "Whether there may be others that the daemon cannot see.",
        );
        page.line("takt_outsiders_unseen", &[], &u8::from(self.outsiders.unseen.is_some()).to_string());
    }

    fn shares(&self, page: &mut MetricsPage) {
        if self.shares.is_empty() {
            return;
        }
        type Value = fn(&ShareCounts) -> String;
        let metrics: [(&str, &str, &str, Value); 3] = [
            ("takt_domain_share_min", "gauge", "Minimum share of a domain.", |share| share.least.to_string()),
            (
                "takt_domain_share",
                "gauge",
                "What its apps without a contract had in the last window.",
                |share| share.had.to_string(),
            ),
            (
                "takt_domain_share_missed_total",
                "counter",
                "Windows in which these waited and had less than the minimum.",
                |share| share.violations.to_string(),
            ),
        ];
        for (name, kind, help, value) in metrics {
            page.head(name, kind, help);
            for share in &self.shares {
                page.line(name, &[("domain", &share.domain)], &value(share));
            }
        }
    }

    fn audit(&self, page: &mut MetricsPage) {
        let AuditCounts { records, lost, dlt_lost, works, alarms } = &self.audit;
        for (name, help, value) in [
            ("takt_audit_records_total", "Records of the audit.", records),
            ("takt_audit_lost_total", "Records of the audit that could not be written.", lost),
            ("takt_audit_dlt_lost_total", "Records that the DLT daemon did not take.", dlt_lost),
        ] {
            page.head(name, "counter", help);
            page.line(name, &[], &value.to_string());
        }
        page.head("takt_audit_works", "gauge", "Whether the audit can be written.");
        page.line("takt_audit_works", &[], &u8::from(*works).to_string());
        page.head("takt_alarms_total", "counter", "Alarms that rules over the audit raised.");
        for (rule, (severity, count)) in alarms {
            let labels = [("rule", rule.as_str()), ("severity", severity.name())];
            page.line("takt_alarms_total", &labels, &count.to_string());
        }
    }

    fn apps(&self, page: &mut MetricsPage) {
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
            for (app, totals) in &self.apps {
                page.line(name, &labels(CountedAs::of(app)), &count(totals));
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
            for (app, totals) in &self.apps {
                page.histogram(name, labels(CountedAs::of(app)), of(totals));
            }
        }
    }
}

impl MetricsPage {
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

    fn histogram(&mut self, name: &str, of: [(&str, &str); 3], buckets: &Buckets) {
        let [app, domain, listed] = of;
        let bucket = format!("{name}_bucket");
        let mut below = 0;
        for (us, count) in BUCKETS_US.iter().zip(buckets.counts) {
            below += count;
            let bound = seconds(Span::from_us(*us));
            self.line(&bucket, &[app, domain, listed, ("le", &bound)], &below.to_string());
        }
        self.line(&bucket, &[app, domain, listed, ("le", "+Inf")], &buckets.count.to_string());
        self.line(&format!("{name}_sum"), &of, &seconds(buckets.sum));
        self.line(&format!("{name}_count"), &of, &buckets.count.to_string());
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        // Formatting into a string cannot fail.
        self.0.write_fmt(text).unwrap_or_default();
    }
}

/// The labels of an app.
fn labels(app: CountedAs<'_>) -> [(&'static str, &str); 3] {
    [("app", app.name), ("domain", app.domain), ("listed", if app.listed { "true" } else { "false" })]
}

fn of_app(member: &Member) -> [(&'static str, &str); 3] {
    labels(CountedAs { name: &member.name, domain: &member.domain.name, listed: member.listed })
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

    use takt_core::Estimate;
    use takt_ipc::Command;

    use crate::control::statement::Outsider;

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
        let name = "a \"b\"\\\n@ivi!".to_owned();
        let loop_stats =
            LoopStats { turns: 4, busy: Span::from_us(6), longest: Span::from_us(3), dropped: 1 };
        let one = Outsider { pid: 7, uid: 1, name: "x".to_owned(), device: "/dev/y".to_owned() };
        let command = Command::new("glBlitFramebuffer");
        let blit = Uncut { estimate: Estimate::new(Span::from_ms(96)), command };
        let counted = Counted {
            apps: vec![(name, AppTotals::default())],
            uncounted: 0,
            members: Members::new(4),
            stats: Stats::default(),
            loop_stats,
            control_stall: Span::from_ms(2),
            silent: vec![("dial".to_owned(), "cluster".to_owned())],
            early_ends: 3,
            degraded: true,
            broken: true,
            outsiders: Outsiders { found: vec![one], unseen: None },
            uncut: vec![(AppId(2), blit)],
            audit: AuditCounts {
                records: 7,
                alarms: [("churn".to_owned(), (takt_audit::rules::Severity::Warning, 2))].into(),
                ..AuditCounts::default()
            },
            shares: vec![ShareCounts { domain: "ivi".to_owned(), had: 0.2, least: 0.3, violations: 5 }],
        };
        let text = counted.text();
        let samples = parse(&text);
        assert_eq!(samples["takt_turn_seconds_sum"], 6e-6);
        assert_eq!(samples["takt_turn_seconds_count"], 4.0);
        assert_eq!([samples["takt_untold_total"], samples["takt_early_ends_total"]], [1.0, 3.0]);
        assert_eq!([samples["takt_broken"], samples["takt_degraded"]], [1.0, 1.0]);
        assert_eq!(samples["takt_audit_records_total"], 7.0);
        assert_eq!(samples["takt_alarms_total{rule=\"churn\",severity=\"warning\"}"], 2.0);
        assert_eq!(samples["takt_control_stall_seconds_max"], 0.002);
        assert_eq!(samples["takt_uncut_seconds{app=\"\",slot=\"2\",command=\"glBlitFramebuffer\"}"], 0.096);
        assert_eq!(samples["takt_app_silent{app=\"dial\",domain=\"cluster\"}"], 1.0);
        assert_eq!(samples["takt_domain_share{domain=\"ivi\"}"], 0.2);
        assert_eq!(samples["takt_domain_share_missed_total{domain=\"ivi\"}"], 5.0);
        assert_eq!(samples["takt_outsider{process=\"x\",pid=\"7\",device=\"/dev/y\"}"], 1.0);
        assert_eq!(
            samples["takt_frames_total{app=\"a \\\"b\\\"\\\\\\n\",domain=\"ivi\",listed=\"true\"}"],
            0.0
        );
        let bounds = samples.keys().filter(|name| name.starts_with("takt_blocking_seconds_bucket"));
        assert_eq!(bounds.count(), BUCKETS_US.len() + 1);
    }

    #[test]
    fn buckets_are_cumulative() {
        let mut page = MetricsPage::default();
        let mut buckets = Buckets::default();
        (buckets.counts[0], buckets.counts[3], buckets.count) = (2, 5, 9);
        let a = CountedAs { name: "a", domain: "b", listed: true };
        page.histogram("takt_x_seconds", labels(a), &buckets);
        for line in [
            "takt_x_seconds_bucket{app=\"a\",domain=\"b\",listed=\"true\",le=\"0.00001\"} 2",
            "takt_x_seconds_bucket{app=\"a\",domain=\"b\",listed=\"true\",le=\"0.00025\"} 7",
            "takt_x_seconds_bucket{app=\"a\",domain=\"b\",listed=\"true\",le=\"0.1\"} 7",
            "takt_x_seconds_bucket{app=\"a\",domain=\"b\",listed=\"true\",le=\"+Inf\"} 9",
        ] {
            assert!(page.0.lines().any(|found| found == line), "{line}: {}", page.0);
        }
    }
}
