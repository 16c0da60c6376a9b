//! Clients, honest and not, against one turn of the loop after the other, in made-up time.

use std::os::fd::AsFd;

use takt_core::policy::{Context, Policy};
use takt_core::{Action, AppId, AppParams, Event, GroupKind, Lane, Priority, Service, Span, Stride, Time};
use takt_daemon::rt::endpoint::{Endpoint, Fault};
use takt_daemon::rt::queues::{Note, Order};
use takt_ipc::ring::CAPACITY;
use takt_ipc::{Malformed, Reply};
use takt_trace::Record;

use crate::rig::{App, Rig};

/// Chooses the most important app, whether it has anything to do or not.
#[derive(Debug)]
struct Blind;

impl Policy for Blind {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn choose(&mut self, _context: &Context, _lanes: &mut [Lane]) -> Option<usize> {
        Some(0)
    }
}

#[test]
fn a_broken_core_removes_every_client() {
    let mut rig = Rig::under(Box::new(Blind), 2, 4);
    let (mut first, mut second) = (rig.join(0, 1), rig.join(1, 2));
    second.submit(0, 100, GroupKind::Draw);
    rig.turn();
    assert_eq!(second.granted(), [0]);
    rig.notes();
    first.submit(0, 100, GroupKind::Draw);
    rig.turn_unchecked();
    for app in [&mut first, &mut second] {
        assert_eq!(app.replies().last(), Some(&Reply::Farewell));
    }
    let (mut told, mut gone) = (0, 0);
    for note in rig.notes() {
        match note {
            Note::Record(_, Record::Out(Action::Broken(_))) => told += 1,
            Note::Gone { fault, .. } => {
                assert_eq!((told, fault), (1, None), "no client is at fault");
                gone += 1;
            }
            _ => {}
        }
    }
    assert_eq!((told, gone), (1, 2));
    // A client that joins now is removed again, and the loop goes on turning.
    let (endpoint, _ends) = Endpoint::new(AppId(2)).expect("shared memory");
    let params = AppParams {
        priority: Priority(3),
        stride: Stride::ONE,
        etpf: Span::ZERO,
        clock: takt_core::Clock::default(),
        service: Service::default(),
    };
    let order = Order::Join { endpoint: Box::new(endpoint), params, max_slice: Span::from_ms(1) };
    rig.queues.orders.push(order).expect("room");
    rig.turn_unchecked();
    assert!(
        rig.notes()
            .iter()
            .any(|note| matches!(note, Note::Gone { endpoint, .. } if endpoint.app == AppId(2)))
    );
    assert!(rig.engine.endpoint(AppId(2)).is_none());
}

#[test]
fn clients_see_whether_others_are_there() {
    let mut rig = Rig::new(2);
    let alone = |app: &App| app.receiver.region().solitude().is_alone();
    let first = rig.join(0, 1);
    assert!(alone(&first));
    let mut second = rig.join(1, 2);
    assert!(!alone(&first) && !alone(&second));
    second.complete(7, rig.now);
    rig.turn();
    assert!(rig.fault().is_some(), "a group that was never granted");
    assert!(alone(&first) && !alone(&second));
    rig.queues.orders.push(Order::Leave { app: first.id }).expect("room");
    let third = rig.join(2, 3);
    assert!(alone(&third));
}

#[test]
fn groups_are_granted_by_priority_and_completions_let_others_in() {
    let mut rig = Rig::new(1);
    let mut low = rig.join(0, 1);
    let mut high = rig.join(1, 9);
    assert!(matches!(low.replies()[..], [Reply::Limit { .. }, Reply::Release { .. }]));
    low.submit(0, 100, GroupKind::Draw);
    low.submit(1, 100, GroupKind::Draw);
    rig.turn();
    assert_eq!(low.granted(), [0]);
    high.submit(0, 100, GroupKind::Swap);
    rig.turn();
    assert_eq!((low.granted(), high.granted()), (vec![], vec![]), "the GPU is taken");
    low.complete(0, rig.now);
    rig.turn();
    assert_eq!((low.granted(), high.granted()), (vec![], vec![0]));
    high.complete(0, rig.now);
    rig.turn();
    assert_eq!(low.granted(), [1]);
}

#[test]
fn a_wild_estimate_does_not_starve_an_app_with_reserved_time() {
    let mut rig = Rig::new(1);
    let mut flood = rig.join(0, 1);
    let mut dial = rig.join_reserving(1, 9, Span::from_ms(5));
    dial.submit(0, 100_000, GroupKind::Draw);
    flood.submit(0, 100, GroupKind::Draw);
    rig.turn();
    assert_eq!((dial.granted(), flood.granted()), (vec![0], vec![]), "it would end six periods later");
    // What it reserves is what counts, also once that changes.
    dial.complete(0, rig.now);
    let params = AppParams {
        priority: Priority(9),
        stride: Stride::ONE,
        etpf: Span::ZERO,
        clock: takt_core::Clock::default(),
        service: Service::default(),
    };
    rig.queues.orders.push(Order::Change { app: dial.id, params }).expect("room");
    dial.submit(1, 100_000, GroupKind::Draw);
    rig.turn();
    assert_eq!((dial.granted(), flood.granted()), (vec![], vec![0]));
}

#[test]
fn a_client_that_dies_leaves_nothing_behind() {
    let mut rig = Rig::new(1);
    let mut dying = rig.join(0, 9);
    let mut other = rig.join(1, 1);
    dying.submit(0, 100, GroupKind::Draw);
    dying.submit(1, 100, GroupKind::Draw);
    rig.turn();
    other.submit(0, 100, GroupKind::Draw);
    rig.turn();
    assert!(other.granted().is_empty(), "the GPU is taken");
    rig.queues.orders.push(Order::Leave { app: dying.id }).expect("room");
    rig.turn();
    assert_eq!(other.granted(), [0]);
    assert_eq!(rig.engine.scheduler().lanes().len(), 1);
    assert_eq!(dying.replies().last(), Some(&Reply::Farewell));
    let again = rig.join(0, 5);
    assert_eq!(again.id, dying.id, "the slot is empty");
}

#[test]
fn every_lie_costs_the_liar_alone() {
    type Lie = (&'static str, fn(&mut App, Time), Fault);
    let lies: [Lie; 5] = [
        ("no record", |app, _| app.submit(1 << 50, 1, GroupKind::Draw), Fault::Order(1 << 50)),
        ("never granted", |app, now| app.complete(77, now), Fault::NotGranted(77)),
        (
            "backwards",
            |app, _| {
                app.submit(5, 1, GroupKind::Draw);
                app.submit(5, 1, GroupKind::Draw);
            },
            Fault::Order(5),
        ),
        (
            "too many",
            |app, _| (0..100).for_each(|group| app.submit(group, 1_000_000, GroupKind::Draw)),
            Fault::TooMany,
        ),
        (
            "finished twice",
            |app, now| {
                app.submit(0, 1, GroupKind::Draw);
                app.complete(0, now);
            },
            Fault::NotGranted(0),
        ),
    ];
    for (name, lie, expected) in lies {
        let mut rig = Rig::new(2);
        let mut honest = rig.join(0, 1);
        let mut liar = rig.join(1, 9);
        lie(&mut liar, rig.now);
        honest.submit(0, 100, GroupKind::Swap);
        for _ in 0..3 {
            rig.turn();
        }
        assert_eq!(rig.fault(), Some((liar.id, expected)), "{name}");
        assert_eq!(honest.granted(), [0], "{name}");
        assert!(rig.engine.endpoint(liar.id).is_none(), "{name}");
    }
}

/// A client that completes the group of another, or one that was not granted, is evicted and gains
/// nothing; the other keeps its grant, and the clients that wait for it wait on.
#[test]
fn grants_cannot_be_stolen() {
    type Theft = (&'static str, fn(&mut App, Time), u64);
    let thefts: [Theft; 4] = [
        ("another's group", |thief, now| thief.complete(7, now), 7),
        (
            "another's group under its number",
            |thief, now| {
                thief.submit(7, 100, GroupKind::Draw);
                thief.complete(7, now);
            },
            7,
        ),
        (
            "a group that waits",
            |thief, now| {
                thief.submit(0, 100, GroupKind::Draw);
                thief.complete(0, now);
            },
            0,
        ),
        (
            "with a swap in front",
            |thief, now| {
                thief.submit(0, 0, GroupKind::Swap);
                thief.submit(1, 0, GroupKind::Draw);
                thief.complete(1, now);
            },
            1,
        ),
    ];
    for (name, theft, group) in thefts {
        let mut rig = Rig::new(1);
        let (mut owner, mut next, mut thief) = (rig.join(0, 1), rig.join(1, 5), rig.join(2, 9));
        owner.submit(7, 1_000_000, GroupKind::Draw);
        rig.turn();
        assert_eq!(owner.granted(), [7]);
        next.submit(0, 100, GroupKind::Draw);
        theft(&mut thief, rig.now);
        (0..3).for_each(|_| rig.turn());
        assert_eq!(rig.fault(), Some((thief.id, Fault::NotGranted(group))), "{name}");
        let stolen = thief.granted().contains(&group);
        assert!(!stolen && next.granted().is_empty(), "{name}: the GPU is taken");
        // The daemon does not read its ring any more, whichever client has its slot.
        let heir = rig.join(2, 9);
        thief.complete(0, rig.now);
        rig.turn();
        assert!(rig.engine.endpoint(heir.id).is_some() && next.granted().is_empty(), "{name}");
        owner.complete(7, rig.now);
        rig.turn();
        assert_eq!(next.granted(), [0], "{name}: its turn has come");
        assert_eq!(rig.fault(), None, "{name}");
    }
}

/// A group that ends twice would release a slot that another group has by then.
#[test]
fn grants_are_used_once() {
    let mut rig = Rig::new(1);
    let (mut thief, mut other, mut next) = (rig.join(0, 9), rig.join(1, 5), rig.join(2, 1));
    thief.submit(0, 100, GroupKind::Draw);
    rig.turn();
    assert_eq!(thief.granted(), [0]);
    other.submit(0, 1_000_000, GroupKind::Draw);
    thief.complete(0, rig.now);
    rig.turn();
    assert_eq!(other.granted(), [0]);
    next.submit(0, 100, GroupKind::Draw);
    thief.complete(0, rig.now);
    (0..3).for_each(|_| rig.turn());
    assert_eq!(rig.fault(), Some((thief.id, Fault::NotGranted(0))));
    assert!(next.granted().is_empty(), "the other still has the GPU");
    other.complete(0, rig.now);
    rig.turn();
    assert_eq!(next.granted(), [0]);
}

#[test]
fn rubbish_in_the_ring_is_named() {
    let mut rig = Rig::new(1);
    let id = AppId(0);
    let (endpoint, ends) = Endpoint::new(id).expect("shared memory");
    let region = takt_ipc::region::Region::open(ends.region.as_fd()).expect("mapped");
    let params = AppParams {
        priority: Priority(1),
        stride: Stride::ONE,
        etpf: Span::ZERO,
        clock: takt_core::Clock::default(),
        service: Service::default(),
    };
    let order = Order::Join { endpoint: Box::new(endpoint), params, max_slice: Span::FOREVER };
    rig.queues.orders.push(order).expect("room");
    region.client_ends().0.push(&[42; 8]).expect("room");
    rig.turn();
    assert_eq!(rig.fault(), Some((id, Fault::Malformed(Malformed::Kind(42)))));
}

#[test]
fn one_that_never_listens_is_evicted() {
    let mut rig = Rig::new(1);
    let mut deaf = rig.join(0, 1);
    for group in 0..u64::from(CAPACITY) {
        deaf.submit(group, 1, GroupKind::Draw);
        rig.turn();
        deaf.complete(group, rig.now);
        rig.turn();
        if rig.engine.endpoint(deaf.id).is_none() {
            break;
        }
    }
    assert_eq!(rig.fault(), Some((deaf.id, Fault::Deaf)));
}

#[test]
fn a_missing_completion_names_its_owner() {
    let mut rig = Rig::new(1);
    let mut stuck = rig.join(0, 9);
    let mut other = rig.join(1, 1);
    stuck.submit(0, 100, GroupKind::Draw);
    rig.turn();
    other.submit(0, 100, GroupKind::Draw);
    rig.now += Span::from_ms(600);
    rig.turn();
    assert_eq!(rig.fault(), Some((stuck.id, Fault::Stuck(0))));
    rig.turn();
    assert_eq!(other.granted(), [0], "the others go on");
}

#[test]
fn the_policy_can_be_replaced_under_load() {
    let mut rig = Rig::new(1);
    let mut app = rig.join(0, 1);
    app.submit(0, 100, GroupKind::Draw);
    let fifo = takt_policies::by_name("fifo").expect("it exists");
    rig.queues.orders.push(Order::Policy(fifo)).expect("room");
    rig.turn();
    assert_eq!(app.granted(), [0]);
    assert_eq!(rig.engine.scheduler().policy_name(), "fifo");
    assert!(rig.notes().iter().any(|note| matches!(note, Note::Replaced(_))));
}

#[test]
fn all_that_happens_is_told() {
    let mut rig = Rig::new(1);
    let mut app = rig.join(0, 1);
    app.submit(0, 100, GroupKind::Swap);
    rig.turn();
    app.complete(0, rig.now);
    rig.turn();
    let notes = rig.notes();
    let told = |wanted: fn(&Record) -> bool| {
        notes.iter().any(|note| matches!(note, Note::Record(_, record) if wanted(record)))
    };
    assert!(told(|record| matches!(record, Record::In(Event::Join { .. }))));
    assert!(told(|record| matches!(record, Record::In(Event::Submit { .. }))));
    assert!(told(|record| matches!(record, Record::Out(Action::Dispatch { .. }))));
    assert!(told(|record| matches!(record, Record::Out(Action::FrameDone(_)))));
    assert_eq!(rig.engine.dropped(), 0);
}

/// A frame that goes on after its deadline is to be judged at once: that is no sign that the loop stood still.
#[test]
fn records_never_go_back_in_time() {
    let mut rig = Rig::new(2);
    let (period, deadline) = (Span::from_ms(33), Span::from_ms(20));
    let mut late = rig.join_by(0, 2, Span::from_ms(4), takt_core::Clock::Own { period, deadline });
    let mut other = rig.join(1, 1);
    late.submit(0, 100, GroupKind::Draw);
    rig.turn();
    late.complete(0, rig.now);
    // The loop turns as the core wants it, so it never stands still.
    for _ in 0..400 {
        rig.now += Span::from_ms(1);
        rig.turn();
    }
    late.submit(1, 100, GroupKind::Draw);
    rig.turn();
    other.submit(0, 100, GroupKind::Draw);
    rig.turn();
    let at = |note: &Note| match note {
        Note::Record(at, _) => Some(*at),
        _ => None,
    };
    let times: Vec<Time> = rig.notes().iter().filter_map(at).collect();
    assert!(times.is_sorted(), "{times:?}");
}

/// The loop allocates nothing, whatever clients send and whether or not its notes are read.
#[test]
fn turns_take_no_memory() {
    let mut rig = Rig::with_apps(3, 17);
    let mut apps: Vec<App> = (0..17).map(|slot| rig.join(slot, slot)).collect();
    let mut group = 0;
    let memory = allocation_counter::measure(|| {
        for round in 0..5_000u64 {
            for app in &mut apps {
                let kind = if round % 3 == 0 { GroupKind::Swap } else { GroupKind::Draw };
                app.submit(round, 50, kind);
            }
            for _ in 0..17 {
                rig.now += Span::from_us(20);
                rig.engine.turn(rig.now, |_| {});
                for app in &mut apps {
                    while let Ok(Some(reply)) = app.receiver.next_reply() {
                        if let Reply::Grant { group: granted, .. } = reply {
                            app.complete(granted.0, rig.now);
                            group += 1;
                        }
                    }
                }
            }
        }
    });
    assert!(group > 10_000, "{group}");
    assert!(rig.engine.dropped() > 0, "the notes were not read");
    assert_eq!(memory.count_total, 0);
}

#[test]
fn a_client_that_rings_for_nothing_is_evicted() {
    let mut rig = Rig::new(1);
    let mut busy = rig.join(0, 1);
    let noisy = rig.join(1, 9);
    for group in 0..30_000 {
        // As many rings as requests are no noise, and neither are some more.
        busy.submit(group, 1, GroupKind::Draw);
        rig.engine.rang(rig.now, busy.id);
        rig.turn();
        busy.complete(group, rig.now);
        busy.granted();
        rig.engine.rang(rig.now, noisy.id);
        rig.turn();
    }
    assert_eq!(rig.fault(), Some((noisy.id, Fault::Noisy)));
    assert!(rig.engine.endpoint(busy.id).is_some());
}

#[test]
fn work_that_waits_is_seen_without_a_turn() {
    let mut rig = Rig::new(1);
    let mut app = rig.join(0, 1);
    assert!(!rig.engine.has_work());
    app.submit(0, 1, GroupKind::Draw);
    assert!(rig.engine.has_work());
    rig.turn();
    assert!(!rig.engine.has_work());
    rig.queues.orders.push(Order::Count).expect("room");
    assert!(rig.engine.has_work());
}

/// Apps without a contract can have thousands of groups that come at one moment.
#[test]
fn a_burst_of_many_apps_delays_no_protected_one() {
    const CROWD: u32 = 60;
    const EACH: u64 = 64;
    let mut rig = Rig::with_apps(2, CROWD + 1);
    let mut crowd: Vec<App> = (0..CROWD).map(|slot| rig.join(slot, slot)).collect();
    let mut dial = rig.join_reserving(CROWD, 1_000, Span::from_ms(2));
    let taken = |rig: &mut Rig| {
        let submitted = |note: &Note| match note {
            Note::Record(_, Record::In(Event::Submit { app, .. })) => Some(app.0),
            _ => None,
        };
        rig.notes().iter().filter_map(submitted).collect::<Vec<u32>>()
    };
    taken(&mut rig);
    for app in &mut crowd {
        (0..EACH).for_each(|group| app.submit(group, 300, GroupKind::Draw));
    }
    dial.submit(0, 500, GroupKind::Draw);
    rig.turn();
    assert_eq!(dial.granted(), [0], "whatever waits beside it");
    let first = taken(&mut rig);
    assert!(first[0] == CROWD && first.len() <= 300, "{} requests in one turn", first.len());
    // Those of the others are read in the turns that follow, by all of them in turn.
    let mut all = vec![first];
    while rig.engine.has_work() {
        rig.turn();
        all.push(taken(&mut rig));
    }
    assert_eq!(all.iter().map(Vec::len).sum::<usize>() as u64, u64::from(CROWD) * EACH + 1);
    assert!(all.windows(2).all(|pair| pair[0].last() != pair[1].first()), "none goes twice");
}

#[test]
fn another_grid_under_load_changes_only_deadlines() {
    let mut rig = Rig::new(1);
    let mut app = rig.join(0, 1);
    for (group, hz) in [(0, 50_000), (1, 59_940), (2, 144_000)] {
        app.submit(group, 100, GroupKind::Swap);
        let origin = Time::from_us(99_000_123 + group);
        let grid = takt_core::Refresh::from_mhz(hz).expect("a rate").with_origin(origin);
        rig.queues
            .orders
            .push(Order::Refresh { display: takt_core::DisplayId::default(), grid })
            .expect("room");
        rig.now += Span::from_ms(40);
        rig.turn();
        assert_eq!(app.granted(), [group]);
        app.complete(group, rig.now);
        rig.turn();
    }
}
