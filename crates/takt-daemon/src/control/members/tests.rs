use takt_core::{AppId, Span, Time};
use takt_ipc::message::{Hello, TimeSlices};

use super::*;
use crate::control::config::{Admission, GivenSlices, Settings};
use crate::control::identity::Identity;
use crate::control::rights::{Level, Rule};
use crate::control::terms::Terms;
use crate::control::view::View;

fn hello(name: &str, priority: Option<u32>, etpf_us: u64) -> Hello {
    Hello { name: name.to_owned(), priority, etpf_ns: Some(etpf_us * 1000), ..Hello::default() }
}

/// A process of root.
fn peer(pid: u32) -> Identity {
    Identity { pid, ..Identity::default() }
}

#[test]
fn names_do_not_steer_terminals() {
    let mut members = Members::new(1);
    for bad in ["", "a\nb", "\u{1b}[2J", "a\u{9b}1m", "a\u{202e}b", "Tacho 1", "é"] {
        let refused = members.admit(Time::ZERO, &hello(bad, None, 0), &peer(1), &Settings::default());
        let reason = refused.expect_err("refused").reason;
        assert!(reason.contains("name") && reason.is_ascii(), "{bad:?}: {reason}");
    }
    assert!(members.admit(Time::ZERO, &hello("Tacho_1.x", None, 0), &peer(1), &Settings::default()).is_ok());
}

#[test]
fn terms_that_a_join_may_not_have_are_refused_later() {
    let settings = Settings { admission: Admission::Refuse, ..Settings::default() };
    let mut members = Members::new(2);
    members.admit(Time::ZERO, &hello("a", Some(9), 9_000), &peer(1), &settings).expect("admitted");
    members.admit(Time::ZERO, &hello("b", Some(1), 0), &peer(2), &settings).expect("it reserves nothing");
    let etpf = |us| Terms { etpf: Some(Span::from_us(us)), ..Terms::default() };
    let refusal = |terms, settings: &Settings| members.allowed(AppId(1), terms, settings).err();
    let refused = refusal(etpf(9_000), &settings).expect("too much");
    assert!(refused.reason.starts_with("not protected"), "{refused:?}");
    assert_eq!(refusal(etpf(1_000), &settings), None);
    assert_eq!(refusal(etpf(9_000), &Settings::default()), None);
}

#[test]
fn what_cannot_be_guaranteed_is_not_promised() {
    let mut members = Members::new(3);
    let settings = Settings::default();
    let first =
        members.admit(Time::ZERO, &hello("a", Some(9), 9_000), &peer(1), &settings).expect("admitted");
    assert!(first.protected, "{first:?}");
    let second =
        members.admit(Time::ZERO, &hello("b", Some(9), 9_000), &peer(2), &settings).expect("admitted");
    assert!(!second.protected);
    assert_eq!(second.priority(), 8);
    assert!(second.admission().contains("priority 9 is taken"), "{}", second.admission());
    let more = Terms { priority: Some(20), ..Terms::default() };
    assert!(members.change(AppId(1), more, &settings).expect("changed").protected);
    let refusing = Settings { admission: Admission::Refuse, ..settings };
    let refused =
        members.admit(Time::ZERO, &hello("c", Some(1), 9_000), &peer(3), &refusing).expect_err("too much");
    assert!(refused.reason.starts_with("not protected"), "{refused:?}");
    assert!(refused.again.is_some(), "others may leave");
    assert!(
        members.admit(Time::ZERO, &hello("c", None, 0), &peer(3), &refusing).is_ok(),
        "it reserves nothing"
    );
    assert_eq!(
        members.admit(Time::ZERO, &hello("d", None, 0), &peer(4), &refusing).expect_err("full"),
        Refusal::for_now(Rule::Slots, "all 3 slots are taken".to_owned())
    );
}

#[test]
fn a_client_that_reconnects_gets_its_priority() {
    let settings = Settings::default();
    let mut members = Members::new(2);
    members.admit(Time::ZERO, &hello("a", Some(9), 9_000), &peer(1), &settings).expect("admitted");
    members.leaves(AppId(0));
    let again = members.admit(Time::ZERO, &hello("a", Some(9), 9_000), &peer(1), &settings);
    let again = again.expect("admitted");
    assert_eq!((again.app, again.priority(), again.protected), (AppId(1), 9, true));
}

#[test]
fn the_core_has_the_last_word() {
    let settings = Settings::default();
    let mut members = Members::new(2);
    members.admit(Time::ZERO, &hello("a", Some(1), 9_000), &peer(1), &settings).expect("admitted");
    assert_eq!(members.judged(AppId(0), true), None, "as expected");
    let taken_back = members.judged(AppId(0), false).expect("news");
    assert!(!taken_back.protected && taken_back.admission().starts_with("not protected: it and the more"));
    assert!(members.judged(AppId(0), true).expect("news").protected);
    assert_eq!(members.judged(AppId(1), true), None, "no such member");
}

#[test]
fn the_file_outranks_the_app() {
    let settings = Settings::parse("[[app]]\nname='a'\npriority=5\nfps=30").expect("fine");
    let mut members = Members::new(2);
    let asks = Hello { fps_mhz: Some(60_000), ..hello("a", Some(99), 0) };
    let member = members.admit(Time::ZERO, &asks, &peer(1), &settings).expect("admitted");
    assert_eq!((member.priority(), member.fps_mhz), (5, 30_000));
    let odd = Hello { fps_mhz: Some(45_000), ..hello("b", None, 0) };
    assert!(
        members
            .admit(Time::ZERO, &odd, &peer(2), &settings)
            .expect_err("odd")
            .reason
            .contains("does not divide")
    );
    let found = |who: &str| members.find(who, &View::All).map(|member| member.app).ok();
    assert_eq!([found("a"), found("0"), found("7")], [Some(AppId(0)), Some(AppId(0)), None]);
}

#[test]
fn what_an_app_asks_for_later_is_remembered() {
    let settings = Settings::default();
    let mut members = Members::new(1);
    assert!(
        !members.admit(Time::ZERO, &hello("a", Some(9), 0), &peer(1), &settings).expect("admitted").paced
    );
    let more = Terms::try_from(&Hello { fps_mhz: Some(30_000), ..Hello::default() }).expect("fine");
    members.ask_again(AppId(0), more.clone());
    let member = members.change(AppId(0), more, &settings).expect("changed");
    assert!(member.paced);
    assert_eq!((member.asked.priority, member.asked.fps_mhz), (Some(9), Some(30_000)));
}

#[test]
fn terms_that_contradict_others_change_nothing() {
    let settings = Settings::default();
    let mut members = Members::new(2);
    members.admit(Time::ZERO, &hello("a", Some(1), 0), &peer(1), &settings).expect("admitted");
    members.admit(Time::ZERO, &hello("b", Some(2), 0), &peer(2), &settings).expect("admitted");
    let before = members.get(AppId(0)).cloned();
    let taken = Terms { priority: Some(2), etpf: Some(Span::from_ms(1)), ..Terms::default() };
    assert_eq!(members.change(AppId(0), taken, &settings), Err("priority 2 belongs to b".to_owned()));
    assert_eq!(members.get(AppId(0)).cloned(), before);
    assert!(members.change(AppId(9), Terms::default(), &settings).is_err());
}

#[test]
fn no_user_takes_the_last_slot_from_another() {
    let (mut members, settings) = (Members::new(64), Settings::default());
    let mut join = |uid| {
        let peer = Identity { uid, ..Identity::default() };
        members.admit(Time::ZERO, &hello("a", None, 0), &peer, &settings).map(|_| ())
    };
    let own = rustix::process::geteuid().as_raw();
    let mut taken = |uid| std::iter::from_fn(|| join(uid).ok()).count();
    assert_eq!([taken(own + 1), taken(own + 2), taken(own + 3)], [48, 12, 3]);
    assert_eq!(taken(own), 1, "the daemon's own user may have the last one");
    let refused = join(own + 1).expect_err("full");
    assert!(refused.again.is_some(), "{refused:?}");
}

#[test]
fn listed_apps_find_a_slot() {
    let listed = "[[app]]\nname = \"dial\"\n[[app]]\nname = \"camera\"";
    let (mut members, settings) = (Members::new(8), Settings::parse(listed).expect("settings"));
    let own = Identity { uid: settings.domains.own_uid, ..Identity::default() };
    let other = Identity { uid: settings.domains.own_uid + 1, ..Identity::default() };
    let mut join = |name: &str, who: &Identity| {
        members.admit(Time::ZERO, &hello(name, None, 0), who, &settings).map(|member| member.app)
    };
    let taken = std::iter::from_fn(|| join("dial", &other).or_else(|_| join("x", &own)).ok()).count();
    assert_eq!(taken, 6, "neither a name nor a user gets the others");
    let refused = join("x", &own).expect_err("kept");
    assert!(refused.again.is_some() && refused.reason.contains("kept for listed apps"), "{refused:?}");
    assert!(join("dial", &own).is_ok() && join("camera", &own).is_ok());
}

#[test]
fn a_listed_app_has_its_slot_whatever_else_its_user_runs() {
    let listed = "[[domain]]\nname='cluster'\nunit='cluster.service'\n[[app]]\nname='dial'\ndomain='cluster'";
    let (mut members, settings) = (Members::new(64), Settings::parse(listed).expect("settings"));
    let other = Identity { uid: settings.domains.own_uid + 1, ..Identity::default() };
    let cluster = Identity { cgroup: Some("/system.slice/cluster.service".to_owned()), ..other.clone() };
    let mut join = |name: &str, who: &Identity| {
        members.admit(Time::ZERO, &hello(name, None, 0), who, &settings).map(|member| member.listed)
    };
    let taken = std::iter::from_fn(|| join("x", &other).ok()).count();
    assert_eq!((taken, join("x", &other).is_err()), (48, true), "it has its share");
    assert_eq!(join("dial", &cluster), Ok(true));
}

#[test]
fn numbers_are_slots_whatever_apps_are_called() {
    let (mut members, settings) = (Members::new(8), Settings::default());
    for name in ["dial", "0", "7"] {
        members.admit(Time::ZERO, &hello(name, None, 0), &peer(1), &settings).expect("admitted");
    }
    let found = |who: &str| members.find(who, &View::All).map(|member| member.name.as_str()).ok();
    assert_eq!([found("0"), found("1"), found("dial")], [Some("dial"), Some("0"), Some("dial")]);
    assert_eq!(found("7"), None, "no such slot, and an app called so does not take its place");
}

/// A user that the configuration does not know.
fn stranger() -> Identity {
    Identity { uid: rustix::process::geteuid().as_raw() + 1, ..Identity::default() }
}

#[test]
fn an_impostor_gets_the_rights_of_its_own_domain() {
    let text = "admission='refuse'\n[[app]]\nname='dial'\npriority=80\nfps=60\netpf_ms=3";
    let settings = Settings::parse(text).expect("fine");
    let mut members = Members::new(3);
    let asks = hello("dial", None, 0);
    let impostor = members.admit(Time::ZERO, &asks, &stranger(), &settings).expect("best effort").clone();
    assert_eq!((impostor.protected, impostor.listed, impostor.paced), (false, false, false));
    assert_eq!((impostor.domain.level, impostor.rule), (Level::BestEffort, Rule::NameOfAnotherDomain));
    assert!(
        impostor.admission().contains("are for another domain or executable (domain unlisted"),
        "{}",
        impostor.admission()
    );
    let dial = members.admit(Time::ZERO, &asks, &peer(1), &settings).expect("listed");
    assert_eq!((dial.priority(), dial.protected, dial.listed, dial.rule), (80, true, true, Rule::ListedApp));
    assert!(dial.params.priority > impostor.params.priority);
}

#[test]
fn an_unlisted_user_that_asks_for_everything_is_below_all_others() {
    let settings = Settings::default();
    let mut members = Members::new(3);
    let asks = hello("greedy", Some(u32::MAX), 16_000);
    let greedy = members.admit(Time::ZERO, &asks, &stranger(), &settings).expect("best effort").clone();
    assert_eq!(
        (greedy.protected, greedy.params.etpf, greedy.max_slice),
        (false, Span::ZERO, settings.max_slice)
    );
    assert!(greedy.admission().contains("rule etpf-max"), "{}", greedy.admission());
    let last = members.admit(Time::ZERO, &hello("last", Some(0), 0), &peer(1), &settings).expect("own");
    assert!(last.params.priority > greedy.params.priority);
    let later = Terms { etpf: Some(Span::from_ms(9)), priority: Some(7), ..Terms::default() };
    let (decision, terms) = members.allowed(greedy.app, later, &settings).expect("in part");
    assert_eq!((terms.etpf, terms.priority), (Some(Span::ZERO), Some(7)));
    assert_eq!(decision.rule(), Rule::EtpfMax, "nor later");
}

#[test]
fn the_time_of_listed_apps_is_kept_before_and_after_they_start() {
    let text = "admission='refuse'\n[[app]]\nname='dial'\npriority=80\nfps=60\netpf_ms=9";
    let settings = Settings::parse(text).expect("fine");
    let mut members = Members::new(3);
    let asks = |priority| hello("game", Some(priority), 9_000);
    let refused = |members: &mut Members, priority| {
        let refusal = members.admit(Time::ZERO, &asks(priority), &peer(2), &settings).expect_err("kept");
        (refusal.rule, refusal.reason)
    };
    let (before, reason) = refused(&mut members, 90);
    assert_eq!(before, Rule::KeptForListed, "{reason}");
    assert!(
        reason.contains("kept for dial, which the configuration lists (rule kept-for-listed): lower"),
        "{reason}"
    );
    assert_eq!(refused(&mut members, 10).0, Rule::KeptForListed, "nor after the dial");
    members.admit(Time::ZERO, &hello("dial", None, 0), &peer(1), &settings).expect("listed");
    assert_eq!(refused(&mut members, 90).0, Rule::KeptForListed);
    assert_eq!(refused(&mut members, 10).0, Rule::Admission);
    let small = hello("small", Some(90), 2_000);
    assert!(members.admit(Time::ZERO, &small, &peer(2), &settings).expect("it fits").protected);
}

#[test]
fn the_priority_of_a_listed_app_is_kept() {
    let settings = Settings::parse("[[app]]\nname='dial'\npriority=80").expect("fine");
    let mut members = Members::new(2);
    let mut admit = |name: &str, priority| {
        members
            .admit(Time::ZERO, &hello(name, priority, 0), &peer(1), &settings)
            .expect("admitted")
            .priority()
    };
    assert_eq!(admit("game", Some(80)), 79);
    assert_eq!(admit("dial", None), 80);
}

#[test]
fn a_domain_has_so_many_apps_and_so_much_time() {
    let text = "[[domain]]\nname='ivi'\nuser=77\napps_max=2\netpf_ms_max=5\npriority_max=20\n\
        [[app]]\nname='map'\ndomain='ivi'\nfps=60\netpf_ms=3";
    let settings = Settings::parse(text).expect("fine");
    let mut members = Members::new(8);
    let ivi = Identity { uid: 77, ..Identity::default() };
    let game = members.admit(Time::ZERO, &hello("game", Some(50), 3_000), &ivi, &settings).expect("in part");
    assert_eq!((game.priority(), game.params.etpf), (20, Span::ZERO), "3 of 5 ms are kept for the map");
    let map = members.admit(Time::ZERO, &hello("map", None, 0), &ivi, &settings).expect("listed");
    assert!(map.protected);
    let refused = members.admit(Time::ZERO, &hello("third", None, 0), &ivi, &settings).expect_err("two");
    assert_eq!(refused.rule, Rule::AppsMax);
    assert!(refused.reason.contains("domain ivi") && refused.again.is_some(), "{refused:?}");
}

#[test]
fn a_place_in_its_domain_is_kept_for_a_listed_app() {
    let text = "[[domain]]\nname='ivi'\nuser=77\napps_max=3\n[[app]]\nname='map'\ndomain='ivi'\n\
        [[app]]\nname='dial'\ndomain='ivi'";
    let ivi = Identity { uid: 77, ..Identity::default() };
    let settings = Settings::parse(text).expect("fine");
    let mut members = Members::new(8);
    let admit = |members: &mut Members, name: &str, settings: &Settings| {
        members.admit(Time::ZERO, &hello(name, None, 0), &ivi, settings).map(|member| member.app)
    };
    admit(&mut members, "game", &settings).expect("one of three");
    let refused = admit(&mut members, "other", &settings).expect_err("two are kept");
    assert_eq!((refused.rule, refused.again.is_some()), (Rule::AppsMax, true));
    admit(&mut members, "map", &settings).expect("listed");
    admit(&mut members, "dial", &settings).expect("listed");
}

#[test]
fn other_domains_of_a_file_move_apps() {
    let mut members = Members::new(2);
    members
        .admit(Time::ZERO, &hello("game", Some(5), 3_000), &stranger(), &Settings::default())
        .expect("in part");
    let uid = stranger().uid;
    let settings = Settings::parse(&format!("[[domain]]\nname='ivi'\nuser={uid}")).expect("fine");
    assert_eq!(members.regroup(&settings), [AppId(0)]);
    assert_eq!(members.regroup(&settings), []);
    let member = members.get(AppId(0)).expect("there").clone();
    let terms = members.renewed(&member, &settings).expect("within rights");
    assert_eq!(terms.etpf, Some(Span::from_ms(3)), "what it asked for");
    assert!(members.change(AppId(0), terms, &settings).expect("changed").protected);
}

#[test]
fn work_is_charged_by_the_slices_that_clients_have() {
    let (settings, mut members) = (Settings::default(), Members::new(4));
    let drivers = settings.divisible;
    let add = |hello: Hello, slices: Option<(u32, u32)>, members: &mut Members| {
        let slices = slices.map(|(shortest_us, longest_us)| TimeSlices { shortest_us, longest_us });
        let hello = Hello { slices, ..hello };
        members.admit(Time::ZERO, &hello, &peer(1), &settings).expect("admitted").app
    };
    let compute = |name| Hello { name: String::from(name), divisible: true, ..Hello::default() };
    let turns = |members: &Members, given| {
        let turns = members.turns(drivers, given, false);
        [turns.slice, turns.own_slice].map(|span| span.as_ns() / 1_000)
    };
    let all = GivenSlices::default();
    let hero = add(Hello { divisible: true, ..hello("hero", Some(9), 3_000) }, None, &mut members);
    assert!(!members.divide(), "it has a contract, so nothing is charged for it");
    add(compute("flood"), Some((300, 300)), &mut members);
    assert!(members.divide());
    assert_eq!(turns(&members, all), [300, 1_024], "what drivers give counts for one that says nothing");
    members.has_slices(hero, TimeSlices { shortest_us: 20_000, longest_us: 20_000 });
    assert_eq!(turns(&members, all), [300, 20_000]);
    assert_eq!(members.turns(drivers, all, true).slice, drivers.slice, "another one is about to come");
    let other = add(compute("other"), None, &mut members);
    assert_eq!(turns(&members, all), [2_048, 20_000]);
    members.has_slices(other, TimeSlices { shortest_us: 300, longest_us: 5_000 });
    assert_eq!(turns(&members, all), [5_000, 20_000], "the longest of all");
    members.has_slices(hero, TimeSlices::UNKNOWN);
    assert_eq!(turns(&members, all), [5_000, 1_024]);
    assert_eq!(turns(&members, GivenSlices { divisible: true, own: true }), [2_048, 1_024], "the file's");
}

#[test]
fn work_of_unlisted_users_does_not_run_beside_the_contracts_of_others() {
    let (settings, mut members) = (Settings::default(), Members::new(4));
    let compute = |name: &str| Hello { name: name.to_owned(), divisible: true, ..Hello::default() };
    let add = |hello: &Hello, who: &Identity, members: &mut Members| {
        members.admit(Time::ZERO, hello, who, &settings).expect("admitted").app
    };
    let miner = add(&compute("miner"), &stranger(), &mut members);
    assert!(members.divide(), "there is no promise");
    let dial = add(&hello("dial", Some(9), 3_000), &peer(1), &mut members);
    assert_eq!(members.redivide(&settings), [miner]);
    assert!(!members.divide(), "others are charged nothing for it");
    let own = add(&compute("own"), &peer(2), &mut members);
    assert!(members.divide(), "another domain's may");
    let turns = members.turns(settings.divisible, GivenSlices::default(), false);
    members.has_slices(miner, TimeSlices { shortest_us: 1, longest_us: u32::MAX });
    let told = members.turns(settings.divisible, GivenSlices::default(), false);
    assert_eq!((turns.slice, told.slice), (settings.divisible.slice, settings.divisible.slice));
    assert_eq!(told.own_slice, Span::from_us(300), "it is not believed to have shorter ones than Takt sets");
    members.leaves(own);
    members.leaves(dial);
    assert_eq!(members.redivide(&settings), [miner]);
    assert!(members.divide());
    let listed = Settings::parse("[[app]]\nname = 'dial'\nfps = 60\netpf_ms = 3").expect("fine");
    assert_eq!(members.redivide(&listed), [miner], "time is kept for it");
    let again = members.admit(Time::ZERO, &compute("again"), &stranger(), &listed).expect("admitted");
    assert!(!again.params.service.divisible);
}
