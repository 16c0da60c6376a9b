use super::*;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no panic").clone()).expect("UTF-8")
    }
}

fn who(app: &str, uid: u32) -> Who<'_> {
    Who { app, slot: 3, pid: 7, uid, domain: "own", listed: false }
}

fn refused(uid: u32) -> Entry<'static> {
    Entry::Refused { pid: 1, uid, domain: "unlisted", rule: Rule::Malformed, reason: "no", listed: false }
}

/// What a journal writes until it ends.
fn written(told: impl FnOnce(&mut Journal)) -> String {
    let out = Shared::default();
    let mut journal = Journal::new(Box::new(out.clone()), Format::Text).expect("a thread");
    told(&mut journal);
    drop(journal);
    out.text()
}

#[test]
fn a_flood_is_folded_and_hides_nothing_of_others() {
    let refused = refused(2);
    let text = written(|journal| {
        (0..10_000).for_each(|_| journal.tell_at(Duration::from_secs(5), &refused));
        for _ in 0..12 {
            let (who, admission) = (who("dial", 3), "protected");
            let joined = Entry::Joined { who, priority: u32::MAX, fps: 60.0, admission };
            journal.tell_at(Duration::from_secs(5), &joined);
        }
        journal.tell_at(Duration::from_secs(5), &Entry::Stopping { reason: "over" });
        journal.sum_up(&Members::new(1));
    });
    let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!((count(" refused "), count(" joined "), count(" stopping ")), (16, 12, 1), "{text}");
    assert_eq!(count(" repeated kind=refused times=9984 uid=2"), 1, "{text}");
}

/// Sums once moved the second without a new count of lines.
#[test]
fn a_flood_is_over_when_its_second_is() {
    let refused = refused(2);
    let members = Members::new(1);
    let text = written(|journal| {
        for second in 0..20 {
            journal.second = second;
            journal.sum_up(&members);
            (0..20).for_each(|_| journal.tell(&refused));
        }
    });
    assert!(text.lines().filter(|line| line.contains(" refused ")).count() >= 16 * 20, "{text}");
}

#[test]
fn a_log_that_is_not_read_delays_no_event() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut journal = Journal::new(Box::new(writer), Format::Text).expect("a thread");
    for second in 0..10_000 {
        let refused = refused(second);
        journal.tell_at(Duration::from_secs(second.into()), &refused);
    }
    assert!(journal.omitted > 0);
    let of_listed = |uid| Entry::Refused {
        pid: 1,
        uid,
        domain: "ivi",
        rule: Rule::Admission,
        reason: "no",
        listed: true,
    };
    journal.tell_at(Duration::ZERO, &of_listed(77));
    assert_eq!(journal.omitted, 0, "lines about listed clients find room, however many users there are");
    for second in 0..10_000 {
        journal.tell_at(Duration::from_secs(second.into()), &of_listed(second));
    }
    assert!(journal.omitted > 0);
    journal.tell_at(Duration::ZERO, &Entry::Stopping { reason: "over" });
    assert_eq!(journal.omitted, 0, "the daemon's own lines find room");
    drop(reader);
}
