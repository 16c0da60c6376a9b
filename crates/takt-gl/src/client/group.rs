//! Command groups: what is handed to the GPU in one go.
//!
//! A group is what a context was asked to do since its last submission point ([`End`]). Draws
//! are counted by scene: consecutive ones that differ in nothing but their vertices are predicted
//! together. A draw belongs to one group, the one that is submitted after it: where a driver cuts
//! in the middle of a draw, what runs before the cut is only preparation (Ma, section 5.3). Where
//! we cut it ourselves, each of its pieces is a group.

use std::fmt;

use takt_predict::cost::SceneKey;

/// Why a group ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// `glFlush`.
    Flush,
    /// `glFinish`.
    Finish,
    /// What was pending when `eglSwapBuffers` was called.
    BeforeSwap,
    /// `eglSwapBuffers` itself.
    Swap,
    /// `eglMakeCurrent`, or the end of context or thread.
    Unbind,
    /// `glReadPixels` and others that wait for results.
    Read,
    /// Drawing goes elsewhere: `glBindFramebuffer`.
    Target,
    /// It contains as much as it was granted.
    Limit,
    /// A draw is longer than a group may be: this is a piece of it.
    Piece,
}

impl End {
    /// As files have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Finish => "finish",
            Self::BeforeSwap => "before-swap",
            Self::Swap => "swap",
            Self::Unbind => "unbind",
            Self::Read => "read",
            Self::Target => "target",
            Self::Limit => "limit",
            Self::Piece => "piece",
        }
    }
}

/// What a group is mostly about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Draws.
    Draw,
    /// Dispatches of compute shaders.
    Compute,
    /// Moving bytes.
    Copy,
    /// Clearing, and nothing else.
    Clear,
    /// Showing a frame.
    Swap,
    /// Work of unknown extent.
    Unknown,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Draw => "draw",
            Self::Compute => "compute",
            Self::Copy => "copy",
            Self::Clear => "clear",
            Self::Swap => "swap",
            Self::Unknown => "unknown",
        })
    }
}

/// What has been asked for since the last submission point.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Work {
    /// Draw calls.
    pub draws: u64,
    /// Scenes that they belong to.
    pub scenes: u64,
    /// Vertices, instances counted.
    pub vertices: u64,
    /// Dispatches of compute shaders.
    pub dispatches: u64,
    /// Clears.
    pub clears: u64,
    /// Pixels that they touch.
    pub clear_pixels: u64,
    /// Bytes that are uploaded, copied or made into mipmaps.
    pub copy_bytes: u64,
    /// Copies and uploads.
    pub copies: u64,
    /// Commands whose extent is not known.
    pub unknown: u64,
    /// Time that the driver spent in the calls of the group.
    pub call_ns: u64,
    /// Time that a renderer on the CPU worked in dispatches, whose calls wait for its threads.
    pub dispatch_ns: u64,
}

impl Work {
    /// Whether the GPU has nothing to do.
    pub fn is_empty(&self) -> bool {
        self.commands() == 0
    }

    /// Whether it is a single draw or a single dispatch.
    pub fn is_one_command(&self) -> bool {
        self.draws + self.dispatches == 1 && self.commands() == 1
    }

    fn commands(&self) -> u64 {
        self.draws + self.dispatches + self.clears + self.copies + self.unknown
    }

    fn kind(&self) -> Kind {
        if self.draws > 0 {
            Kind::Draw
        } else if self.dispatches > 0 {
            Kind::Compute
        } else if self.unknown > 0 {
            Kind::Unknown
        } else if self.copies > 0 {
            Kind::Copy
        } else {
            Kind::Clear
        }
    }
}

/// A group on its way to the GPU.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Group {
    /// Number of the context.
    pub context: u64,
    /// Number of the frame, from 0.
    pub frame: u64,
    /// Number of the group within its context, from 0.
    pub number: u64,
    /// What it is about.
    pub kind: Kind,
    /// The call that began it; nothing if it was not looked at.
    pub command: &'static str,
    /// Why it ended.
    pub end: End,
    /// What it does.
    pub work: Work,
}

/// Forms the groups of a context.
#[derive(Default, Debug)]
pub struct Builder {
    work: Work,
    scene: Option<SceneKey>,
    frame: u64,
    number: u64,
    /// A frame ended inside of the group, and nothing came since.
    untouched: bool,
    /// The program's call that is looked at.
    call: &'static str,
    /// The call that the group begins with.
    command: &'static str,
}

impl Builder {
    /// The program calls that.
    #[inline]
    pub fn call(&mut self, name: &'static str) {
        self.call = name;
    }

    /// Whether the current group has nothing for the GPU.
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// How much the current group has for the GPU.
    pub fn commands(&self) -> u64 {
        self.work.commands()
    }

    /// The call that is being made.
    pub fn current_call(&self) -> &'static str {
        self.call
    }

    /// The call that the group begins with.
    pub fn command(&self) -> &'static str {
        self.command
    }

    fn begins(&mut self) {
        self.untouched = false;
        if self.is_empty() {
            self.command = self.call;
        }
    }

    /// A draw; `vertices` counts instances.
    pub fn draw(&mut self, scene: Option<SceneKey>, vertices: u64) {
        self.begins();
        self.work.draws += 1;
        self.work.vertices = self.work.vertices.saturating_add(vertices);
        if scene.is_none() || scene != self.scene {
            self.work.scenes += 1;
        }
        self.scene = scene;
    }

    /// A dispatch.
    pub fn dispatch(&mut self) {
        self.begins();
        self.work.dispatches += 1;
    }

    /// A clear.
    pub fn clear(&mut self, pixels: u64) {
        self.begins();
        self.work.clears += 1;
        self.work.clear_pixels = self.work.clear_pixels.saturating_add(pixels);
    }

    /// An upload, copy, or mipmaps.
    pub fn copy(&mut self, bytes: u64) {
        self.begins();
        self.work.copies += 1;
        self.work.copy_bytes = self.work.copy_bytes.saturating_add(bytes);
    }

    /// Something for the GPU, of unknown extent.
    pub fn unknown(&mut self) {
        self.begins();
        self.work.unknown += 1;
    }

    /// The driver spent this long in a call of the group.
    pub fn spent(&mut self, ns: u64) {
        self.work.call_ns = self.work.call_ns.saturating_add(ns);
    }

    /// A renderer on the CPU worked this long in a dispatch.
    pub fn dispatched(&mut self, ns: u64) {
        self.work.dispatch_ns = self.work.dispatch_ns.saturating_add(ns);
    }

    /// The frame ends, and the group goes on.
    pub fn end_frame(&mut self) {
        self.frame += 1;
        self.scene = None;
        self.untouched = true;
    }

    /// Whether nothing came since a frame ended inside of the group.
    pub fn is_between_frames(&self) -> bool {
        self.untouched
    }

    /// The frame that is being made.
    pub fn frame(&self) -> u64 {
        self.frame
    }

    /// Ends the group. None if the GPU has nothing to do, except for a swap, which ends the frame in
    /// any case.
    pub fn end(&mut self, context: u64, end: End) -> Option<Group> {
        self.scene = None;
        self.untouched = false;
        let work = std::mem::take(&mut self.work);
        if work.is_empty() && end != End::Swap {
            return None;
        }
        let kind = if end == End::Swap { Kind::Swap } else { work.kind() };
        let command = std::mem::take(&mut self.command);
        let group = Group { context, frame: self.frame, number: self.number, kind, command, end, work };
        self.number += 1;
        if end == End::Swap {
            self.frame += 1;
        }
        Some(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_predict::cost::{Capabilities, ProgramId};
    use takt_predict::fragments::{Mode, RasterState};

    fn scene(program: u64) -> Option<SceneKey> {
        Some(SceneKey {
            program: ProgramId(program),
            position_uniforms: 0,
            target: 0,
            raster: RasterState::new(10, 10),
            mode: Mode::Triangles,
            capabilities: Capabilities::default(),
        })
    }

    #[test]
    fn draws_of_a_scene_are_one_batch() {
        let mut builder = Builder::default();
        for program in [1, 1, 1, 2, 2, 1] {
            builder.draw(scene(program), 3);
        }
        let group = builder.end(7, End::Flush).unwrap();
        assert_eq!((group.work.draws, group.work.scenes, group.work.vertices), (6, 3, 18));
        assert_eq!((group.context, group.kind, group.frame, group.number), (7, Kind::Draw, 0, 0));
    }

    #[test]
    fn a_group_is_named_by_the_call_that_began_it() {
        let mut builder = Builder::default();
        builder.call("glClear");
        builder.clear(1);
        builder.call("glDrawArrays");
        builder.draw(None, 3);
        assert_eq!(builder.current_call(), "glDrawArrays");
        assert_eq!(builder.end(0, End::Flush).unwrap().command, "glClear");
        builder.draw(None, 3);
        assert_eq!(builder.end(0, End::Flush).unwrap().command, "glDrawArrays", "a piece of the same call");
    }

    #[test]
    fn a_scene_that_continues_after_a_split_is_a_batch_of_its_own() {
        let mut builder = Builder::default();
        builder.draw(scene(1), 3);
        assert_eq!(builder.end(0, End::Target).unwrap().work.scenes, 1);
        builder.draw(scene(1), 3);
        let second = builder.end(0, End::Flush).unwrap();
        assert_eq!((second.work.scenes, second.work.draws, second.number), (1, 1, 1));
    }

    #[test]
    fn a_draw_whose_scene_is_unknown_is_a_scene() {
        let mut builder = Builder::default();
        builder.draw(None, 3);
        builder.draw(None, 3);
        assert_eq!(builder.end(0, End::Flush).unwrap().work.scenes, 2);
    }

    #[test]
    fn nothing_to_do_is_no_group_but_a_swap_is() {
        let mut builder = Builder::default();
        builder.spent(5);
        assert_eq!(builder.end(0, End::BeforeSwap), None);
        let swap = builder.end(0, End::Swap).unwrap();
        assert_eq!((swap.kind, swap.frame, swap.work.call_ns), (Kind::Swap, 0, 0));
        builder.clear(100);
        let next = builder.end(0, End::Finish).unwrap();
        assert_eq!((next.kind, next.frame, next.number), (Kind::Clear, 1, 1));
    }

    #[test]
    fn kinds_follow_what_is_most_telling() {
        let kind = |fill: fn(&mut Builder)| {
            let mut builder = Builder::default();
            fill(&mut builder);
            builder.end(0, End::Read).unwrap().kind
        };
        assert_eq!(kind(|builder| builder.copy(4)), Kind::Copy);
        assert_eq!(kind(|builder| builder.unknown()), Kind::Unknown);
        assert_eq!(
            kind(|builder| [builder.dispatch(), builder.unknown()].into_iter().collect()),
            Kind::Compute
        );
        assert_eq!(
            kind(|builder| {
                builder.clear(1);
                builder.copy(u64::MAX);
                builder.copy(u64::MAX);
                builder.draw(None, u64::MAX);
                builder.draw(None, u64::MAX);
            }),
            Kind::Draw
        );
    }
}
