//! The drive that the instruments show: a minute of town, country road and motorway, for ever.

/// Seconds of a round, and speeds in km/h.
const SPEEDS: &[(f64, f64)] = &[
    (0.0, 0.0),
    (1.0, 0.0),
    (8.0, 52.0),
    (13.0, 49.0),
    (19.0, 98.0),
    (25.0, 103.0),
    (33.0, 182.0),
    (37.0, 176.0),
    (43.0, 118.0),
    (49.0, 62.0),
    (54.0, 31.0),
    (58.0, 0.0),
    (60.0, 0.0),
];

/// Speed in km/h at a time in seconds.
pub(crate) fn speed(time: f64) -> f64 {
    let at = time.rem_euclid(SPEEDS[SPEEDS.len() - 1].0);
    let step = SPEEDS.windows(2).find(|step| at < step[1].0);
    let Some([(start, from), (end, to)]) = step.map(|step| [step[0], step[1]]) else { return 0.0 };
    let share = (at - start) / (end - start);
    from + (to - from) * smooth(share)
}

/// The highest speed in each gear, and revolutions per minute for each km/h in it.
const GEARS: &[(f64, f64)] =
    &[(26.0, 150.0), (52.0, 82.0), (84.0, 54.0), (118.0, 41.0), (f64::INFINITY, 32.0)];
/// Idling.
const IDLE_RPM: f64 = 850.0;
/// A change of gear takes as long as this much speed.
const SHIFT_KMH: f64 = 3.0;

/// Revolutions per minute at a time in seconds.
pub(crate) fn revolutions(time: f64) -> f64 {
    let speed = speed(time);
    let mut rpm = speed * GEARS[0].1;
    for gears in GEARS.windows(2) {
        let higher = smooth(((speed - gears[0].0) / SHIFT_KMH).clamp(0.0, 1.0));
        rpm += (speed * gears[1].1 - rpm) * higher;
    }
    rpm.max(IDLE_RPM)
}

/// From 0 to 1 without a jump in speed.
pub(crate) fn smooth(share: f64) -> f64 {
    share * share * (3.0 - 2.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_needles_never_jump() {
        for frame in 0..60 * 60 {
            let (now, next) = (f64::from(frame) / 60.0, f64::from(frame + 1) / 60.0);
            assert!((speed(now) - speed(next)).abs() < 0.5, "speed at {now}");
            assert!((revolutions(now) - revolutions(next)).abs() < 400.0, "revolutions at {now}");
            assert!((0.0..=240.0).contains(&speed(now)) && (850.0..=8000.0).contains(&revolutions(now)));
        }
        assert_eq!(speed(31.0), speed(91.0));
    }
}
