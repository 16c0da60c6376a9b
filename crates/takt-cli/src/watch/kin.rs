//! The processes of a program: itself, what it starts, and what remains of those when the ones between have ended.
//!
//! Launchers end, daemons leave their parents, and the kernel then gives their children to another process. What
//! `takt run` starts is marked by its environment, so it is known all the same.

use std::collections::{BTreeMap, HashSet};
use std::fs;

/// A process of all times: the kernel uses numbers again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Process {
    number: u32,
    /// When it began, in ticks since the start of the system.
    began: u64,
}

/// What the kernel says of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stat {
    parent: u32,
    began: u64,
    /// It has ended, and its parent has not asked how.
    ended: bool,
}

/// All processes, by their numbers.
type All = BTreeMap<u32, Stat>;

/// The processes of a program, as far as they were seen.
#[derive(Debug)]
pub(crate) struct Kin {
    /// The program itself.
    root: u32,
    /// A variable that all of them have in their environments, as `NAME=VALUE`.
    mark: Option<String>,
    /// What the program starts does not count.
    alone: bool,
    members: HashSet<Process>,
    strangers: HashSet<Process>,
}

impl Kin {
    /// Those of a program that runs.
    pub(crate) fn of(root: u32) -> Self {
        let began = stat(root).map(|stat| Process { number: root, began: stat.began });
        Self {
            root,
            mark: None,
            alone: false,
            members: began.into_iter().collect(),
            strangers: HashSet::new(),
        }
    }

    /// The same where all of them have that variable.
    pub(crate) fn marked(self, mark: String) -> Self {
        Self { mark: Some(mark), ..self }
    }

    /// The program itself alone.
    pub(crate) fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    /// The program itself, which may have ended.
    pub(crate) fn root(&self) -> u32 {
        self.root
    }

    /// Those that live now, by their numbers; the program itself is the first, if it lives.
    pub(crate) fn look(&mut self) -> Vec<u32> {
        let all = processes();
        let is_there =
            |process: &Process| all.get(&process.number).is_some_and(|stat| stat.began == process.began);
        self.members.retain(is_there);
        self.strangers.retain(is_there);
        if !self.alone {
            self.take_marked(&all);
            self.take_children(&all);
        }
        let lives = |number: &u32| all.get(number).is_some_and(|stat| !stat.ended);
        let mut living: Vec<u32> = self.members.iter().map(|member| member.number).filter(lives).collect();
        living.sort_unstable_by_key(|number| (*number != self.root, *number));
        living
    }

    /// Those that have the mark, whatever became of their ancestors. Each process is asked once.
    fn take_marked(&mut self, all: &All) {
        let Some(mark) = self.mark.as_deref().map(str::as_bytes) else {
            return;
        };
        for (number, stat) in all {
            let process = Process { number: *number, began: stat.began };
            if self.members.contains(&process) || self.strangers.contains(&process) {
                continue;
            }
            let environment = fs::read(format!("/proc/{number}/environ"));
            if environment.as_ref().is_ok_and(Vec::is_empty) {
                // It has none, or is about to become another program.
                continue;
            }
            let environment = environment.unwrap_or_default();
            let is_ours = environment.split(|byte| *byte == 0).any(|variable| variable == mark);
            // The process that looks was copied from one that may have been started by another `takt run`.
            let known = if is_ours && *number != std::process::id() {
                &mut self.members
            } else {
                &mut self.strangers
            };
            known.insert(process);
        }
    }

    /// All that they have started.
    fn take_children(&mut self, all: &All) {
        let mut children: BTreeMap<u32, Vec<Process>> = BTreeMap::new();
        for (number, stat) in all {
            let process = Process { number: *number, began: stat.began };
            children.entry(stat.parent).or_default().push(process);
        }
        let mut parents: Vec<u32> = self.members.iter().map(|member| member.number).collect();
        // The process that looks begins as a child of the program, and must not wait for itself.
        let is_other = |child: &Process| child.number != std::process::id();
        while let Some(parent) = parents.pop() {
            for child in children.remove(&parent).unwrap_or_default().into_iter().filter(is_other) {
                parents.push(child.number);
                self.strangers.remove(&child);
                self.members.insert(child);
            }
        }
    }
}

fn processes() -> All {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|number| Some((number, stat(number)?))).collect()
}

fn stat(number: u32) -> Option<Stat> {
    read(&fs::read_to_string(format!("/proc/{number}/stat")).ok()?)
}

/// Reads a line of the kernel. The name in it may contain anything, brackets too.
fn read(line: &str) -> Option<Stat> {
    let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
    // After seventeen others.
    let began = fields.nth(17)?.parse().ok()?;
    Some(Stat { parent, began, ended: ["Z", "X"].contains(&state) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn lines_of_the_kernel_are_read() {
        let line = "7 (a (b) c) S 1 7 7 0 -1 4194560 0 0 0 0 11 12 13 14 20 0 1 0 1234 5 6";
        assert_eq!(read(line), Some(Stat { parent: 1, began: 1234, ended: false }));
        let line = line.replace(" S 1", " Z 2");
        assert_eq!(read(&line), Some(Stat { parent: 2, began: 1234, ended: true }));
        assert_eq!(read("7 (a) S"), None);
    }

    #[test]
    fn children_are_kin_and_the_ended_are_not() {
        let own = std::process::id();
        let mut child = Command::new("sleep").arg("600").spawn().expect("it starts");
        let mut kin = Kin::of(own);
        let found = kin.look();
        assert_eq!(found[0], own);
        assert!(found.contains(&child.id()), "{found:?}");
        assert_eq!(Kin::of(own).alone().look(), [own]);
        child.kill().expect("it runs");
        // It has ended, but its number is kept for the status.
        child.wait().expect("it ends");
        assert!(!kin.look().contains(&child.id()));
    }

    #[test]
    fn the_children_of_a_launcher_that_has_ended_are_known_by_their_mark() {
        let mark = format!("TAKT_TEST_KIN={}", std::process::id());
        let (name, value) = mark.split_once('=').expect("a variable");
        let mut launcher = Command::new("sh")
            .args(["-c", "sleep 600 >/dev/null & echo $!"])
            .env(name, value)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        BufReader::new(launcher.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let left: u32 = line.trim().parse().expect("a number");
        let root = launcher.id();
        launcher.wait().expect("it ends");
        let mut kin = Kin::of(root).marked(mark.clone());
        // It may be becoming another program just now.
        while kin.look() != [left] {
            assert!(
                Command::new("kill").args(["-0", &left.to_string()]).status().expect("it starts").success()
            );
        }
        assert_eq!(Kin::of(root).look(), [0; 0], "nothing else tells");
        let order = format!("kill {left}");
        assert!(Command::new("sh").args(["-c", &order]).status().expect("a shell").success());
    }
}
