//! What a training has measured so far, on disk.
//!
//! ```text
//! takt-training 1
//! gpu llvmpipe (LLVM 15.0.6, 256 bits)
//! driver OpenGL ES 3.2 Mesa 22.3.6
//! plan 340 0123456789abcdef
//! 0 12.25 89abcdef
//! 1 - 76543210
//! ```
//!
//! A line per job: its number, nanoseconds or `-` for a program that the driver refused, and a hash
//! of both. Lines are appended as jobs end, so a training that is killed loses the job at hand.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use takt_predict::store;

use super::Plan;

/// How a training begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Begun {
    /// From nothing.
    New,
    /// With so many jobs done before.
    Resumed {
        /// How many.
        jobs: usize,
    },
    /// From nothing, though there is a file: why it is of no use.
    Anew(String),
    /// With what came before a line that is damaged.
    Damaged {
        /// Which line, from 1.
        line: usize,
        /// Jobs before it.
        jobs: usize,
    },
}

/// See the module.
#[derive(Debug)]
pub struct Checkpoint {
    file: File,
    done: BTreeMap<usize, Option<f64>>,
}

impl Checkpoint {
    /// Opens what an earlier training of the same plan has left, or begins a new file.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, or another training is at it.
    pub fn open(path: &Path, gpu: &str, driver: &str, plan: &Plan) -> io::Result<(Self, Begun)> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let text = "another training is at work there; wait until it ends";
                return Err(io::Error::new(ErrorKind::ResourceBusy, text));
            }
            // Not every file system has locks.
            Err(TryLockError::Error(_)) => {}
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let header = header(gpu, driver, plan);
        let text = String::from_utf8_lossy(&bytes);
        let (done, whole, begun) = read(&text, &header, plan.jobs());
        // What is left of a damaged file ends where its damage begins.
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        if whole == 0 {
            file.write_all(header.as_bytes())?;
        }
        Ok((Self { file, done }, begun))
    }

    /// What a job has given; `Some(None)` if the driver refused its program.
    pub fn get(&self, job: usize) -> Option<Option<f64>> {
        self.done.get(&job).copied()
    }

    /// Jobs whose programs the driver refused.
    pub fn refused(&self) -> usize {
        self.done.values().filter(|measured| measured.is_none()).count()
    }

    pub(super) fn add(&mut self, job: usize, measured: Option<f64>) -> io::Result<()> {
        self.file.write_all(line(job, measured).as_bytes())?;
        self.done.insert(job, measured);
        Ok(())
    }
}

fn header(gpu: &str, driver: &str, plan: &Plan) -> String {
    let [gpu, driver] = [gpu, driver].map(|name| name.replace(char::is_control, "_"));
    let (jobs, fingerprint) = (plan.jobs(), plan.fingerprint());
    format!("takt-training 1\ngpu {gpu}\ndriver {driver}\nplan {jobs} {fingerprint:016x}\n")
}

fn line(job: usize, measured: Option<f64>) -> String {
    let value = measured.map_or_else(|| "-".to_owned(), |ns| ns.to_string());
    let body = format!("{job} {value}");
    let sum = store::sum(&body) >> 32;
    format!("{body} {sum:08x}\n")
}

type Done = BTreeMap<usize, Option<f64>>;

/// Jobs of a file, how many of its bytes are good, and what to say about it.
fn read(text: &str, header: &str, jobs: usize) -> (Done, usize, Begun) {
    let mut done = Done::new();
    if text.is_empty() {
        return (done, 0, Begun::New);
    }
    let Some(body) = text.strip_prefix(header) else {
        let reason = if text.starts_with("takt-training 1\n") {
            "it belongs to another plan or driver"
        } else {
            "it is damaged at its beginning"
        };
        return (done, 0, Begun::Anew(reason.to_owned()));
    };
    let mut whole = header.len();
    for (number, text) in body.split_inclusive('\n').enumerate() {
        let Some((job, measured)) = parse(text).filter(|(job, _)| *job < jobs) else {
            // A line without its end is what a killed training leaves.
            if text.ends_with('\n') {
                let (line, jobs) = (header.lines().count() + number + 1, done.len());
                return (done, whole, Begun::Damaged { line, jobs });
            }
            break;
        };
        done.insert(job, measured);
        whole += text.len();
    }
    let jobs = done.len();
    (done, whole, if jobs == 0 { Begun::New } else { Begun::Resumed { jobs } })
}

fn parse(text: &str) -> Option<(usize, Option<f64>)> {
    let mut words = text.split(' ');
    let job = words.next()?.parse().ok()?;
    let measured = match words.next()? {
        "-" => None,
        ns => Some(ns.parse().ok().filter(|ns: &f64| ns.is_finite())?),
    };
    (line(job, measured) == text).then_some((job, measured))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: &str = "takt-training 1\ngpu g\ndriver d\nplan 10 0\n";

    fn file() -> String {
        HEADER.to_owned() + &line(0, Some(1.5)) + &line(1, None) + &line(2, Some(0.1))
    }

    #[test]
    fn jobs_are_read_as_they_were_written() {
        let (done, whole, begun) = read(&file(), HEADER, 10);
        assert_eq!(done, Done::from([(0, Some(1.5)), (1, None), (2, Some(0.1))]));
        assert_eq!((whole, begun), (file().len(), Begun::Resumed { jobs: 3 }));
        assert_eq!(read("", HEADER, 10).2, Begun::New);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let other = read(&file(), &HEADER.replace("plan 10", "plan 11"), 11);
        assert_eq!((other.1, other.2), (0, Begun::Anew("it belongs to another plan or driver".to_owned())));
        let nonsense = read("nonsense", HEADER, 10);
        assert_eq!(nonsense.2, Begun::Anew("it is damaged at its beginning".to_owned()));
        let damaged = read(&file().replace("\n1 - ", "\n1 7 "), HEADER, 10);
        assert_eq!(damaged.2, Begun::Damaged { line: 6, jobs: 1 });
        let too_few = read(&file(), HEADER, 2);
        assert_eq!(too_few.2, Begun::Damaged { line: 7, jobs: 2 });
    }

    proptest! {
        #[test]
        fn a_file_that_was_cut_anywhere_keeps_its_whole_lines(cut in 0..file().len()) {
            let text = &file()[..cut];
            let (done, whole, begun) = read(text, HEADER, 10);
            if cut >= HEADER.len() {
                prop_assert_eq!(done.len(), text[HEADER.len()..].matches('\n').count());
                prop_assert_eq!(whole, text.rfind('\n').map_or(0, |end| end + 1));
                prop_assert!(begun == Begun::New || begun == Begun::Resumed { jobs: done.len() }, "{:?}", begun);
            } else {
                prop_assert!(done.is_empty() && whole == 0);
            }
        }
    }
}
