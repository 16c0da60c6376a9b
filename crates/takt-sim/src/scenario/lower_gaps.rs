//! From what a file says to what the simulator plays: how apps wait for their own groups within a frame.

use takt_core::service::Gaps;
use takt_core::{AppParams, Span, contract};

use super::decimal::{self, fixed_point};
use super::lower::Lower;
use super::raw::RawApp;

impl Lower<'_, '_> {
    /// The gaps that an app declares.
    pub(super) fn gaps(&mut self, raw: &RawApp) -> Option<Gaps> {
        match (&raw.gaps, &raw.gap_us) {
            (None, None) => Some(Gaps::default()),
            (Some(count), None) => {
                self.report.value(&count.0.at, "how long the gaps last is not known", "add gap_us = …");
                None
            }
            (None, Some(length)) => {
                let problem = "how many gaps a frame has is not known";
                self.report.value(&length.at, problem, "add gaps = …, or drop gap_us");
                None
            }
            (Some(count), Some(length)) => {
                let count = self.number(&count.0, &decimal::GAPS);
                let length = self.span(length, &decimal::SPAN_US);
                Some(Gaps { count: count?, length: length? })
            }
        }
    }

    /// Whether what the app is promised has room for its gaps.
    pub(super) fn fits_gaps(&mut self, raw: &RawApp, params: &AppParams) -> bool {
        let Gaps { count, length } = params.service.gaps;
        let Some(at) = raw.gaps.as_ref().map(|count| &count.0.at).filter(|_| count > 0) else {
            return true;
        };
        if !contract::has_contract(params) {
            let remedy =
                "add etpf_us = … or service.reserve_us = …, which includes the gaps, or drop gaps and gap_us";
            self.report.value(at, "the app is promised nothing that gaps could be part of", remedy);
            return false;
        }
        let (promised, gaps) = (params.framed().etpf, length.times(count.into()));
        if gaps >= promised {
            let shown = |span: Span| fixed_point(span.as_ns().into(), 3);
            self.report.value(
                at,
                format_args!("its gaps take {} us of the {} us per frame", shown(gaps), shown(promised)),
                "add them to etpf_us or service.reserve_us, or lower gaps or gap_us",
            );
            return false;
        }
        true
    }
}
