use super::*;
use crate::control::identity::Identity;
use crate::control::members::{Member, Members};
use takt_core::{AppId, Estimate, Time};

fn hello(name: &str, etpf_us: u64) -> Hello {
    Hello { name: name.to_owned(), etpf_ns: Some(etpf_us * 1000), ..Hello::default() }
}

#[test]
fn timegraph_is_told_how_to_treat_apps() {
    use takt_core::service::{Enforcement, Reservation, Turns};
    let text = "policy = 'timegraph'\n[timegraph]\nturns = 'following'\nenforcement = 'apriori'";
    let settings = Settings::parse(text).expect("fine");
    let mut members = Members::new(1);
    let member =
        members.admit(Time::ZERO, &hello("a", 1_000), &Identity::default(), &settings).expect("admitted");
    let service = member.params.service;
    assert_eq!(service.turns, Turns::Following);
    assert!(
        matches!(service.reservation, Reservation::Own(own) if own.enforcement == Enforcement::Apriori),
        "{service:?}"
    );
}

#[test]
fn frames_are_a_server_only_where_the_policy_knows_no_frames() {
    use takt_core::service::Reservation;
    let reservation = |policy: &str| {
        let settings = Settings { policy: policy.to_owned(), ..Settings::default() };
        let mut members = Members::new(1);
        let member = members.admit(Time::ZERO, &hello("a", 1_000), &Identity::default(), &settings);
        member.expect("admitted").params.service.reservation
    };
    assert_eq!(reservation("timeline"), Reservation::None);
    assert_eq!(reservation("frame-deadline"), Reservation::None);
    assert!(matches!(reservation("edf-cbs"), Reservation::Own(_)));
}

#[test]
fn contracts_of_all_kinds_reach_the_core() {
    use takt_core::service::{Enforcement, Reservation};
    use takt_core::{Clock, DisplayId};
    let text = "[[display]]\nname='hud'\n[[display]]\nname='cluster'\nrefresh_hz=30\n\
        [[app]]\nname='dial'\ndisplay='cluster'\nfps=15\netpf_ms=3\n\
        [[app]]\nname='camera'\nclock='own'\nperiod_ms=33.3\ndeadline_ms=20\netpf_ms=4\n\
        [[app]]\nname='detector'\nruntime_ms=3\nperiod_ms=40\nhard=true\n\
        [[app]]\nname='rest'\nshare=0.2";
    let settings = Settings::parse(text).expect("fine");
    let mut members = Members::new(8);
    let mut admit = |name: &str| {
        members.admit(Time::ZERO, &hello(name, 0), &Identity::default(), &settings).expect("admitted").clone()
    };
    let (dial, camera) = (admit("dial"), admit("camera"));
    assert_eq!(dial.params.clock, Clock::Display(DisplayId(1)));
    assert_eq!((dial.params.stride.get(), dial.paced, dial.protected), (2, true, true));
    assert_eq!(dial.contract(), "15 fps on cluster, 3.0 ms");
    let clock = Clock::Own { period: Span::from_us(33_300), deadline: Span::from_ms(20) };
    assert_eq!((camera.params.clock, camera.paced, camera.protected), (clock, true, true));
    assert_eq!(camera.contract(), "own clock 33.3 ms, due after 20 ms, 4.0 ms");
    let (detector, rest, other) = (admit("detector"), admit("rest"), admit("other"));
    let Reservation::Own(reserve) = detector.params.service.reservation else {
        panic!("{detector:?}");
    };
    let budget = settings.core.per_job(Estimate::new(Span::from_ms(3)));
    assert_eq!((reserve.budget, reserve.period), (budget, Span::from_ms(40)));
    assert_eq!(reserve.enforcement, Enforcement::Apriori);
    assert!(!detector.paced && detector.is_judged(), "it waits for nothing, and its jobs have deadlines");
    assert!(!other.is_judged());
    assert_eq!((detector.contract(), detector.paced), ("hard server 3 ms in 40 ms".to_owned(), false));
    assert_eq!(rest.contract(), "server 20 ms in 100 ms");
    assert_eq!((other.contract(), other.protected), ("best effort".to_owned(), false));
}

#[test]
fn of_two_contracts_the_later_one_holds() {
    let settings = Settings::parse("[[display]]\nname='a'\n[[display]]\nname='b'\nrefresh_hz=50");
    let settings = settings.expect("fine");
    let mut members = Members::new(1);
    members.admit(Time::ZERO, &hello("x", 2_000), &Identity::default(), &settings).expect("admitted");
    let mut change =
        |terms| members.change(AppId(0), terms, &settings).map(Member::contract).expect("changed");
    let timing = |timing: Timing| Terms { paced: timing.paced(), timing: Some(timing), ..Terms::default() };
    let fps = |mhz| Terms { fps_mhz: Some(mhz), paced: Some(true), ..Terms::default() };
    let (period, deadline) = (Span::from_ms(20), Span::from_ms(20));
    assert_eq!(change(timing(Timing::Own { period, deadline })), "own clock 20.0 ms, 2.0 ms");
    assert_eq!(change(timing(Timing::Display("b".to_owned()))), "50 fps on b, 2.0 ms");
    assert_eq!(change(fps(25_000)), "25 fps on b, 2.0 ms");
    let server = Timing::Server { runtime: Span::from_ms(1), period, hard: false, share: false };
    assert_eq!(change(timing(server.clone())), "server 1 ms in 20 ms");
    assert_eq!(change(Terms { priority: Some(3), ..Terms::default() }), "server 1 ms in 20 ms");
    assert_eq!(change(fps(30_000)), "30 fps", "frames of the first display");
    change(timing(server));
    assert_eq!(change(Terms { etpf: Some(deadline), ..Terms::default() }), "60 fps, 20.0 ms");
    let unknown = members.change(AppId(0), timing(Timing::Display("c".to_owned())), &settings);
    assert_eq!(unknown, Err("there is no display c; there are a, b".to_owned()));
}
