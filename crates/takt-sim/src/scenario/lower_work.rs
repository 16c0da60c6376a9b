//! From what a file says to what the simulator plays: the frames of an app.

use takt_core::{GroupKind, Span};

use super::decimal::{self, Decimal, GROUPS_PER_FRAME_MAX, fixed_point};
use super::diagnostic::Spot;
use super::lower::{Lower, all};
use super::lower_app::seconds;
use super::raw::{RawApp, RawBucket, RawDraw, RawOutliers, RawPhase, RawPrediction};
use super::reader::OneOrRange;
use crate::model::{Bucket, CostDist, Outliers, Part, Phase, Prediction, SHARE_ONE, Work};

/// What an app does in its frames.
impl Lower<'_, '_> {
    pub(super) fn work(&mut self, raw: &RawApp) -> Option<Work> {
        let draws = raw.draws.as_deref().unwrap_or_default();
        let swap_mix = raw.swap_mix.as_deref();
        let swap_spot = raw.swap_us.as_ref().map(|swap| &swap.at);
        let mix_spot = swap_mix.map(|mix| mix.first().map_or(&raw.at, |bucket| &bucket.at));
        let draws_spot = raw.draws.as_deref().map(|draws| draws.first().map_or(&raw.at, |draw| &draw.at));
        let file = raw.recording.as_ref();
        let inline = raw.recording_csv.as_ref();
        let sources =
            [file.map(|text| &text.at), inline.map(|text| &text.at), swap_spot.or(mix_spot).or(draws_spot)];
        if !self.at_most_one(&sources, "recording, recording_csv and draws with swap") {
            return None;
        }
        if let Some(file) = file {
            let groups = self.recordings.file(self.report, file)?;
            return Some(Work::Recorded(groups));
        }
        if let Some(text) = inline {
            let groups = self.recordings.inline(self.report, text)?;
            return Some(Work::Recorded(groups));
        }
        let parts = all(draws.iter().map(|draw| self.part(draw)));
        let swap = self.cost(raw.swap_us.as_ref(), swap_mix, (&raw.at, "swap_us", "swap_mix"));
        let parts = self.bounded(parts?, &raw.at)?;
        Some(Work::Drawn { parts, swap: swap? })
    }

    fn bounded(&mut self, parts: Vec<Part>, at: &Spot) -> Option<Vec<Part>> {
        let groups: i128 = parts.iter().map(|part| i128::from(part.count.1)).sum();
        if groups > GROUPS_PER_FRAME_MAX {
            self.report.table(
                at,
                format_args!("a frame may have {groups} groups"),
                format!("use at most {GROUPS_PER_FRAME_MAX} (GROUPS_PER_FRAME_MAX)"),
            );
            return None;
        }
        Some(parts)
    }

    fn part(&mut self, raw: &RawDraw) -> Option<Part> {
        let cost = self.cost(raw.us.as_ref(), raw.mix.as_deref(), (&raw.at, "us", "mix"));
        let count = match &raw.count {
            Some(OneOrRange { at, lo, hi }) => self.bounds(at, (&lo.0, &hi.0), &decimal::GROUPS),
            None => Some((1, 1)),
        };
        let sync = raw.sync.as_ref().is_some_and(|flag| flag.value);
        Some(Part { count: count?, cost: cost?, kind: if sync { GroupKind::Sync } else { GroupKind::Draw } })
    }

    /// A cost, given as a range or as a mixture.
    fn cost(
        &mut self,
        range: Option<&OneOrRange>,
        mix: Option<&[RawBucket]>,
        (at, range_key, mix_key): (&Spot, &str, &str),
    ) -> Option<CostDist> {
        match (range, mix) {
            (Some(range), None) => {
                let range = self.range_us(range)?;
                let share_ppm = SHARE_ONE;
                Some(CostDist { buckets: vec![Bucket { share_ppm, range }] })
            }
            (None, Some(mix)) => self.mixture(mix, at, mix_key),
            (Some(range), Some(_)) => {
                self.report.value(
                    &range.at,
                    format_args!("{mix_key} is given too"),
                    format!("give {range_key} or {mix_key}, not both"),
                );
                None
            }
            (None, None) => {
                self.report.table(
                    at,
                    format_args!("neither {range_key} nor {mix_key} is given"),
                    format!("add {range_key} = … (GPU time in microseconds)"),
                );
                None
            }
        }
    }

    fn mixture(&mut self, mix: &[RawBucket], at: &Spot, key: &str) -> Option<CostDist> {
        let buckets = all(mix.iter().map(|raw| {
            let share_ppm: Option<u32> = self.number(&raw.share, &decimal::SHARE);
            let range = self.range_us(&raw.us);
            Some(Bucket { share_ppm: share_ppm?, range: range? })
        }))?;
        let sum: u64 = buckets.iter().map(|b| u64::from(b.share_ppm)).sum();
        if sum != u64::from(SHARE_ONE) {
            let at = mix.first().map_or(at, |bucket| &bucket.share.at);
            self.report.address(
                at.span.start,
                format!("{}: the shares of {key} sum to {}", at.path, fixed_point(sum.into(), 6)),
                "make the shares sum to 1",
            );
            return None;
        }
        Some(CostDist { buckets })
    }

    pub(super) fn prediction(&mut self, raw: Option<&RawPrediction>) -> Option<Prediction> {
        let default = Prediction::default();
        let Some(raw) = raw else {
            return Some(default);
        };
        let scale_permille = match &raw.scale {
            Some(scale) if scale.value == Decimal::PlusInfinity => Some(None),
            scale => self.number_or(scale.as_ref(), &decimal::FACTOR, Some(1000)).map(Some),
        };
        let noise = self.number_or(raw.noise.as_ref(), &decimal::NOISE, Some(0));
        let bias = self.number_or(raw.bias_us.as_ref(), &decimal::ERROR_US, Some(0));
        let floor = self.span_or(raw.floor_us.as_ref(), &decimal::SPAN_US, Some(Span::ZERO));
        let outliers = match &raw.outliers {
            Some(outliers) => self.outliers(outliers).map(Some),
            None => Some(None),
        };
        let history = self.history(raw);
        Some(Prediction {
            scale_permille: scale_permille?,
            noise_permille: noise?,
            bias_ns: bias?,
            outliers: outliers?,
            floor: floor?,
            history: history?,
        })
    }

    /// The size of the table; inside, `None` is no table.
    #[expect(clippy::option_option, reason = "outside, None is a complaint made")]
    fn history(&mut self, raw: &RawPrediction) -> Option<Option<u32>> {
        let Some(history) = &raw.history else {
            return Some(None);
        };
        let errors = [
            raw.noise.as_ref().map(|number| &number.at),
            raw.bias_us.as_ref().map(|number| &number.at),
            raw.outliers.as_ref().map(|outliers| &outliers.at),
        ];
        if let Some(at) = errors.into_iter().flatten().next() {
            let problem = "a history makes errors of its own";
            self.report.table(at, problem, "drop history, or noise, bias_us and outliers");
            return None;
        }
        self.number(&history.0, &decimal::RECORDS).map(Some)
    }

    fn outliers(&mut self, raw: &RawOutliers) -> Option<Outliers> {
        let share = self.number(&raw.share, &decimal::SHARE);
        let OneOrRange { at, lo, hi } = &raw.error_us;
        let error = self.bounds(at, (lo, hi), &decimal::ERROR_US);
        Some(Outliers { share_ppm: share?, error_ns: error? })
    }

    pub(super) fn phases(&mut self, raw: &RawApp) -> Option<Vec<Phase>> {
        let lowered = raw.phase.iter().flatten().map(|raw| {
            let phase = self.phase(raw)?;
            Some((phase.from, &raw.from_s.at, (phase, &raw.from_s.at)))
        });
        let lowered = all(lowered)?;
        let phases = self.by_time(lowered)?;
        for pair in phases.windows(2) {
            if let [(first, first_spot), (second, second_spot)] = pair
                && first.until > second.from
            {
                let line = self.report.sources.line(first_spot.span.start);
                self.report.value(
                    second_spot,
                    format_args!("the phase before it ({line}) is not over"),
                    "make the phases of an app follow one another",
                );
            }
        }
        Some(phases.into_iter().map(|(phase, _)| phase).collect())
    }

    fn phase(&mut self, raw: &RawPhase) -> Option<Phase> {
        let from = self.time(&raw.from_s);
        let until = self.time(&raw.until_s);
        let cpu = match &raw.cpu_us {
            Some(cpu) => self.range_us(cpu).map(Some),
            None => Some(None),
        };
        let gpu = self.number_or(raw.gpu_scale.as_ref(), &decimal::FACTOR, Some(1000));
        let groups = self.number_or(raw.groups_scale.as_ref(), &decimal::FACTOR, Some(1000));
        let prediction = match &raw.prediction {
            Some(prediction) => self.prediction(Some(prediction)).map(Some),
            None => Some(None),
        };
        let (from, until) = (from?, until?);
        if until <= from {
            self.report.value(
                &raw.until_s.at,
                "the phase ends before it begins",
                format!("use a time after from_s = {}", seconds(from)),
            );
            return None;
        }
        Some(Phase {
            from,
            until,
            cpu: cpu?,
            gpu_permille: gpu?,
            groups_permille: groups?,
            prediction: prediction?,
        })
    }
}
