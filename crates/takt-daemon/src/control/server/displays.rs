//! Displays whose owner reports when they refresh, and the page that shows it.
//!
//! A compositor owns its displays: it knows when they refresh, because it makes them do so or hears it from
//! the hardware. It reports that by [`Ask::Display`](crate::control::ask::Ask::Display), and apps that draw
//! for that display are released and judged by its grid from then on. A display that the configuration does
//! not list is added. What was reported holds until it is reported otherwise: an owner that dies and comes
//! back finds its apps on the same grid.

use takt_core::limits::DISPLAYS_MAX;
use takt_core::{DisplayId, Period, Refresh, Span, Time};
use takt_ipc::name;
use takt_os::clock;

use super::Server;
use crate::control::ask::Answer;
use crate::control::config::{Display, Settings};
use crate::control::vsync::{PAST, TOLERANCE, anchored};
use crate::observe::journal::Entry;
use crate::rt::queues::Order;

/// How far in the future a refresh may be that an owner reports.
const AHEAD_MAX: Span = Span::from_ms(2_000);

/// A display that its owner reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Reported {
    name: String,
    grid: Refresh,
}

impl Server {
    /// The owner of a display says when it refreshes.
    pub(super) fn set_display(&mut self, name: &str, refresh_mhz: u32, vsync: Time) -> Answer {
        let rate = Refresh::from_mhz(refresh_mhz).ok_or_else(|| {
            format!("refresh_mhz = {refresh_mhz}: use a rate from 1000 to 1000000 millihertz")
        });
        let grid = rate.and_then(|rate| grid(&rate, vsync, clock::now()));
        match grid.and_then(|grid| self.report(Reported { name: name.to_owned(), grid })) {
            Ok(()) => Answer::Done,
            Err(reason) => Answer::refused(reason),
        }
    }

    /// Takes over what an owner reported, or says why not; then nothing changed.
    fn report(&mut self, reported: Reported) -> Result<(), String> {
        let before = self.settings.clone();
        self.admit_display(&reported)?;
        if let Err(why) = self.fits(&before) {
            self.settings = before;
            return Err(why);
        }
        let known = self.reported.iter().position(|other| other.name == reported.name);
        let news = known.is_none_or(|known| self.reported[known].grid.mhz() != reported.grid.mhz());
        match known {
            Some(known) => self.reported[known] = reported.clone(),
            None => self.reported.push(reported.clone()),
        }
        self.follow_reported();
        if self.settings.displays != before.displays {
            self.renew_apps(&before, &mut Vec::new());
        }
        if news {
            let refresh_hz = f64::from(reported.grid.mhz()) / 1000.0;
            self.journal.tell(&Entry::Display { display: &reported.name, refresh_hz });
        }
        Ok(())
    }

    /// Puts a reported display among the settings, if it may be there.
    fn admit_display(&mut self, reported: &Reported) -> Result<(), String> {
        let Reported { name, grid } = reported;
        if !name::is_name(name) {
            return Err(format!("display {name:?}: use {} in its name", name::ALLOWED));
        }
        let Some(index) = self.settings.displays.iter().position(|display| display.name == *name) else {
            return self.settings.add_display(reported);
        };
        if index == 0 && self.follower.is_some() {
            return Err(format!(
                "display {name} follows a device: use vsync = \"timer\" in the configuration"
            ));
        }
        let is_configured = self.reported.iter().all(|other| other.name != *name) || index == 0;
        let rate = &mut self.settings.displays[index].refresh;
        if is_configured {
            let (told, listed) = (grid.mhz(), rate.mhz());
            let tolerance = u64::from(listed) / TOLERANCE;
            if u64::from(told.abs_diff(listed)) > tolerance {
                let hz = |mhz: u32| f64::from(mhz) / 1000.0;
                let (told, listed) = (hz(told), hz(listed));
                return Err(format!(
                    "display {name} refreshes at {told} Hz and is configured for {listed}: change refresh_hz"
                ));
            }
        } else {
            *rate = rate_of(grid);
        }
        Ok(())
    }

    /// Keeps reported displays among settings that were just read.
    pub(super) fn keep_reported(&mut self) {
        for reported in &self.reported {
            if self.settings.displays.iter().all(|display| display.name != reported.name) {
                // If there is no room any more, its apps are refused by name.
                self.settings.add_display(reported).unwrap_or_default();
            }
        }
    }

    /// Sends the core the grids of all reported displays where they differ, and shows them.
    pub(super) fn follow_reported(&mut self) {
        for Reported { name, grid } in self.reported.clone() {
            let index = self.settings.displays.iter().position(|display| display.name == name);
            match index {
                Some(0) if self.follower.is_none() && self.grid != grid => self.follow(grid),
                Some(index) if index > 0 && self.settings.core.more_displays[index - 1] != grid => {
                    self.settings.core.more_displays[index - 1] = grid;
                    let number = u8::try_from(index).unwrap_or(u8::MAX);
                    self.order(Order::Refresh { display: DisplayId(number), grid });
                }
                _ => {}
            }
        }
        self.show_displays();
    }

    /// Shows readers of the frame page when displays refresh.
    pub(super) fn show_displays(&self) {
        let page = &self.scheduling.frames;
        for index in 0..DISPLAYS_MAX {
            let grid = match index {
                0 => Some(&self.grid),
                _ => self.settings.core.more_displays.get(index - 1),
            };
            match self.settings.displays.get(index).zip(grid) {
                Some((display, grid)) => page.set_display(index, &display.name, grid),
                None => page.clear_display(index),
            }
        }
    }
}

impl Settings {
    fn add_display(&mut self, reported: &Reported) -> Result<(), String> {
        let Reported { name, grid } = reported;
        if self.displays.len() >= DISPLAYS_MAX {
            return Err(format!("display {name}: there are {DISPLAYS_MAX} displays already"));
        }
        self.displays.push(Display { name: name.clone(), refresh: rate_of(grid), phase: Span::ZERO });
        Ok(())
    }
}

/// The rate of a grid, without its phase.
fn rate_of(grid: &Refresh) -> Refresh {
    grid.with_origin(Time::ZERO)
}

/// The grid in which a period begins at `vsync`. Its first period lies far back, so that frames under way
/// have a period; a refresh that lies so far back itself is kept exactly.
fn grid(rate: &Refresh, vsync: Time, now: Time) -> Result<Refresh, String> {
    if vsync > now + AHEAD_MAX {
        return Err(format!("vsync_ns = {}: use a time of CLOCK_MONOTONIC that is not ahead", vsync.as_ns()));
    }
    let exact = rate.with_origin(vsync);
    Ok(if exact.period_at(now) >= Period(PAST) { exact } else { anchored(rate, vsync) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn server(name: &str, text: &str) -> Server {
        let path: PathBuf = std::env::temp_dir().join(format!("takt-displays-{name}-{}", std::process::id()));
        Server::start(path, Settings::parse(text).expect("fine")).expect("a daemon")
    }

    fn refused(answer: &Answer) -> &str {
        match answer {
            Answer::Refused(why) => why,
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn a_reported_display_is_followed_exactly() {
        let mut server =
            server("exact", "[[display]]\nname='cluster'\n[[display]]\nname='hud'\nrefresh_hz=30");
        let phase = Time::from_ns(1_234_567);
        assert_eq!(server.set_display("cluster", 60_000, phase), Answer::Done);
        assert_eq!(server.set_display("hud", 30_000, phase), Answer::Done);
        let exact = |mhz| Refresh::from_mhz(mhz).expect("a rate").with_origin(phase);
        assert_eq!(server.grid, exact(60_000));
        assert_eq!(server.settings.core.more_displays[0], exact(30_000));
        let page =
            takt_ipc::frame_page::FrameReader::open(std::os::fd::AsFd::as_fd(&server.scheduling.frames));
        let page = page.expect("readable");
        assert_eq!(page.display("hud"), Some(exact(30_000)));
        // Read again, the file changes nothing of that.
        let text = "[[display]]\nname='cluster'\n[[display]]\nname='hud'\nrefresh_hz=30\n";
        server.apply(Settings::parse(text).expect("fine"));
        assert_eq!((server.grid, page.display("hud")), (exact(60_000), Some(exact(30_000))));
        // Neither does one with another display in between.
        let text =
            "[[display]]\nname='cluster'\n[[display]]\nname='new'\n[[display]]\nname='hud'\nrefresh_hz=30";
        server.apply(Settings::parse(text).expect("fine"));
        assert_eq!((server.grid, page.display("hud")), (exact(60_000), Some(exact(30_000))));
        assert!(page.display("new").is_some());
    }

    #[test]
    fn displays_that_are_not_listed_are_added() {
        let mut server = server("added", "");
        let now = clock::now();
        for name in ["cluster", "head-unit", "rear"] {
            assert_eq!(server.set_display(name, 60_000, now), Answer::Done);
        }
        assert_eq!(server.settings.displays.len(), 4, "with the one without a name");
        let start = server.settings.core.more_displays[2];
        assert!(start.period_at(now) >= Period(1), "frames under way have a period");
        let off = start.start(start.period_from(now)).since(now);
        assert!(off <= Span::from_ns(1), "{off:?}");
        assert!(refused(&server.set_display("fifth", 60_000, now)).contains("4 displays already"));
        // Its owner may change the rate of a display that only it knows.
        assert_eq!(server.set_display("rear", 30_000, now), Answer::Done);
        assert_eq!(server.settings.display("rear").expect("there").1.mhz(), 30_000);
        // A file that lists none keeps them.
        server.apply(Settings::parse("max_slice_ms = 2").expect("fine"));
        assert_eq!(server.settings.display("rear").expect("there").1.mhz(), 30_000);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let mut server = server("refused", "[[display]]\nname='cluster'");
        let (before, now) = (server.grid, clock::now());
        let another = server.set_display("cluster", 50_000, now);
        assert!(refused(&another).contains("refreshes at 50 Hz and is configured for 60"), "{another:?}");
        assert!(refused(&server.set_display("cluster", 0, now)).contains("1000 to 1000000"));
        assert!(refused(&server.set_display("a b", 60_000, now)).contains("use letters"));
        let later = now + Span::from_ms(60_000);
        assert!(refused(&server.set_display("cluster", 60_000, later)).contains("not ahead"));
        assert_eq!(server.grid, before);
        assert_eq!(server.set_display("cluster", 59_940, now), Answer::Done, "as displays are");
    }
}
