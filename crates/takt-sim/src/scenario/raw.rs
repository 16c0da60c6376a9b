//! The scenario file, key by key: the one place that says which keys there are.
//!
//! Nothing here judges values; that is the work of `lower`. The comments on the fields are the
//! descriptions in the JSON schema, so they speak to people who write scenarios.

use schemars::JsonSchema;

use super::diagnostic::Spot;
use super::reader::{Flag, Number, OneOrMany, OneOrRange, Read, Reader, Text, Value, Whole, WordOr, section};

section! {
    /// A world for the Takt simulator: displays, a scheduler, a GPU, and the apps that share it.
    struct RawScenario {
        /// Short name: letters, digits, "-" and "_".
        name: Text,
        /// What the scenario shows, for people. Default: empty.
        description: Option<Text>,
        /// How long to simulate, in seconds.
        duration_s: Number,
        /// How much of the beginning not to judge, in seconds. Default: 0.
        warm_up_s: Option<Number>,
        /// Seed of every random choice. Same scenario, same seed: same events. Default: 1.
        seed: Option<Whole>,
        /// The display, or several, of which the first is that of apps that name none. Default: one of
        /// 60 Hz.
        display: Option<OneOrMany<RawDisplay>>,
        /// The scheduler. Default: timeline with the margins of the thesis.
        scheduler: Option<RawScheduler>,
        /// The GPU. Default: no delays and no faults.
        gpu: Option<RawGpu>,
        /// The apps; at least one.
        app: Vec<RawApp>,
        /// Which app has the input focus, and when it moves. Default: none.
        focus: Option<Vec<RawFocus>>,
    }
}

section! {
    /// A display: give its refresh rate or its period.
    struct RawDisplay {
        /// Its name, by which apps choose it: letters, digits, "-" and "_". Needed in [[display]].
        name: Option<Text>,
        /// Refresh rate in Hz, up to 3 decimals. Default: 60.
        refresh_hz: Option<Number>,
        /// Refresh period in microseconds, instead of the rate; apps then use stride.
        period_us: Option<Number>,
        /// How long after a refresh of the first display it refreshes, in microseconds; less than its
        /// period. Default: 0.
        phase_us: Option<Number>,
    }
}

section! {
    /// The scheduler under test.
    struct RawScheduler {
        /// Name of the policy. Default: timeline.
        policy: Option<Text>,
        /// Most command groups dispatched and incomplete at once, 1 to 64. Default: 5.
        mpcg: Option<Whole>,
        /// A group is given up this long after its conservative end, in milliseconds; inf never
        /// gives up. Default: 500.
        completion_timeout_ms: Option<Number>,
        /// Slots for apps. Default: 64, or the number of apps if that is more.
        apps_max: Option<Whole>,
        /// How far to distrust predictions. Default: the margins of the thesis.
        margins: Option<RawMargins>,
        /// Time between two decisions of policies that are driven by ticks, in microseconds
        /// (germ). Default: 1000.
        tick_us: Option<Number>,
        /// How much of the GPU all reserves together may take, 0 to 1 (timegraph). Default: 1.
        admission: Option<Number>,
        /// The reserve of apps without a specification (timegraph). Default: 5000 of 25000 us.
        background: Option<RawBackground>,
        /// Timeslice of apps that name none, in microseconds (runlist). Default: 1000.
        timeslice_us: Option<Number>,
        /// How long apps that reserve nothing may delay a more important one that does, in
        /// microseconds (frame-deadline). Default: as long as no deadline is in danger.
        max_blocking_us: Option<Number>,
        /// Longest group of a protected app, in microseconds: longer ones are not protected, and the
        /// shorter it is, the more apps with different clocks are covered together (timeline).
        /// Default: any length.
        group_max_us: Option<Number>,
        /// Believes estimates as the daemon does: an app with reserved time no more than what is left
        /// of its frame's, and half as much after each half second in which a group is held for its
        /// length. Default: false.
        belief: Option<Flag>,
    }
}

section! {
    /// The reserve that apps share for which nothing is specified.
    struct RawBackground {
        /// GPU time per period, in microseconds. Default: 5000.
        reserve_us: Option<Number>,
        /// Time between two replenishments, in microseconds. Default: 25000.
        period_us: Option<Number>,
        /// When the budget is looked at: "posterior" or "apriori". Default: posterior.
        enforcement: Option<Text>,
    }
}

section! {
    /// How far to distrust a prediction, and how long the path to the GPU takes.
    struct RawMargins {
        /// Added to a prediction before scaling it up, subtracted before scaling it down, in
        /// microseconds. Default: 100.
        fixed_us: Option<Number>,
        /// Conservative factor on predictions. Default: 1.05.
        upper: Option<Number>,
        /// Optimistic factor on predictions. Default: 0.9.
        lower: Option<Number>,
        /// Upper bound on the delay from decision to GPU queue, in microseconds. Default: 150.
        dispatch_upper_us: Option<Number>,
        /// Lower bound on the same delay, in microseconds. Default: 50.
        dispatch_lower_us: Option<Number>,
        /// Upper bound on the delay from the end of a group to the scheduler hearing of it, in
        /// microseconds. Default: 0.
        completion_upper_us: Option<Number>,
        /// Shortest execution time of any group, in microseconds. Default: 30.
        group_min_us: Option<Number>,
    }
}

section! {
    /// The GPU: executes one group at a time.
    struct RawGpu {
        /// What it does with several: "in-order" executes each to its end, "preemptive" gives a
        /// group back if the scheduler asks, "runlist" serves the apps' channels in turn,
        /// "any-order" executes each to its end in the order of arrival.
        /// Default: in-order.
        model: Option<Text>,
        /// Groups its queue holds. Default: 64.
        queue: Option<Whole>,
        /// Cost of loading another app's context, in microseconds. Default: 0.
        switch_us: Option<Number>,
        /// An uninterruptible group that outlasts its timeslice is seen to end in its channel's next
        /// turn (runlist). Default: false.
        late_ends: Option<Flag>,
        /// Interrupts divisible work of apps without a contract (in-order, runlist). Default: no work is
        /// divisible.
        divisible: Option<RawDivisible>,
        /// Delay from a decision to the group being in the queue, in microseconds: a number or
        /// [lo, hi]. Default: 0.
        dispatch_delay_us: Option<OneOrRange>,
        /// Delay from the end of a group to the scheduler hearing of it, in microseconds: a number
        /// or [lo, hi]. Default: 0.
        completion_delay_us: Option<OneOrRange>,
        /// Completions are looked for only at multiples of this time, in microseconds; 0 tells of
        /// each at once. Default: 0.
        completion_poll_us: Option<Number>,
        /// Share of completions that get lost, 0 to 1. Default: 0.
        lost_completion: Option<Number>,
        /// Changes of the clock.
        clock: Option<Vec<RawClock>>,
        /// Times at which the GPU does nothing.
        stall: Option<Vec<RawStall>>,
    }
}

section! {
    /// How the GPU interrupts divisible work. All other work has turns of at least the scheduler's timeslice.
    struct RawDivisible {
        /// Longest turn of such work while other work waits, in microseconds.
        slice_us: Number,
        /// Length of its pieces, each of which is executed to its end, in microseconds; 0 if it is interrupted
        /// anywhere. Default: 0.
        quantum_us: Option<Number>,
    }
}

section! {
    /// The GPU runs at another speed from some time on.
    struct RawClock {
        /// From when, in seconds.
        at_s: Number,
        /// Speed; 1 is nominal.
        speed: Number,
    }
}

section! {
    /// The GPU does nothing for a while.
    struct RawStall {
        /// From when, in seconds.
        at_s: Number,
        /// How long, in milliseconds.
        length_ms: Number,
    }
}

section! {
    /// An app, or `count` equal ones.
    struct RawApp {
        /// Unique name: letters, digits, "-" and "_".
        name: Text,
        /// Number of such apps. With more than one they are called name-1, name-2, … and their
        /// priorities fall by one each. Default: 1.
        count: Option<Whole>,
        /// Importance; the higher number wins. Unique.
        priority: Whole,
        /// Name of the display that it draws for. Default: the first one.
        display: Option<Text>,
        /// Frames per second; must divide the refresh rate of its display. Give this or stride.
        fps: Option<Number>,
        /// Refresh periods per frame. Give this or fps.
        stride: Option<Whole>,
        /// GPU time reserved per frame, in microseconds; 0 reserves nothing. Default: 0.
        etpf_us: Option<Number>,
        /// How often within a frame the app waits for its own groups before it submits more, at most. Default: 0.
        gaps: Option<Whole>,
        /// How long each of these gaps lasts at most, from when the app's last group is known to be over to its
        /// next group, in microseconds.
        gap_us: Option<Number>,
        /// Periods by which to delay the first deadline. Default: 0.
        phase_periods: Option<Whole>,
        /// When the app attaches, in seconds. Default: 0.
        join_s: Option<Number>,
        /// When it submits its last group and detaches, in seconds.
        leave_s: Option<Number>,
        /// When it dies, in seconds.
        crash_s: Option<Number>,
        /// Delay from the crash to the scheduler hearing of it, in milliseconds. Default: 0.
        crash_notice_ms: Option<Number>,
        /// When it stops submitting without ever leaving, in seconds.
        hang_s: Option<Number>,
        /// Delay from its release to its first group, in microseconds: a number or [lo, hi].
        /// Default: 0.
        submit_delay_us: Option<OneOrRange>,
        /// CPU time per frame, spent evenly before its groups, in microseconds: a number or
        /// [lo, hi]. Default: 0.
        cpu_us: Option<OneOrRange>,
        /// Does not wait for its release after a swap. Default: false.
        unpaced: Option<Flag>,
        /// Name of an app: it begins a frame whenever that one submits the first group of one, and that
        /// one ends its frame behind what this one submits at the same instant.
        starts_with: Option<Text>,
        /// Sleeps after each group until it was dispatched, and computes only then: a driver
        /// without a queue. Default: false.
        synchronous: Option<Flag>,
        /// What the scheduler takes to release its frames: "display", "own" for period_us and
        /// deadline_us, or a period and a deadline that are not those by which it really goes.
        /// Default: display.
        clock: Option<WordOr<RawPromise>>,
        /// Its jobs are released by its own clock, this often, in microseconds, whatever the
        /// display does; fps and stride are then optional.
        period_us: Option<Number>,
        /// From the release of a job to when it should be done, in microseconds. Default: the
        /// period.
        deadline_us: Option<Number>,
        /// From joining to the first job, in microseconds. Default: 0.
        offset_us: Option<Number>,
        /// What policies other than frame-deadline promise it. Default: nothing.
        service: Option<RawService>,
        /// The groups of a frame before its swap, in order. Default: none.
        draws: Option<Vec<RawDraw>>,
        /// Cost of the swap in microseconds: a number or [lo, hi].
        swap_us: Option<OneOrRange>,
        /// Cost of the swap as a mixture.
        swap_mix: Option<Vec<RawBucket>>,
        /// A CSV file of recorded groups to replay over and over, instead of draws and swap.
        recording: Option<Text>,
        /// The text of such a recording itself.
        recording_csv: Option<Text>,
        /// How well its groups are predicted. Default: perfectly.
        prediction: Option<RawPrediction>,
        /// Changes of its parameters.
        change: Option<Vec<RawChange>>,
        /// Times at which it behaves differently.
        phase: Option<Vec<RawPhase>>,
    }
}

section! {
    /// Frames by the app's own clock, as the scheduler knows them.
    struct RawPromise {
        /// Shortest time between two frames, in microseconds, 100 to 4000000.
        period_us: Number,
        /// From the release of a frame to its deadline, in microseconds; not above the period.
        /// Default: the period.
        deadline_us: Option<Number>,
    }
}

section! {
    /// What policies other than frame-deadline promise an app; each looks at its own part.
    struct RawService {
        /// The priority is automatic: while it has the focus, it is the most important of all
        /// apps with automatic priority. Default: false.
        follows_focus: Option<Flag>,
        /// Whether it may follow itself on the GPU without asking: "single" or "following"
        /// (timegraph). Default: single.
        turns: Option<Text>,
        /// GPU time set aside for it per period, in microseconds (timegraph, edf-cbs).
        reserve_us: Option<Number>,
        /// Time between two replenishments, in microseconds; with reserve_us.
        period_us: Option<Number>,
        /// From the arrival of work to its deadline, in microseconds (edf-cbs). Default: the
        /// period of the reserve.
        deadline_us: Option<Number>,
        /// When the budget is looked at: "posterior" or "apriori" (timegraph). Default:
        /// posterior.
        enforcement: Option<Text>,
        /// Name of the app whose reserve (timegraph, edf-cbs, timeline) or frames (timeline) it shares,
        /// instead of having its own.
        shared_with: Option<Text>,
        /// It runs on the reserve of apps without a specification (timegraph). Default: false.
        background: Option<Flag>,
        /// Name of the app that consumes what it produces (edf-cbs, timeline).
        feeds: Option<Text>,
        /// How often its channel occurs in the runlist: "low", "medium" or "high" (runlist).
        /// Default: medium.
        level: Option<Text>,
        /// Its timeslice in microseconds (runlist). Default: the scheduler's.
        timeslice_us: Option<Number>,
        /// Its groups cannot be interrupted. Default: false.
        uninterruptible: Option<Flag>,
        /// The GPU interrupts its groups, so that they are divisible work if it has no contract and the GPU
        /// has such work (timeline). Default: false.
        divisible: Option<Flag>,
    }
}

section! {
    /// The focus moves.
    struct RawFocus {
        /// When, in seconds.
        at_s: Number,
        /// Name of the app that has it from then on. Default: none.
        app: Option<Text>,
    }
}

section! {
    /// Groups of a frame that are alike: give us or mix.
    struct RawDraw {
        /// Cost of each in microseconds: a number or [lo, hi].
        us: Option<OneOrRange>,
        /// Cost of each as a mixture.
        mix: Option<Vec<RawBucket>>,
        /// How many: a number or [lo, hi]. Default: 1.
        count: Option<OneOrRange<Whole>>,
        /// They are synchronisation points instead of draws. Default: false.
        sync: Option<Flag>,
    }
}

section! {
    /// One part of a mixture of costs.
    struct RawBucket {
        /// Its share; all shares sum to 1.
        share: Number,
        /// Cost in microseconds: a number or [lo, hi].
        us: OneOrRange,
    }
}

section! {
    /// How estimates come about: scale · (cost · (1 ± noise) + bias), never below the floor.
    struct RawPrediction {
        /// Factor on every estimate; inf predicts infinity. Default: 1.
        scale: Option<Number>,
        /// Largest relative error, 0 to 1. Default: 0.
        noise: Option<Number>,
        /// Constant error in microseconds, may be negative. Default: 0.
        bias_us: Option<Number>,
        /// Smallest estimate in microseconds. Default: 0.
        floor_us: Option<Number>,
        /// Rare large errors. Default: none.
        outliers: Option<RawOutliers>,
        /// Estimates come from a table of that many records, 1 to 4096, instead of the true cost:
        /// the mean of what such groups cost before, and for unknown ones that of the dearest.
        /// Without noise, bias_us and outliers. Default: none.
        history: Option<Whole>,
    }
}

section! {
    /// Rare large errors: scale · (cost + error) instead of the above.
    struct RawOutliers {
        /// Share of groups predicted so badly, 0 to 1.
        share: Number,
        /// Error in microseconds, may be negative: a number or [lo, hi].
        error_us: OneOrRange,
    }
}

section! {
    /// New parameters from some time on; what is left out stays as it is.
    struct RawChange {
        /// From when, in seconds; later than the app's join.
        at_s: Number,
        /// New display, by name.
        display: Option<Text>,
        /// New clock: "display", "own" for the app's period_us and deadline_us, or a period and a
        /// deadline.
        clock: Option<WordOr<RawPromise>>,
        /// New frames per second.
        fps: Option<Number>,
        /// New refresh periods per frame.
        stride: Option<Whole>,
        /// New GPU time reserved per frame, in microseconds.
        etpf_us: Option<Number>,
        /// New priority; the second app of a count gets one less, and so on.
        priority: Option<Whole>,
    }
}

section! {
    /// A time in which an app behaves differently.
    struct RawPhase {
        /// From when, in seconds.
        from_s: Number,
        /// Until when, in seconds.
        until_s: Number,
        /// CPU time per frame, in microseconds: a number or [lo, hi].
        cpu_us: Option<OneOrRange>,
        /// Factor on GPU costs. Default: 1.
        gpu_scale: Option<Number>,
        /// Factor on the number of groups. Default: 1.
        groups_scale: Option<Number>,
        /// How well groups are predicted; what is left out has its default, not the app's value.
        prediction: Option<RawPrediction>,
    }
}
