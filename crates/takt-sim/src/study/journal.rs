//! The journal: finished jobs, one line each, in the order in which they were finished.
//!
//! A line holds the number of a job, its cells and a checksum, separated by tabs. The first line
//! says which study and which part of it the others belong to. Lines are only ever appended, so a
//! program that is killed leaves whole lines and at most one torn one, which has no line feed and
//! counts as not written.
//!
//! Numbers are written so that reading gives the same bits: results do not depend on whether they
//! went through a journal.

use super::table::Cell;
use super::{Shard, Study, fnv1a};

/// First word of a journal, with the version of its format.
const MAGIC: &str = "takt-sweep-1";

/// Whose journal it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// Name of the study.
    pub study: String,
    /// [`Study::fingerprint`].
    pub fingerprint: u64,
    /// Number of jobs in the whole study.
    pub jobs: u64,
    /// Which part of them the journal is for.
    pub shard: Shard,
}

/// What a journal says.
#[derive(Clone, PartialEq, Debug)]
pub struct Journal {
    /// Whose it is; `None` if not even that was written.
    pub header: Option<Header>,
    /// Jobs and their cells.
    pub entries: Vec<(u64, Vec<Cell>)>,
    /// Bytes up to the end of the last whole line: what follows is torn.
    pub whole_bytes: usize,
}

/// A line that cannot have been written by a program that was merely killed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct Damage {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl Header {
    /// That of a part of `study`.
    pub fn new(study: &Study, shard: Shard) -> Self {
        Self { study: study.name.clone(), fingerprint: study.fingerprint, jobs: study.jobs(), shard }
    }

    /// The first line of a journal, line feed included.
    pub fn line(&self) -> String {
        let Self { study, fingerprint, jobs, shard } = self;
        sealed(&format!("{MAGIC}\t{study}\t{fingerprint:016x}\t{jobs}\t{shard}"))
    }

    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        let header = (fields.next()? == MAGIC).then(|| {
            Some(Self {
                study: fields.next()?.to_owned(),
                fingerprint: u64::from_str_radix(fields.next()?, 16).ok()?,
                jobs: fields.next()?.parse().ok()?,
                shard: fields.next()?.parse().ok()?,
            })
        });
        header.flatten().filter(|_| fields.next().is_none())
    }
}

/// The line of a finished job, line feed included.
pub fn entry(job: u64, cells: &[Cell]) -> String {
    let cells: Vec<String> = cells.iter().map(written).collect();
    sealed(&format!("{job}\t{}", cells.join("\t")))
}

/// Reads a journal.
///
/// # Errors
///
/// A line that is whole, but does not say what a program wrote.
pub fn read(bytes: &[u8]) -> Result<Journal, Damage> {
    let whole_bytes = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let damage = |index: usize, problem| Damage { line: index + 1, problem };
    let mut journal = Journal { header: None, entries: Vec::new(), whole_bytes };
    let lines = bytes.get(..whole_bytes).unwrap_or_default().split(|byte| *byte == b'\n');
    for (index, line) in lines.enumerate() {
        // Behind the last line feed there is nothing.
        if line.is_empty() {
            continue;
        }
        let line = std::str::from_utf8(line).ok().and_then(unsealed);
        let line = line.ok_or_else(|| damage(index, "the checksum does not match"))?;
        if index == 0 {
            let header =
                Header::read(line).ok_or_else(|| damage(index, "this is no journal of takt sweep"))?;
            journal.header = Some(header);
        } else {
            journal
                .entries
                .push(read_entry(line).ok_or_else(|| damage(index, "this is no result of a job"))?);
        }
    }
    Ok(journal)
}

fn read_entry(line: &str) -> Option<(u64, Vec<Cell>)> {
    let (job, cells) = line.split_once('\t')?;
    Some((job.parse().ok()?, cells.split('\t').map(read_cell).collect::<Option<_>>()?))
}

fn written(cell: &Cell) -> String {
    match cell {
        Cell::Null => "-".to_owned(),
        Cell::Int(value) => format!("i{value}"),
        Cell::Float(value) => format!("f{value:?}"),
        Cell::Text(text) => {
            let escaped = text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n");
            format!("t{escaped}")
        }
    }
}

fn read_cell(text: &str) -> Option<Cell> {
    let rest = text.get(1..)?;
    match text.get(..1)? {
        "-" if rest.is_empty() => Some(Cell::Null),
        "i" => rest.parse().ok().map(Cell::Int),
        "f" => rest.parse().ok().map(Cell::Float),
        "t" => unescaped(rest).map(Cell::Text),
        _ => None,
    }
}

fn unescaped(text: &str) -> Option<String> {
    let mut chars = text.chars();
    let mut out = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next()? {
                '\\' => '\\',
                't' => '\t',
                'n' => '\n',
                _ => return None,
            },
            c => c,
        });
    }
    Some(out)
}

fn sealed(content: &str) -> String {
    format!("{content}\t{:016x}\n", fnv1a(&[content]))
}

fn unsealed(line: &str) -> Option<&str> {
    let (content, seal) = line.rsplit_once('\t')?;
    (u64::from_str_radix(seal, 16).ok()? == fnv1a(&[content])).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> Header {
        Header { study: "s".to_owned(), fingerprint: 7, jobs: 9, shard: Shard { part: 2, of: 3 } }
    }

    fn cells() -> Vec<Cell> {
        vec![
            Cell::Null,
            Cell::Int(i64::MIN),
            Cell::Float(0.1 + 0.2),
            Cell::Float(-0.0),
            Cell::Float(f64::INFINITY),
            Cell::Text("a\tb\\n\nü".to_owned()),
            Cell::Text(String::new()),
        ]
    }

    #[test]
    fn what_was_written_is_read() {
        let text = header().line() + &entry(4, &cells()) + &entry(1, &[Cell::Float(1e-300)]);
        let journal = read(text.as_bytes()).unwrap();
        assert_eq!(journal.header, Some(header()));
        assert_eq!(journal.entries, [(4, cells()), (1, vec![Cell::Float(1e-300)])]);
        assert_eq!(journal.whole_bytes, text.len());
    }

    #[test]
    fn a_torn_line_counts_as_not_written() {
        let whole = header().line() + &entry(4, &cells());
        let text = whole.clone() + &entry(5, &cells());
        for cut in whole.len()..text.len() {
            let journal = read(&text.as_bytes()[..cut]).unwrap();
            assert_eq!((journal.entries.len(), journal.whole_bytes), (1, whole.len()));
        }
        for cut in 0..header().line().len() {
            let journal = read(&text.as_bytes()[..cut]).unwrap();
            assert_eq!((journal.header, journal.whole_bytes), (None, 0));
        }
    }

    #[test]
    fn damage_is_not_a_torn_line() {
        let text = header().line() + &entry(4, &cells()) + &entry(5, &cells());
        let wrong = text.replacen("i-", "i", 1);
        assert_eq!(read(wrong.as_bytes()).unwrap_err().to_string(), "line 2: the checksum does not match");
        assert_eq!(read(b"a,b\n").unwrap_err().line, 1);
        assert_eq!(
            read(sealed("something\telse").as_bytes()).unwrap_err().problem,
            "this is no journal of takt sweep"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _either = read(&bytes);
        }

        #[test]
        fn floats_keep_their_bits(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(!value.is_nan());
            let Some(Cell::Float(back)) = read_cell(&written(&Cell::Float(value))) else { panic!() };
            prop_assert_eq!(back.to_bits(), bits);
        }
    }
}
