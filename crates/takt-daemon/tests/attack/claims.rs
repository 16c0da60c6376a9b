//! Claims that make sense to the kernel, the socket and the ring, and are lies or as large as numbers get.

use std::time::Duration;

use takt_core::{Estimate, GroupId, GroupKind, Span};
use takt_ipc::client::{Joined, NotScheduled, join, renew};
use takt_ipc::message::{Hello, Pacing, TimeSlices};
use takt_ipc::{Reply, Request};
use takt_rng::Rng;

use crate::arena::{Arena, as_user, is_root, say, withstand, withstand_with};
use crate::setting::Setting;
use crate::support::{PATIENCE, ask, hello};

const MALLORY: u32 = 41_000;
/// Where an app whose contract does not fit is refused.
const REFUSES: Setting = Setting { more: "admission = 'refuse'\n", audit: "", prepare: None };

/// A slot, unless there is none for now or what it asks for makes no sense.
fn try_join(arena: &Arena, hello: &Hello) -> Option<Joined> {
    match join(arena.path(), hello, PATIENCE) {
        Ok(joined) => Some(joined),
        Err(NotScheduled::NotNow { .. }) => {
            std::thread::sleep(Duration::from_millis(20));
            None
        }
        Err(_) => None,
    }
}

fn submit(app: &mut Joined, group: u64, kind: GroupKind, estimate: Span) -> bool {
    let estimate = Estimate::new(estimate);
    app.sender.send(&Request::Submit { group: GroupId(group), kind, estimate }).is_ok()
}

/// Ends every group that was granted by now, at once; says how many.
fn end_granted(app: &mut Joined) -> u64 {
    let mut ended = 0;
    while let Ok(Some(reply)) = app.receiver.next_reply() {
        if let Reply::Grant { group, .. } = reply {
            let (finished, cost) = (takt_os::clock::now(), Span::from_us(1));
            ended +=
                u64::from(app.sender.send(&Request::Complete { group, finished, cost, frames: 0 }).is_ok());
        }
    }
    ended
}

/// Slices as no driver gives them.
const SLICES: [(u32, u32); 5] = [(0, u32::MAX), (u32::MAX, u32::MAX), (1, 1), (0, 0), (1, u32::MAX)];

/// Says again and again which slices its contexts have, and always has work.
pub(crate) fn claim_slices(arena: &Arena, user: u32, divisible: bool, claims: &[(u32, u32)]) {
    let claim = |said: usize| {
        let (shortest_us, longest_us) = claims[said % claims.len()];
        Some(TimeSlices { shortest_us, longest_us })
    };
    as_user(user, || {
        let mut said = 0;
        while arena.goes_on() {
            let first = Hello { divisible, slices: claim(said), ..hello("slices", 95) };
            let Some(mut app) = try_join(arena, &first) else { continue };
            let (mut group, mut ended) = (0, 0);
            while arena.goes_on() && !app.connection.is_hung_up() {
                said += 1;
                let again = Hello { name: "slices".to_owned(), slices: claim(said), ..Hello::default() };
                // It comes too soon at times.
                let _refused = renew(&app.connection, &again, PATIENCE);
                while group < ended + 2 && submit(&mut app, group, GroupKind::Draw, Span::from_us(300)) {
                    group += 1;
                }
                ended += end_granted(&mut app);
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    });
}

#[test]
fn claims_about_time_slices() {
    withstand_with("slices", REFUSES, |arena| {
        std::thread::scope(|scope| {
            scope.spawn(|| claim_slices(arena, MALLORY, true, &SLICES));
            scope.spawn(|| claim_slices(arena, MALLORY + 1, false, &SLICES));
            while arena.goes_on() {
                let apps = arena.daemon.ask(r#"{"ask": "apps"}"#);
                let apps = apps["is"].as_array().expect("a list");
                let victim = apps.iter().find(|app| app["name"] == "victim").expect("it is there");
                assert!(victim["protected"] == true || !is_root(), "{victim}");
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    });
}

/// Work that the GPU interrupts, with the slices that drivers give.
#[test]
fn interrupted_work_of_others() {
    withstand("interrupted", |arena| claim_slices(arena, MALLORY, true, &[(0, 0)]));
}

/// Groups that end at once, as many as there can be, and swaps that show nothing: each is correct.
pub(crate) fn hurry(arena: &Arena, user: u32, kind: GroupKind, estimate: Span) {
    as_user(user, || {
        while arena.goes_on() {
            let Some(mut app) = try_join(arena, &hello("hurry", 95)) else { continue };
            let (mut group, mut ended) = (0, 0);
            while arena.goes_on() && !app.connection.is_hung_up() {
                while group < ended + 2 && submit(&mut app, group, kind, estimate) {
                    group += 1;
                }
                ended += end_granted(&mut app);
            }
        }
    });
}

#[test]
fn correct_groups_without_end() {
    withstand("hurry", |arena| {
        std::thread::scope(|scope| {
            scope.spawn(|| hurry(arena, MALLORY, GroupKind::Draw, Span::from_ns(1)));
            scope.spawn(|| hurry(arena, MALLORY + 1, GroupKind::Swap, Span::ZERO));
            scope.spawn(|| hurry(arena, MALLORY + 2, GroupKind::Sync, Span::from_ns(1)));
        });
    });
}

/// A greeting with some fields as small or as large as they get.
fn extreme(rng: &mut Rng) -> Hello {
    let word = |rng: &mut Rng| {
        let numbers = [0, 1, 2, 999, 1_000_000, u32::MAX / 2, u32::MAX - 1, u32::MAX];
        (rng.below(3) == 0).then(|| numbers[rng.index(numbers.len())])
    };
    let long = |rng: &mut Rng| {
        let hour = 3_600_000_000_000;
        let numbers = [0, 1, 999_999, 1_000_000, 16_666_667, hour, u64::MAX / 2, u64::MAX - 1, u64::MAX];
        (rng.below(3) == 0).then(|| numbers[rng.index(numbers.len())])
    };
    let name = |rng: &mut Rng| {
        let names = ["victim", "listed", "extreme", "0", "no-such-app"];
        (rng.below(4) == 0).then(|| names[rng.index(names.len())].to_owned())
    };
    let pacing = |rng: &mut Rng| {
        let period = Span::from_ns(long(rng).unwrap_or(1));
        [Pacing::Unknown, Pacing::Display, Pacing::Free, Pacing::Own { period, steady: true }][rng.index(4)]
    };
    Hello {
        name: "extreme".to_owned(),
        priority: word(rng),
        fps_mhz: word(rng),
        etpf_ns: long(rng),
        max_slice_ns: long(rng),
        display: name(rng),
        period_ns: long(rng),
        deadline_ns: long(rng),
        runtime_ns: long(rng),
        hard: rng.below(4) == 0,
        gaps: word(rng),
        gap_ns: long(rng),
        gpu: name(rng),
        on_cpu: rng.below(2) == 0,
        divisible: rng.below(4) == 0,
        feeds: name(rng),
        shares: name(rng),
        by_display: rng.below(4) == 0,
        pacing: (rng.below(2) == 0).then(|| pacing(rng)),
        slices: word(rng).map(|longest_us| TimeSlices { shortest_us: word(rng).unwrap_or(0), longest_us }),
        family: (rng.below(2) == 0).then(|| rng.below(3)),
    }
}

/// Joins with such claims, changes to others, and has work of such lengths.
pub(crate) fn exaggerate(arena: &Arena, user: u32, seed: u64) {
    let kinds = [GroupKind::Draw, GroupKind::Swap, GroupKind::Sync, GroupKind::Exit];
    as_user(user, || {
        let mut rng = Rng::new(26, seed);
        while arena.goes_on() {
            let Some(mut app) = try_join(arena, &extreme(&mut rng)) else { continue };
            let own = app.welcome.standing;
            assert!(!own.protected && !own.guaranteed || !is_root(), "{:?}", app.welcome);
            for group in 0..rng.between(1, 8) {
                let estimate = *rng.pick(&[0, 1, 1_000_000, 3_600_000_000_000]).expect("there are some");
                let kind = kinds[rng.index(kinds.len())];
                submit(&mut app, group, kind, Span::from_ns(estimate));
                // Most make no sense.
                let _refused = renew(&app.connection, &extreme(&mut rng), PATIENCE);
                end_granted(&mut app);
            }
            // Groups that it leaves behind hold the GPU until the next one comes.
            app.receiver.sleep(Duration::from_millis(1));
            end_granted(&mut app);
        }
    });
}

#[test]
fn fields_at_their_extremes() {
    withstand_with("extremes", REFUSES, |arena| {
        std::thread::scope(|scope| {
            for seed in 0..2 {
                scope.spawn(move || exaggerate(arena, MALLORY + seed, u64::from(seed)));
            }
        });
    });
}

/// Orders about an own app, with numbers and names as odd as JSON allows.
#[test]
fn orders_with_odd_terms() {
    if !is_root() {
        say("odd terms: SKIPPED, only root can be several users");
        return;
    }
    let numbers = ["0", "-0.0", "-1", "1e-308", "1e308", "4294967296", "18446744073709551616", "1e9"];
    let names = ["\\u001b[2J", "\\u202e", "a b", "victim", "", "\\n", "@"];
    withstand("odd-terms", |arena| {
        as_user(MALLORY, || {
            let app = join(arena.path(), &hello("mine", 1), PATIENCE).expect("a slot");
            let mut rng = Rng::new(26, 3);
            let keys =
                ["priority", "fps", "etpf_ms", "max_slice_ms", "period_ms", "deadline_ms", "runtime_ms"];
            while arena.goes_on() {
                let number = numbers[rng.index(numbers.len())];
                let key = keys[rng.index(keys.len())];
                let by_number = format!(r#"{{"ask": "set", "app": "mine", "{key}": {number}}}"#);
                let name = names[rng.index(names.len())];
                let key = ["display", "feeds", "shares"][rng.index(3)];
                let by_name = format!(r#"{{"ask": "set", "app": "mine", "{key}": "{name}"}}"#);
                for order in [by_number, by_name] {
                    ask(arena.path(), &order);
                    let preview = format!(r#"{{"ask": "preview", "order": {order}}}"#);
                    ask(arena.path(), &preview);
                }
                let apps = arena.daemon.ask(r#"{"ask": "apps"}"#);
                let mine = apps["is"].as_array().expect("a list").iter().find(|app| app["name"] == "mine");
                let terms = &mine.expect("it is there")["terms"];
                for key in ["display", "feeds", "shares"] {
                    let name = terms[key].as_str().unwrap_or_default();
                    assert!(name.is_empty() || takt_ipc::name::is_name(name), "{key} of {terms}");
                }
            }
            drop(app);
        });
    });
}
