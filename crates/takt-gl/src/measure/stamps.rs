//! Time stamps of the GPU around groups (`GL_EXT_disjoint_timer_query`).
//!
//! Stamps are queries that occupy no target, so those that the program has begun go on. A query
//! belongs to its context, so only a thread in which that is current can read it: results are
//! fetched at the context's next submission points, and only those that are there already.
//!
//! On GPUs that take turns between processes within a group, its stamps include the others' turns.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use super::time_source::Judge;
use crate::entry::{Id, Ptr, real};
use crate::gl;

const EXTENSION: &str = "GL_EXT_disjoint_timer_query";

/// Groups whose stamps were not read yet; beyond this, groups get none.
const WAITING_MAX: usize = 32;

/// When the GPU began and ended a group, by its own clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamps {
    begin_ns: u64,
    end_ns: u64,
    /// The bits that the clock has.
    mask: u64,
}

impl Stamps {
    pub(crate) fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// From the group's begin to its end, or from the end before it if that came later.
    pub(crate) fn cost_ns(&self, last_end_ns: Option<u64>) -> u64 {
        let since_begin = |at_ns: u64| at_ns.wrapping_sub(self.begin_ns) & self.mask;
        let all_ns = since_begin(self.end_ns);
        match last_end_ns.map(since_begin) {
            Some(others_ns) if others_ns <= all_ns => all_ns - others_ns,
            _ => all_ns,
        }
    }
}

/// Where stamps of a group will be: nothing yet, none that are worth anything, or stamps.
#[derive(Clone, Debug)]
pub struct Stamped {
    pub(crate) judge: Arc<Judge>,
    cell: Cell,
}

type Cell = Arc<OnceLock<Option<Stamps>>>;

/// What became of a group's stamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// They may still come.
    Awaited,
    /// They will never be read.
    Lost,
    /// The GPU's clock jumped.
    Disjoint,
    /// They are here.
    Known(Stamps),
}

impl Stamped {
    pub(crate) fn fate(&self) -> Fate {
        // The context holds the other end; asked first, because it writes before it drops its end.
        let held = Arc::strong_count(&self.cell) > 1;
        match self.cell.get() {
            Some(Some(stamps)) => Fate::Known(*stamps),
            Some(None) => Fate::Disjoint,
            None if held => Fate::Awaited,
            None => Fate::Lost,
        }
    }
}

/// The time stamps of a context. All calls need it to be current.
#[derive(Debug)]
pub(crate) struct Stamper {
    judge: Arc<Judge>,
    mask: u64,
    spare: Vec<u32>,
    begun: Option<u32>,
    waiting: VecDeque<Waiting>,
}

/// What came of looking for stamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Collected {
    /// GL said that the clock has jumped, which it says only once.
    pub(crate) disjoint: bool,
    /// Whether more stamps are of use. If not, all queries are gone.
    pub(crate) useful: bool,
}

#[derive(Debug)]
struct Waiting {
    begin: u32,
    end: u32,
    cell: Cell,
}

impl Stamper {
    /// A stamper, if the driver has time stamps and they are of use.
    pub(crate) fn new(judge: Arc<Judge>, extensions: &[String]) -> Option<Self> {
        let calls = [
            Id::glGenQueriesEXT,
            Id::glDeleteQueriesEXT,
            Id::glQueryCounterEXT,
            Id::glGetQueryivEXT,
            Id::glGetQueryObjectuivEXT,
            Id::glGetQueryObjectui64vEXT,
        ];
        let offered = extensions.iter().any(|name| name == EXTENSION);
        let mut bits = 0_i32;
        if offered && calls.into_iter().all(Id::is_there) {
            // SAFETY: the extension is there; one number is written.
            unsafe {
                real::glGetQueryivEXT(gl::TIMESTAMP_EXT, gl::QUERY_COUNTER_BITS_EXT, (&raw mut bits).cast())
            };
        }
        let mask = match u32::try_from(bits) {
            Ok(1..64) => (1 << bits) - 1,
            Ok(64..) => u64::MAX,
            _ => {
                judge.has_no_timer();
                return None;
            }
        };
        let (spare, waiting) = (Vec::new(), VecDeque::new());
        judge.wants_stamps().then_some(Self { judge, mask, spare, begun: None, waiting })
    }

    /// The first command of a group comes next; later ones change nothing.
    pub(crate) fn begin(&mut self) {
        if self.begun.is_none() && self.waiting.len() < WAITING_MAX {
            self.begun = self.stamp();
        }
    }

    /// The last command of the group is behind.
    pub(crate) fn end(&mut self) -> Option<Stamped> {
        let begin = self.begun.take()?;
        let Some(end) = self.stamp() else {
            self.spare.push(begin);
            return None;
        };
        let cell = Arc::new(OnceLock::new());
        self.waiting.push_back(Waiting { begin, end, cell: cell.clone() });
        Some(Stamped { judge: self.judge.clone(), cell })
    }

    /// There was no group after all.
    pub(crate) fn forget(&mut self) {
        self.spare.extend(self.begun.take());
    }

    /// Reads the stamps that are there.
    pub(crate) fn collect(&mut self) -> Collected {
        let mut disjoint = false;
        while let Some(first) = self.waiting.front() {
            if !is_available(first.end) {
                break;
            }
            let (begin_ns, end_ns) = (result(first.begin), result(first.end));
            let stamps = Stamps { begin_ns, end_ns, mask: self.mask };
            let jumped = is_disjoint();
            disjoint |= jumped;
            // When it jumped is unknown: all stamps that were on their way are worthless.
            let count = if jumped { self.waiting.len() } else { 1 };
            for Waiting { begin, end, cell } in self.waiting.drain(..count) {
                // Only this stamper writes there.
                let _empty = cell.set((!jumped).then_some(stamps));
                self.spare.extend([begin, end]);
            }
        }
        let useful = self.judge.wants_stamps();
        if !useful {
            self.delete();
        }
        Collected { disjoint, useful }
    }

    fn stamp(&mut self) -> Option<u32> {
        let query = self.spare.pop().or_else(new_query)?;
        // SAFETY: the context is current and the query is ours.
        unsafe { real::glQueryCounterEXT(query, gl::TIMESTAMP_EXT) };
        Some(query)
    }

    fn delete(&mut self) {
        self.forget();
        let mut queries = std::mem::take(&mut self.spare);
        queries.extend(self.waiting.drain(..).flat_map(|waiting| [waiting.begin, waiting.end]));
        let count = i32::try_from(queries.len()).unwrap_or(0);
        let list: Ptr = queries.as_mut_ptr().cast();
        // SAFETY: the context is current, and the list holds so many names of ours.
        unsafe { real::glDeleteQueriesEXT(count, list) };
    }
}

fn new_query() -> Option<u32> {
    let mut query = 0_u32;
    // SAFETY: the context is current; one number is written.
    unsafe { real::glGenQueriesEXT(1, (&raw mut query).cast()) };
    (query != 0).then_some(query)
}

fn is_available(query: u32) -> bool {
    let mut there = 0_u32;
    // SAFETY: the context is current; one number is written.
    unsafe { real::glGetQueryObjectuivEXT(query, gl::QUERY_RESULT_AVAILABLE, (&raw mut there).cast()) };
    there != 0
}

fn result(query: u32) -> u64 {
    let mut ns = 0_u64;
    // SAFETY: the context is current; one number of 64 bits is written.
    unsafe { real::glGetQueryObjectui64vEXT(query, gl::QUERY_RESULT, (&raw mut ns).cast()) };
    ns
}

fn is_disjoint() -> bool {
    let mut disjoint = 0_i32;
    // SAFETY: the extension is there; one number is written.
    unsafe { real::glGetIntegerv(gl::GPU_DISJOINT_EXT, (&raw mut disjoint).cast()) };
    disjoint != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(begin_ns: u64, end_ns: u64) -> Stamps {
        Stamps { begin_ns, end_ns, mask: u64::MAX }
    }

    #[test]
    fn time_before_the_last_end_belongs_to_others() {
        assert_eq!(stamps(100, 150).cost_ns(None), 50);
        assert_eq!(stamps(100, 150).cost_ns(Some(90)), 50);
        assert_eq!(stamps(100, 150).cost_ns(Some(120)), 30);
        assert_eq!(stamps(100, 150).cost_ns(Some(900)), 50, "another clock");
    }

    #[test]
    fn clocks_may_start_over() {
        let wrapped = Stamps { begin_ns: 0xff_fff0, end_ns: 0x10, mask: 0xff_ffff };
        assert_eq!(wrapped.cost_ns(None), 0x20);
        assert_eq!(wrapped.cost_ns(Some(0)), 0x10);
    }

    #[test]
    fn stamps_without_a_reader_are_lost() {
        let judge = Judge::of("a GPU of this test", "", None);
        let cell = Arc::new(OnceLock::new());
        let stamped = Stamped { judge, cell: cell.clone() };
        assert_eq!(stamped.fate(), Fate::Awaited);
        drop(cell);
        assert_eq!(stamped.fate(), Fate::Lost);
    }
}
