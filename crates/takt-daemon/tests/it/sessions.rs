//! What the library underneath a program does with its grants, against a real daemon.

use std::time::{Duration, Instant};

use takt_client::{Grant, Patience, Session};
use takt_core::{GroupKind, Span};
use takt_daemon::control::config::Settings;
use takt_ipc::Standing;
use takt_ipc::client::join;
use takt_ipc::message::Hello;
use takt_os::clock;

use crate::support::{Daemon, PATIENCE, await_reply, complete, granted, hello, submit};

fn silent(_: &str) {}

/// A program that bears with a daemon that a busy machine starves.
fn patient(daemon: &Daemon, hello: Hello) -> Session {
    let long = Span::from_ms(60_000);
    let patience = Patience { answer: PATIENCE, greeting: long, silence: long };
    Session::new(daemon.path.clone(), hello, silent, patience)
}

/// A program without a frame rate.
fn session(daemon: &Daemon) -> Session {
    let hello = Hello { name: "plain".to_owned(), priority: Some(5), ..Hello::default() };
    let session = patient(daemon, hello);
    session.join();
    assert!(session.is_free_running());
    session
}

fn end(session: &Session, grant: Grant) {
    let grant = session.hand_over(grant).expect("it is held");
    session.complete(grant, clock::now(), Span::from_us(20));
}

fn await_frames(daemon: &Daemon, frames: u64) {
    daemon.await_answer(r#"{"ask": "summary", "window_s": 30}"#, |answer| {
        answer["is"]["apps"][0]["frames"].as_u64() == Some(frames)
    });
}

#[test]
fn frames_that_share_a_group_are_counted_one_by_one() {
    let daemon = Daemon::start("shared-frames", "");
    let session = session(&daemon);
    for frames in [1, 5, 0, 3] {
        let grant = session.ask_to_fill(Span::from_us(10), Span::from_us(100)).expect("scheduled");
        (0..frames).for_each(|_| session.end_frame(&grant));
        end(&session, grant);
    }
    await_frames(&daemon, 9);
}

#[test]
fn a_group_that_is_given_back_between_two_frames_says_how_many_it_had() {
    let daemon = Daemon::start("given-back-frames", "");
    let session = session(&daemon);
    let grant = session.ask_to_fill(Span::ZERO, Span::from_us(100)).expect("scheduled");
    session.end_frame(&grant);
    session.end_frame(&grant);
    assert!(session.is_hasty());
    while session.is_hasty() {
        session.give_back_unused();
    }
    assert!(!session.is_held(&grant));
    await_frames(&daemon, 2);
    // A frame without a grant any more counts with the next group.
    session.end_frame(&grant);
    let next = session.ask_to_fill(Span::ZERO, Span::from_us(100)).expect("scheduled");
    session.end_frame(&next);
    end(&session, next);
    await_frames(&daemon, 4);
}

#[test]
fn a_grant_asked_for_ahead_goes_to_the_next_that_asks() {
    let daemon = Daemon::start("ahead", "mpcg = 2");
    let session = session(&daemon);
    for _ in 0..20 {
        let first = session.ask_to_fill(Span::ZERO, Span::from_us(50)).expect("scheduled");
        session.ask_ahead(Span::from_us(200));
        session.ask_ahead(Span::from_us(900));
        end(&session, first);
        let second = session.ask_to_fill(Span::from_us(150), Span::from_us(150)).expect("scheduled");
        assert_eq!(second.number, first.number + 1, "asked for once");
        assert!(second.credit >= Span::from_us(200));
        end(&session, second);
    }
}

#[test]
fn a_grant_that_is_not_enough_is_given_back() {
    let daemon = Daemon::start("not-enough", "mpcg = 1");
    let session = session(&daemon);
    for round in 0..20 {
        session.ask_ahead(Span::from_us(10));
        if round % 2 == 0 {
            // Sometimes it has come by the time of the answer.
            assert_eq!(daemon.ask(r#"{"ask": "apps"}"#)["answer"], "apps");
        }
        let grant = session.ask_to_fill(Span::from_us(500), Span::from_us(500)).expect("scheduled");
        assert!(grant.credit >= Span::from_us(500));
        end(&session, grant);
    }
    let swap = session.ask(GroupKind::Swap, Span::ZERO).expect("scheduled still");
    session.complete(swap, clock::now(), Span::ZERO);
    await_frames(&daemon, 1);
}

#[test]
fn an_unused_grant_makes_room_for_others() {
    let daemon = Daemon::start("unused", "mpcg = 1");
    let session = session(&daemon);
    session.ask_ahead(Span::from_us(100));
    let mut other = join(&daemon.path, &hello("other", 3), PATIENCE).expect("joined");
    submit(&mut other, 0, GroupKind::Draw);
    let until = Instant::now() + PATIENCE;
    while session.is_hasty() {
        session.give_back_unused();
        assert!(Instant::now() < until, "it comes and is given back");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(await_reply(&mut other, granted), 0);
    complete(&mut other, 0);
    // And the program goes on.
    let grant = session.ask_to_fill(Span::ZERO, Span::from_us(100)).expect("scheduled");
    end(&session, grant);
}

#[test]
fn a_group_that_was_given_back_ends_once() {
    let daemon = Daemon::start("ends-once", "");
    let session = session(&daemon);
    for _ in 0..3 {
        let grant = session.ask_to_fill(Span::ZERO, Span::from_us(100)).expect("scheduled");
        session.end_frame(&grant);
        while session.is_hasty() {
            session.give_back_unused();
        }
        assert!(!session.is_held(&grant));
        // A thread that has it nevertheless reports nothing that the daemon knows already.
        session.complete(grant, clock::now(), Span::from_us(20));
        assert_eq!(session.hand_over(grant), None);
    }
    let grant = session.ask_to_fill(Span::ZERO, Span::from_us(100)).expect("scheduled still");
    session.end_frame(&grant);
    session.complete(grant, clock::now(), Span::from_us(20));
    await_frames(&daemon, 4);
    assert!(session.welcome().is_some());
}

#[test]
fn terms_that_are_refused_are_not_kept() {
    let daemon = Daemon::start("kept", "");
    let session = session(&daemon);
    let asks = |mhz| Hello { name: "plain".to_owned(), fps_mhz: Some(mhz), ..Hello::default() };
    assert!(session.renew(asks(30_000)));
    assert!(!session.renew(asks(45_000)), "the display does not have it");
    assert!(session.said().starts_with("the terms stay"), "{}", session.said());
    drop(daemon);
    // Found again, the daemon is asked for what it gave.
    let daemon = Daemon::start("kept", "");
    let until = Instant::now() + PATIENCE;
    while session.ask(GroupKind::Sync, Span::ZERO).is_none() {
        assert!(Instant::now() < until, "{}", session.said());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(daemon.ask(r#"{"ask": "apps"}"#)["is"][0]["fps"], 30.0);
}

#[test]
fn a_frame_that_comes_sooner_is_not_slept_through() {
    let daemon = Daemon::start("sooner", "");
    let hello = Hello { name: "slow".to_owned(), fps_mhz: Some(250), ..Hello::default() };
    let session = patient(&daemon, hello);
    let swap = session.ask(GroupKind::Swap, Span::ZERO).expect("scheduled");
    session.complete(swap, clock::now(), Span::ZERO);
    let first = session.released(swap).expect("it has a frame rate");
    assert_eq!(daemon.ask(r#"{"ask": "set", "app": "slow", "fps": 60}"#)["answer"], "apps");
    let next = session.pace(swap).expect("it still has one");
    assert!(next < first, "{next:?} is no sooner than {first:?}");
}

#[test]
fn a_clock_of_its_own_holds_the_next_frame_and_not_the_swap() {
    let daemon = Daemon::start("own", "");
    let period = Some(200_000_000);
    let hello = Hello { name: "camera".to_owned(), period_ns: period, ..Hello::default() };
    let session = patient(&daemon, hello);
    let began = clock::now();
    let swap = session.ask(GroupKind::Swap, Span::from_us(10)).expect("scheduled");
    session.complete(swap, clock::now(), Span::ZERO);
    assert_eq!(session.pace(swap), None, "the swap comes back at once");
    session.begin_frame();
    // A quarter of a period early is early enough for any timer.
    assert!(clock::now().since(began) >= Span::from_ms(150), "the next frame would come too soon");
    let after = clock::now();
    session.begin_frame();
    assert!(session.released(swap).is_some_and(|at| at < after), "it has begun already");
}

#[test]
fn apps_are_told_how_they_stand() {
    let daemon = Daemon::start("standing", "");
    let hello = Hello { name: "dial".to_owned(), priority: Some(5), ..Hello::default() };
    let session = patient(&daemon, hello);
    session.join();
    let await_standing = |paced, protected| {
        let until = Instant::now() + PATIENCE;
        let contract = paced || protected;
        let wanted = Standing { paced, protected, contract, ..Standing::default() };
        while session.welcome().expect("scheduled").standing != wanted {
            assert!(Instant::now() < until, "{:?}", session.welcome());
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    await_standing(false, false);
    assert_eq!(daemon.ask(r#"{"ask": "set", "app": "dial", "etpf_ms": 9}"#)["answer"], "apps");
    await_standing(false, true);
    assert_eq!(daemon.ask(r#"{"ask": "set", "app": "dial", "fps": 30}"#)["answer"], "apps");
    await_standing(true, true);
    assert!(!session.is_free_running());
    // A more important app takes the time.
    let more = Hello { etpf_ns: Some(15_000_000), ..crate::support::hello("more", 9) };
    let other = join(&daemon.path, &more, PATIENCE).expect("joined");
    assert!(other.welcome.standing.protected);
    await_standing(true, false);
    drop(other);
    await_standing(true, true);
    // With its section in the file, the rate it was given goes as well.
    let section = Settings::parse("[[app]]\nname = 'dial'\netpf_ms = 2").expect("settings");
    daemon.with(move |server| server.apply(section));
    await_standing(false, true);
}

#[test]
fn a_client_that_does_not_read_gets_the_newest_values_later() {
    let daemon = Daemon::start("later", "");
    let mut app = daemon.join("idle", 5);
    for n in 0..300 {
        let text = format!(r#"{{"ask": "set", "app": "idle", "etpf_ms": {}}}"#, n % 2);
        assert_eq!(daemon.ask(&text)["answer"], "apps");
    }
    submit(&mut app, 0, GroupKind::Draw);
    assert_eq!(await_reply(&mut app, granted), 0, "it is still scheduled");
}

#[test]
fn a_client_that_is_alone_may_form_longer_groups() {
    let daemon = Daemon::start("alone", "max_slice_ms = 2");
    let session = session(&daemon);
    assert!(session.is_alone() && !session.has_company());
    assert_eq!(session.slice(), Span::from_ms(32));
    let grant = session.ask_to_fill(Span::ZERO, session.slice()).expect("scheduled");
    assert!(grant.alone && (session.is_held(&grant), session.is_alone()) == (true, true));
    let other = daemon.join("other", 6);
    await_that(|| !session.is_alone());
    assert!(session.has_company());
    assert_eq!(session.slice(), Span::from_ms(2), "without having heard of anything");
    assert_eq!((session.is_held(&grant), session.is_alone()), (true, false), "it has its grant still");
    end(&session, grant);
    let grant = session.ask_to_fill(Span::ZERO, session.slice()).expect("scheduled");
    assert!(!grant.alone);
    end(&session, grant);
    drop(other);
    await_that(|| session.is_alone());
    assert!(!session.has_company());
    assert_eq!(session.slice(), Span::from_ms(32));
}

fn await_that(is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "it takes too long");
        std::thread::sleep(Duration::from_millis(1));
    }
}
