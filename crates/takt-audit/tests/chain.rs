//! Whatever is done to the files of a chain, it is found.

use proptest::collection::vec;
use proptest::prelude::*;
use takt_audit::verify::{Fault, Kept, sorted};
use takt_audit::{Chain, Event, Head, Record, Report, Source, Subject, verify};

/// Files of a chain with so many records each, and what is kept of it.
fn written(files: &[usize]) -> (Vec<Vec<u8>>, Kept) {
    let mut chain = Chain::new("listed");
    let mut at_us = 0;
    let mut written = Vec::new();
    for records in files {
        let mut file = chain.open(at_us, 0, None);
        for event in Event::ALL.into_iter().cycle().take(*records) {
            at_us += 1000;
            let subject =
                Subject { user: Some(1000), exe: Some("/usr/bin/é".to_owned()), ..Subject::default() };
            file.push_str(&chain.record(&Record { subject, ..Record::new(at_us, event) }));
        }
        written.push(file.into_bytes());
    }
    (written, Kept { head: chain.head().expect("it has lines"), first: 0 })
}

fn checked(files: &[Vec<u8>], kept: Option<Kept>) -> Report {
    let names: Vec<String> = (0..files.len()).map(|n| format!("listed-{n:08}.jsonl")).collect();
    let sources: Vec<Source<'_>> =
        names.iter().zip(files).map(|(name, bytes)| Source { name, bytes }).collect();
    verify(&sources, kept, &[])
}

fn lines(file: &[u8]) -> Vec<Vec<u8>> {
    file.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn faults(report: &Report) -> Vec<String> {
    report.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn an_untouched_chain_is_intact() {
    let (files, kept) = written(&[3, 0, 5]);
    let report = checked(&files, Some(kept));
    assert!(report.is_intact(), "{:?}", report.findings);
    assert_eq!(
        (report.lines, report.first, report.head, report.after_kept),
        (11, Some(0), Some(kept.head), 0)
    );
    // Old files are deleted on purpose; what is kept says so.
    let rest = &files[1..];
    let later = Kept { first: 4, ..kept };
    assert!(checked(rest, None).is_intact() && checked(rest, Some(later)).is_intact());
    let report = checked(rest, Some(kept));
    assert_eq!(report.findings[0].fault, Fault::BeginningMissing(0, 3));
}

#[test]
fn findings_name_file_line_and_record() {
    let (files, kept) = written(&[3, 3]);
    let changed = |file: usize, change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut files = files.clone();
        let mut parts = lines(&files[file]);
        change(&mut parts);
        files[file] = parts.concat();
        faults(&checked(&files, Some(kept)))
    };
    let replace =
        |line: &[u8], from: &str, to: &str| String::from_utf8_lossy(line).replacen(from, to, 1).into_bytes();
    assert_eq!(
        changed(0, &|parts| drop(parts.remove(2))),
        ["listed-00000000.jsonl:3: records 2 to 2 are missing before this line"]
    );
    assert_eq!(
        changed(0, &|parts| parts[1] = replace(&parts[1], "1000", "1001")),
        ["listed-00000000.jsonl:2: record 1 was changed: its hash does not fit"]
    );
    let headless = changed(0, &|parts| drop(parts.remove(0)));
    assert!(headless[0].starts_with("listed-00000000.jsonl:1: the file does not begin with"), "{headless:?}");
    assert!(headless[1].contains("records 0 to 0 are missing at the beginning"), "{headless:?}");
    let swapped = changed(1, &|parts| parts.swap(1, 2));
    assert!(swapped[0].ends_with("jsonl:2: records 5 to 5 are missing before this line"), "{swapped:?}");
    assert!(
        swapped[1].ends_with("jsonl:3: record 5 is out of order: it was repeated or moved"),
        "{swapped:?}"
    );
    assert_eq!(
        changed(1, &|parts| parts.truncate(2)),
        ["listed-00000001.jsonl: records 6 to 7 are missing at the end"]
    );
    let cut = changed(1, &|parts| {
        let last = parts.last_mut().expect("a line");
        last.truncate(20);
    });
    assert!(cut[0].contains(":4: the last line is cut off after 20 bytes"), "{cut:?}");
    assert!(cut[1].ends_with("records 7 to 7 are missing at the end"), "{cut:?}");
    // Between files.
    let report = checked(&[files[0].clone(), written(&[2, 3]).0[1].clone()], None);
    assert!(!report.is_intact());
    let report = checked(&files[1..], Some(kept));
    assert_eq!(report.findings[0].fault, Fault::BeginningMissing(0, 3));
}

#[test]
fn an_unfinished_line_is_explained_by_the_next_file() {
    let mut chain = Chain::new("listed");
    let mut first = chain.open(0, 0, None).into_bytes();
    first.extend(b"{\"seq\":1,");
    let explained = chain.open(1, 9, None).into_bytes();
    assert!(checked(&[first.clone(), explained], None).is_intact());
    let mut chain = Chain::new("listed");
    chain.open(0, 0, None);
    let silent = chain.open(1, 0, None).into_bytes();
    assert_eq!(checked(&[first, silent], None).findings[0].fault, Fault::Torn(9));
}

#[test]
fn heads_that_were_kept_elsewhere_reveal_a_chain_that_was_written_anew() {
    let (files, kept) = written(&[5]);
    let mut chain = Chain::new("listed");
    let mut forged = chain.open(0, 0, None);
    for at_us in 1..=5 {
        forged.push_str(&chain.record(&Record::new(at_us, Event::Joined)));
    }
    let forged = Source { name: "x", bytes: forged.as_bytes() };
    assert!(verify(&[forged], None, &[]).is_intact(), "the chain alone does not tell");
    let report = verify(&[forged], None, &[kept.head]);
    assert_eq!(report.findings[0].fault, Fault::OtherHead(5));
    let real = Source { name: "x", bytes: &files[0] };
    assert!(verify(&[real], None, &[kept.head]).is_intact());
    let further = Head { seq: 9, ..kept.head };
    assert_eq!(verify(&[real], None, &[further]).findings[0].fault, Fault::EndMissing(6, 9));
}

#[test]
fn files_are_sorted_by_what_is_in_them() {
    let (files, _) = written(&[1, 1]);
    let other = Chain::new("other").open(0, 0, None).into_bytes();
    let source = |name, bytes| Source { name, bytes };
    let sources = [
        source("a", &files[1]),
        source("b", &other[..]),
        source("c", &files[0][..]),
        source("listed-1", b"x"),
    ];
    let chains = sorted(&sources);
    let names: Vec<(&str, Vec<&str>)> = chains
        .iter()
        .map(|(chain, files)| (chain.as_str(), files.iter().map(|file| file.name).collect()))
        .collect();
    assert_eq!(names, [("listed", vec!["c", "a", "listed-1"]), ("other", vec!["b"])]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn any_byte_that_is_changed_removed_or_added_is_found(
        sizes in vec(0_usize..4, 1..4), file: prop::sample::Index, at: prop::sample::Index, value: u8, how in 0..3,
    ) {
        let (mut files, kept) = written(&sizes);
        let before = files.clone();
        let file = file.index(files.len());
        let bytes = &mut files[file];
        let at = at.index(bytes.len());
        match how {
            0 => bytes[at] = value,
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, value),
        }
        let report = checked(&files, Some(kept));
        prop_assert_eq!(report.is_intact(), files == before, "{:?}", report.findings);
    }

    #[test]
    fn any_line_that_is_removed_repeated_or_moved_is_found(
        sizes in vec(0_usize..5, 1..4), from: prop::sample::Index, to: prop::sample::Index, how in 0..3,
    ) {
        let (files, kept) = written(&sizes);
        let mut all: Vec<(usize, Vec<u8>)> =
            files.iter().enumerate().flat_map(|(n, file)| lines(file).into_iter().map(move |line| (n, line))).collect();
        let (from, to) = (from.index(all.len()), to.index(all.len()));
        match how {
            0 => drop(all.remove(from)),
            1 => {
                let line = all[from].clone();
                all.insert(to, line);
            }
            _ => {
                let (a, b) = (all[from].1.clone(), all[to].1.clone());
                (all[from].1, all[to].1) = (b, a);
            }
        }
        let mut changed = vec![Vec::new(); files.len()];
        for (file, line) in all {
            changed[file].extend(line);
        }
        let report = checked(&changed, Some(kept));
        prop_assert_eq!(report.is_intact(), changed == files, "{:?}", report.findings);
    }

    #[test]
    fn any_cut_is_found(sizes in vec(0_usize..4, 1..4), file: prop::sample::Index, at: prop::sample::Index) {
        let (mut files, kept) = written(&sizes);
        let file = file.index(files.len());
        let at = at.index(files[file].len());
        files[file].truncate(at);
        prop_assert!(!checked(&files, Some(kept)).is_intact());
    }

    #[test]
    fn a_file_that_is_missing_or_moved_is_found(sizes in vec(0_usize..3, 2..5), which: prop::sample::Index) {
        let (mut files, kept) = written(&sizes);
        let which = which.index(files.len());
        let file = files.remove(which);
        prop_assert!(!checked(&files, Some(kept)).is_intact());
        files.push(file);
        let moved = which + 1 != files.len();
        prop_assert_eq!(checked(&files, Some(kept)).is_intact(), !moved);
    }
}

/// The file was made by another program: what the documents say is enough to write one.
#[test]
fn another_program_computes_the_same_hashes() {
    let bytes = include_bytes!("../../../fuzz/seeds/audit/intact");
    let report = verify(&[Source { name: "intact", bytes }], None, &[]);
    assert!(report.is_intact() && report.lines == 5, "{:?}", report.findings);
}
