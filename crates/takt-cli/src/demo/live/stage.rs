//! Where real programs play: processes without a window, with a daemon or without.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use takt_trace::Summary;
use takt_trace::frames::{self, Frame, Window};

use super::cast::Role;
use super::load::{Foreign, Load};
use crate::{output, replay};

/// How programs are started.
#[derive(Debug)]
pub(crate) struct Stage {
    /// The folder of the programs.
    programs: PathBuf,
    /// This command.
    takt: PathBuf,
    /// Configuration of the daemon.
    config: Option<PathBuf>,
}

/// How often a measurement is tried.
const TRIES: usize = 3;
/// Frames of a measurement.
const FRAMES: &str = "40";
/// Frames before anything is measured: drivers compile, predictions settle.
const WARM_UP: &str = "5";
/// Time from the first frame of the last program to begin to the first moment that is judged.
const LEAD: Duration = Duration::from_millis(1_500);
/// Time after the last one, for programs that begin later than others.
const TAIL: Duration = Duration::from_millis(1_500);
/// How long programs may take to end, or the daemon to begin.
const PATIENCE: Duration = Duration::from_secs(20);

/// The daemon's log.
const RECORD: &str = "daemon.jsonl";

/// A process that does not outlive us.
struct Guarded(Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        // Ended already, perhaps.
        self.0.kill().unwrap_or_default();
        self.0.wait().ok();
    }
}

/// What a run left behind.
pub(crate) struct Played {
    /// What is to be judged.
    pub(crate) window: Window,
    /// The frames of each role, in the order of roles.
    pub(crate) frames: Vec<Vec<Frame>>,
    /// What Takt said in the programs.
    pub(crate) said: Vec<String>,
    /// What the daemon's log says about them.
    pub(crate) log: Option<Summary>,
    /// What other programs did meanwhile.
    pub(crate) foreign: Foreign,
}

impl Stage {
    /// Finds the programs, beside this command or where they are installed.
    pub(crate) fn find(config: Option<&Path>) -> anyhow::Result<Self> {
        let takt = std::env::current_exe().context("cannot tell where the takt command lies")?;
        let here = takt.parent().unwrap_or_else(|| Path::new("/")).to_owned();
        let places = [here.clone(), here.join("../lib/takt")];
        let Some(programs) = places.into_iter().find(|place| place.join("takt-flood").is_file()) else {
            bail!("the apps are not beside {} (`make apps` builds them)", takt.display());
        };
        let config = config.map(std::path::absolute).transpose()?;
        Ok(Self { programs, takt, config })
    }

    /// Runs a program alone and gives what it says of itself. A busy machine can spoil the search for
    /// a load, so it is tried more than once.
    pub(crate) fn measure(&self, program: &str, arguments: &[String]) -> anyhow::Result<Value> {
        let mut tries = (1..TRIES).map(|_| self.measure_once(program, arguments));
        tries.find(Result::is_ok).unwrap_or_else(|| self.measure_once(program, arguments))
    }

    fn measure_once(&self, program: &str, arguments: &[String]) -> anyhow::Result<Value> {
        let mut command = Command::new(self.programs.join(program));
        command.args(["--frames", FRAMES, "--warm-up", WARM_UP, "--fps", "0"]).args(arguments);
        let answer = software(&mut command).output().with_context(|| format!("{program} does not start"))?;
        if !answer.status.success() {
            let said = String::from_utf8_lossy(&answer.stderr);
            bail!("{}", said.trim().trim_end_matches('.'));
        }
        let text = String::from_utf8_lossy(&answer.stdout);
        let facts = text.lines().next().unwrap_or_default();
        serde_json::from_str(facts).with_context(|| format!("{program} says no JSON: {facts}"))
    }

    /// Plays all roles at once for so long, under a daemon of their own or without one. What they
    /// write goes to `folder`; `tick` is called about ten times a second.
    pub(crate) fn play(
        &self,
        roles: &[Role],
        scheduled: bool,
        length: Duration,
        folder: &Path,
        tick: &mut dyn FnMut(),
    ) -> anyhow::Result<Played> {
        std::fs::create_dir_all(folder).with_context(|| output::cannot_write(folder))?;
        let before = Load::now();
        let socket = std::path::absolute(folder.join("socket"))?;
        let daemon = scheduled.then(|| self.serve(&socket, folder)).transpose()?;
        let total = LEAD + length + TAIL;
        let mut programs = Vec::new();
        for role in roles {
            let mut command = self.command(role, scheduled.then_some(&socket));
            command.arg("--seconds").arg(total.as_secs_f64().to_string());
            command.arg("--frame-log").arg(log(folder, role));
            software(&mut command);
            command.stdout(create(&folder.join(format!("{}.json", role.name)))?);
            command.stderr(create(&errors(folder, role))?);
            let child = command.spawn().with_context(|| format!("{} does not start", role.program))?;
            programs.push(Guarded(child));
        }
        self.wait(&mut programs, roles, folder, total, tick)?;
        let (mut all, mut said) = (Vec::new(), Vec::new());
        for role in roles {
            let path = log(folder, role);
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("{} left no {}", role.name, path.display()))?;
            let frames =
                frames::parse(&text).map_err(|problem| anyhow::anyhow!("{}: {problem}", path.display()))?;
            all.push(frames);
            let errors = std::fs::read_to_string(errors(folder, role)).unwrap_or_default();
            let ours = errors.lines().filter_map(|line| line.strip_prefix("takt: "));
            said.extend(ours.map(|line| format!("{}: {line}", role.name)));
        }
        let both = roles.iter().zip(&all);
        let paced: Vec<&[Frame]> =
            both.filter(|(role, _)| !role.is_flood()).map(|(_, frames)| &frames[..]).collect();
        let window =
            common_window(&paced, length).context("a program drew nothing; is the machine too busy?")?;
        // Its log ends with it, perhaps in the middle of a line.
        let log = daemon.map(|daemon| {
            drop(daemon);
            replay::figures(&folder.join(RECORD), LEAD)
        });
        drop(programs);
        let foreign = Load::now().foreign_since(&before);
        Ok(Played { window, frames: all, said, log: log.transpose()?, foreign })
    }

    /// Draws one frame of a role again, into a file, with sides so many times shorter.
    pub(crate) fn draw(&self, role: &Role, frame: u64, shrink: u32, file: &Path) -> anyhow::Result<()> {
        let mut command = Command::new(self.programs.join(role.program));
        let size = role.size().map(|[width, height]| format!("{}x{}", width / shrink, height / shrink));
        command.args(["--frames", "1", "--first-frame", &frame.to_string(), "--dump-frame"]);
        command.args([&frame.to_string(), "--dump"]).arg(file).args(["--size", &size.unwrap_or_default()]);
        let answer =
            software(&mut command).output().with_context(|| format!("{} does not start", role.name))?;
        if !answer.status.success() {
            bail!("{}", String::from_utf8_lossy(&answer.stderr).trim());
        }
        Ok(())
    }

    /// A role as a command, without or with Takt underneath.
    fn command(&self, role: &Role, socket: Option<&PathBuf>) -> Command {
        let program = self.programs.join(role.program);
        let mut command = match socket {
            None => Command::new(program),
            Some(socket) => {
                let mut command = Command::new(&self.takt);
                command.args(["run", "--name", &role.name, "--priority", &role.priority.to_string()]);
                if role.fps > 0.0 {
                    command.args(["--fps", &role.fps.to_string()]);
                }
                if let Some(etpf_ms) = role.etpf_ms() {
                    command.args(["--etpf-ms", &format!("{etpf_ms:.3}")]);
                }
                command.arg("--socket").arg(socket).arg("--").arg(program);
                command
            }
        };
        command.args(["--fps", &role.fps.to_string(), "--warm-up", WARM_UP]).args(&role.arguments);
        // Takt holds swaps back until the next frame may begin.
        if socket.is_some() && role.fps > 0.0 {
            command.args(["--pace", "swap"]);
        }
        command
    }

    fn serve(&self, socket: &Path, folder: &Path) -> anyhow::Result<Guarded> {
        let mut command = Command::new(&self.takt);
        command.arg("serve").arg("--socket").arg(socket).arg("--record").arg(folder.join(RECORD));
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        let said = folder.join("serve.stderr");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(create(&said)?);
        let mut daemon = Guarded(command.spawn().context("takt serve does not start")?);
        let until = Instant::now() + PATIENCE;
        while !socket.exists() {
            if daemon.0.try_wait()?.is_some() || Instant::now() > until {
                let text = std::fs::read_to_string(&said).unwrap_or_default();
                bail!("takt serve does not begin: {}", text.trim());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(daemon)
    }

    /// Waits until the programs with a frame rate have ended, and ends the floods, which come last.
    fn wait(
        &self,
        programs: &mut [Guarded],
        roles: &[Role],
        folder: &Path,
        total: Duration,
        tick: &mut dyn FnMut(),
    ) -> anyhow::Result<()> {
        let until = Instant::now() + total + PATIENCE;
        for (Guarded(child), role) in programs.iter_mut().zip(roles) {
            // One that was left no time would only begin now.
            if role.is_flood()
                && let Some(pid) = Pid::from_raw(i32::try_from(child.id())?)
            {
                // Ended already, perhaps.
                kill_process(pid, Signal::TERM).unwrap_or_default();
            }
            let status = loop {
                match child.try_wait()? {
                    Some(status) => break status,
                    None if Instant::now() > until => bail!("{} does not end", role.name),
                    None => std::thread::sleep(Duration::from_millis(100)),
                }
                tick();
            };
            if !status.success() {
                let said = std::fs::read_to_string(errors(folder, role)).unwrap_or_default();
                bail!("{} failed ({status}): {}", role.name, said.trim());
            }
        }
        Ok(())
    }
}

/// The judged time: from when all programs with a frame rate draw, until the first of them ends.
/// Floods may get no time at all.
fn common_window(all: &[&[Frame]], length: Duration) -> Option<Window> {
    let ns = |length: Duration| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
    let firsts: Vec<u64> = all.iter().map(|frames| Some(frames.first()?.release)).collect::<Option<_>>()?;
    let from = firsts.iter().max()? + ns(LEAD);
    let ends = firsts.iter().min()? + ns(LEAD + length + TAIL);
    (ends > from).then(|| Window { from, until: ends.min(from + ns(length)) })
}

/// What every program gets: no window, no GPU, one thread that draws, and no questions.
fn software(command: &mut Command) -> &mut Command {
    command.args(["--platform", "surfaceless", "--json"]);
    command.envs([("LIBGL_ALWAYS_SOFTWARE", "1"), ("LP_NUM_THREADS", "1")]);
    command.env_remove("TAKT_SOCKET").stdin(Stdio::null())
}

fn log(folder: &Path, role: &Role) -> PathBuf {
    folder.join(format!("{}.csv", role.name))
}

fn errors(folder: &Path, role: &Role) -> PathBuf {
    folder.join(format!("{}.stderr", role.name))
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| output::cannot_write(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_all_have_in_common_is_judged() {
        let from = |ms: u64| vec![Frame { number: 0, release: ms * 1_000_000, begin: 0, end: 0 }];
        let seconds = |all: &[&[Frame]]| common_window(all, Duration::from_secs(10)).map(|w| w.seconds());
        assert_eq!(seconds(&[&from(0), &from(1_000)]), Some(10.0));
        assert_eq!(seconds(&[&from(0), &from(4_500)]), Some(7.0), "the first one ends earlier");
        assert_eq!(seconds(&[&from(0), &from(20_000)]), None);
        assert_eq!(seconds(&[&from(0), &[]]), None);
    }
}
