//! Counters of one app.

use std::collections::VecDeque;

use hdrhistogram::Histogram;
use takt_core::{Span, Time};

use crate::jobs::Jobs;
use crate::summary::PD_FFT_BINS;

/// The counts of one app.
#[derive(Debug)]
pub(crate) struct AppFigures {
    pub(crate) joined: Option<Time>,
    pub(crate) attached: Span,
    pub(crate) frames: u64,
    pub(crate) met: u64,
    pub(crate) missed: u64,
    pub(crate) response: Histogram<u64>,
    /// What frames that have not ended yet have used of the GPU, by number.
    pub(crate) frame_gpu: VecDeque<(u64, Span)>,
    /// Whether all of the first of these is known.
    pub(crate) whole_frames: bool,
    pub(crate) frames_gpu: Histogram<u64>,
    pub(crate) pd_fft: Vec<u64>,
    pub(crate) gpu_time: Span,
    pub(crate) groups: u64,
    pub(crate) under_predicted: u64,
    pub(crate) predicted: Span,
    pub(crate) measured: Span,
    pub(crate) jobs: Option<Jobs>,
}

impl AppFigures {
    pub(crate) fn new(jobs: Option<Jobs>) -> Self {
        let histogram = || Histogram::new(3).unwrap_or_else(|_| unreachable!("3 digits are allowed"));
        Self {
            joined: None,
            attached: Span::ZERO,
            frames: 0,
            met: 0,
            missed: 0,
            response: histogram(),
            frame_gpu: VecDeque::new(),
            whole_frames: false,
            frames_gpu: histogram(),
            pd_fft: vec![0; PD_FFT_BINS],
            gpu_time: Span::ZERO,
            groups: 0,
            under_predicted: 0,
            predicted: Span::ZERO,
            measured: Span::ZERO,
            jobs,
        }
    }

    /// A group of that frame has used the GPU.
    pub(crate) fn spend(&mut self, frame: u64, cost: Span) {
        match self.frame_gpu.iter_mut().find(|(number, _)| *number == frame) {
            Some((_, spent)) => *spent += cost,
            None => self.frame_gpu.push_back((frame, cost)),
        }
    }

    /// So many frames have ended, the last one with that number; from now on all is known if this `counts`.
    pub(crate) fn end_frames(&mut self, last: u64, frames: u32, counts: bool) {
        let spent: Span =
            self.frame_gpu.iter().filter(|(number, _)| *number <= last).map(|(_, spent)| *spent).sum();
        self.frame_gpu.retain(|(number, _)| *number > last);
        // Frames that share a group share its time; the first one may have begun before all this.
        if std::mem::replace(&mut self.whole_frames, counts) {
            let each = spent.as_ns() / u64::from(frames);
            self.frames_gpu.record_n(each, frames.into()).unwrap_or_default();
        }
    }
}
