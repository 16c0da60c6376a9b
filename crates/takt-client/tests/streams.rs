//! Random programs against a daemon that watches for broken rules.

use std::sync::atomic::Ordering;

use takt_client::gather::FrameCost;
use takt_client::{Session, Stream};
use takt_core::{GroupKind, Span};
use takt_os::clock;
use takt_rng::Rng;

mod world;
use world::World;

/// A program with one stream, as an API layer would drive it.
struct Program<'a> {
    session: &'a Session,
    stream: Stream,
    pending: Span,
    frames: u64,
}

impl Program<'_> {
    fn draw(&mut self, cost: Span) {
        self.stream.check(self.session);
        if self.stream.must_yield() || self.stream.is_full(|| self.pending) {
            self.submit();
            self.stream.gathering.stop_coasting();
        }
        self.pending += cost;
        let begins = !self.stream.has_grant();
        self.stream.ask(self.session, self.pending);
        if let Some(credit) = self.stream.credit().filter(|_| begins) {
            assert!(credit >= self.pending, "a group has room for its first command");
        }
    }

    fn submit(&mut self) {
        self.stream.contains(std::mem::take(&mut self.pending));
        if let Some(grant) = self.stream.end_group(self.session) {
            self.session.complete(grant, clock::now(), Span::from_us(1));
        }
    }

    fn end_frame(&mut self, news: bool) {
        let cost = FrameCost { likely: self.pending, most: self.pending };
        self.stream.check(self.session);
        let ends = self.stream.plan(self.session, cost, news);
        let began_ns = clock::now().as_ns();
        let scheduled = self.stream.has_grant();
        self.stream.frame_ended(self.session, began_ns, clock::now().as_ns(), cost);
        self.frames += u64::from(scheduled);
        self.pending = Span::ZERO;
        if ends || !self.stream.has_grant() {
            self.stream.gathering.end_with_frame(clock::now().as_ns());
            self.submit();
        }
        let slice = self.stream.slice(self.session);
        self.stream.gathering.begin_frame(slice);
    }

    fn show(&mut self) {
        self.submit();
        if let Some(grant) = self.stream.ask_to_show(self.session, Span::from_ns(1)) {
            self.session.complete(grant, clock::now(), Span::ZERO);
            self.frames += 1;
        }
        // The swap was the group.
        let _done = self.stream.end_group(self.session);
    }
}

fn play(seed: u64) {
    let world = World::new(&format!("random-{seed}"));
    let session = world.session();
    let mut rng = Rng::new(seed, 0);
    let mut program =
        Program { session: &session, stream: Stream::default(), pending: Span::ZERO, frames: 0 };
    for _ in 0..400 {
        match rng.between(0, 19) {
            0..=9 => program.draw(Span::from_us(rng.between(1, 400))),
            10..=14 => program.end_frame(rng.between(0, 9) == 0),
            15 => program.submit(),
            16 => program.show(),
            // The program stops for so long that the grant of a group between two frames is taken back.
            17 => {
                while session.is_hasty() {
                    session.give_back_unused();
                }
            }
            18 => world.orders.alone.store(rng.between(0, 1) == 0, Ordering::Relaxed),
            _ => world.orders.extra_ns.store(rng.between(0, 300_000), Ordering::Relaxed),
        }
    }
    program.submit();
    while session.is_hasty() {
        session.give_back_unused();
    }
    // Frames that ended after their group was taken back are counted with the next one.
    let last = session.ask_to_fill(Span::ZERO, Span::from_us(10)).expect("scheduled to the end");
    let last = session.hand_over(last).expect("it is held");
    session.complete(last, clock::now(), Span::ZERO);
    let frames = program.frames;
    world.await_heard(|heard| heard.open.is_empty());
    let heard = world.heard.lock().expect("no panic");
    assert_eq!((heard.faults.as_slice(), heard.frames), (&[][..], frames), "seed {seed}");
}

#[test]
fn every_grant_ends_once_and_every_frame_is_counted() {
    (0..12).for_each(play);
}

#[test]
fn without_a_daemon_everything_passes() {
    let session = Session::absent(|_| {});
    let mut program =
        Program { session: &session, stream: Stream::default(), pending: Span::ZERO, frames: 0 };
    for _ in 0..50 {
        program.draw(Span::from_ms(500));
        program.end_frame(false);
        program.show();
        assert!(!program.stream.has_grant());
    }
    assert!(!session.is_wanted() && session.ask(GroupKind::Draw, Span::from_ms(1)).is_none());
    assert_eq!(program.stream.slice(&session), Span::FOREVER);
}

#[test]
fn an_evicted_program_goes_on_and_its_grant_is_void() {
    let world = World::new("evicted");
    let session = world.session();
    let mut program =
        Program { session: &session, stream: Stream::default(), pending: Span::ZERO, frames: 0 };
    program.draw(Span::from_us(10));
    assert!(program.stream.has_grant());
    world.orders.evict.store(true, Ordering::Relaxed);
    while session.welcome().is_some() {
        std::thread::yield_now();
    }
    program.draw(Span::from_us(10));
    assert!(!program.stream.has_grant(), "it was of another connection");
    assert!(session.said().contains("evicted"), "{}", session.said());
}

#[test]
fn the_only_client_has_longer_groups_until_another_comes() {
    let world = World::new("alone");
    let session = world.session();
    let mut stream = Stream::default();
    world.orders.alone.store(true, Ordering::Relaxed);
    let awaited = |stream: &mut Stream, slice: Span| {
        while stream.slice(&session) != slice {
            stream.check(&session);
            std::thread::yield_now();
        }
    };
    awaited(&mut stream, Span::from_ms(16));
    stream.ask(&session, Span::from_us(10));
    assert!(stream.grant().is_some_and(|grant| grant.alone) && !stream.must_yield());
    world.orders.alone.store(false, Ordering::Relaxed);
    awaited(&mut stream, Span::from_ms(1));
    stream.check(&session);
    assert!(stream.must_yield(), "its group is longer than it may be now");
}

#[test]
fn a_grant_that_came_long_ago_is_given_back() {
    let world = World::new("late");
    let session = world.session();
    let mut program =
        Program { session: &session, stream: Stream::default(), pending: Span::ZERO, frames: 0 };
    program.draw(Span::from_us(10));
    let grant = *program.stream.grant().expect("scheduled");
    program.stream.expire(&session);
    let age = |program: &Program<'_>| program.stream.gathering.age(clock::now().as_ns());
    // Machines may be slow, but the grant is not late before that.
    assert!(program.stream.has_grant() || age(&program) > Span::from_ms(2));
    while program.stream.has_grant() {
        program.stream.expire(&session);
    }
    assert!(age(&program) > Span::from_ms(2));
    world.await_heard(|heard| heard.open.is_empty());
    program.draw(Span::from_us(10));
    assert!(program.stream.grant().is_some_and(|next| next.number != grant.number), "it asked again");
    // The only client keeps its grant.
    program.submit();
    world.orders.alone.store(true, Ordering::Relaxed);
    while !program.stream.gathering.is_alone() {
        program.stream.check(&session);
    }
    program.draw(Span::from_us(10));
    while age(&program) < Span::from_ms(20) {
        program.stream.expire(&session);
    }
    assert!(program.stream.has_grant());
}

#[test]
fn a_grant_that_was_taken_back_is_noticed() {
    let world = World::new("taken-back");
    let session = world.session();
    let mut program =
        Program { session: &session, stream: Stream::default(), pending: Span::ZERO, frames: 0 };
    program.draw(Span::from_us(10));
    let grant = *program.stream.grant().expect("scheduled");
    // The program stops in the middle of a group, until the session gives the grant back.
    while session.is_held(&grant) {
        session.give_back_unused();
    }
    program.stream.check(&session);
    assert!(!program.stream.has_grant());
    program.draw(Span::from_us(10));
    assert!(program.stream.grant().is_some_and(|next| next.number != grant.number), "it asked again");
}
