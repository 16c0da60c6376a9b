//! Any bytes are an audit that is intact or not, and whatever is done to an intact one is found.

use takt_audit::chain::read_line;
use takt_audit::rules::RuleText;
use takt_audit::verify::{Kept, sorted};
use takt_audit::{Chain, Engine, Entry, Event, Record, Source, verify};

/// Bytes of one change: which, where, with what.
const CHANGE: usize = 4;

pub fn audit(bytes: &[u8]) {
    read(bytes);
    change(bytes);
}

/// Reads the bytes as a file of an audit, and as a rule over it.
fn read(bytes: &[u8]) {
    let source = Source { name: "listed-1.jsonl", bytes };
    for (_, files) in sorted(&[source]) {
        let report = verify(&files, None, &[]);
        assert!(!report.is_intact() || report.head.is_some(), "what is intact has a last line");
    }
    let rule = serde_json::from_slice::<RuleText>(bytes).ok().and_then(|text| text.check().ok());
    let mut engine = Engine::new(rule.into_iter().collect());
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Some((_, Entry::Record(record))) = read_line(line) {
            let mut chain = Chain::new("listed");
            let again = chain.record(&record);
            let (_, entry) = read_line(again.trim_end().as_bytes()).expect("what was read is written so");
            assert_eq!(entry, Entry::Record(Box::new(record.clone().bounded())));
            engine.observe(&record);
        }
    }
}

/// Changes an intact audit as the bytes say.
fn change(bytes: &[u8]) {
    let mut chain = Chain::new("listed");
    let mut text = chain.open(0, 0, None);
    for (at_us, event) in (1..).zip(Event::ALL.into_iter().take(6)) {
        text.push_str(&chain.record(&Record::new(at_us, event)));
    }
    let kept = chain.head().map(|head| Kept { head, first: 0 });
    let mut changed = text.clone().into_bytes();
    for change in bytes.chunks_exact(CHANGE).take(64) {
        let at = usize::from(u16::from_le_bytes([change[1], change[2]]));
        apply(&mut changed, change[0], at, change[3]);
    }
    let report = verify(&[Source { name: "listed-1.jsonl", bytes: &changed }], kept, &[]);
    assert_eq!(report.is_intact(), changed == text.as_bytes(), "{:?}", report.findings);
}

fn apply(bytes: &mut Vec<u8>, how: u8, at: usize, value: u8) {
    if bytes.is_empty() {
        return;
    }
    let at = at % bytes.len();
    match how % 5 {
        0 => bytes[at] = value,
        1 => drop(bytes.remove(at)),
        2 => bytes.insert(at, value),
        3 => bytes.truncate(at),
        _ => {
            let mut lines: Vec<Vec<u8>> =
                bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            let count = lines.len();
            lines.swap(at % count, usize::from(value) % count);
            *bytes = lines.concat();
        }
    }
}
