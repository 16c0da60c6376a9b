//! Draws scenes with GL, into two buffers that take turns.

use std::collections::BTreeMap;
use std::sync::Arc;

use smithay::backend::allocator::Fourcc;
use smithay::backend::renderer::gles::{GlesError, GlesRenderbuffer, GlesRenderer, GlesTexture};
use smithay::backend::renderer::{
    Bind, Color32F, ExportMem, Frame, ImportMem, Offscreen, Renderer, TextureFilter,
};
use smithay::utils::{Buffer, Physical, Rectangle, Transform};
use takt_cockpit::geometry::{Rect, Size};

use crate::picture::{Layer, Picture, Pixels};
use crate::sys::{DeviceChoice, NoGl, renderer};

/// What is where no window is.
const BACKGROUND: Color32F = Color32F::new(0.0, 0.0, 0.0, 1.0);
/// Changed parts that are drawn one by one; more become one.
const PARTS_MAX: usize = 8;
/// Frames after which the texture of a surface that is not shown any more is deleted.
const UNUSED_MAX: u64 = 120;

/// A GL context with two buffers of an output's size.
pub(super) struct Painter {
    renderer: GlesRenderer,
    canvases: [Canvas; 2],
    textures: BTreeMap<u64, Cached>,
    size: Size,
    on_cpu: bool,
    frames: u64,
}

/// A buffer, and what was drawn into it.
struct Canvas {
    buffer: GlesRenderbuffer,
    drawn: Option<Vec<Drawn>>,
}

/// A surface's pixels in the memory of the GPU.
struct Cached {
    texture: GlesTexture,
    version: u64,
    size: Size,
    format: Fourcc,
    used: u64,
}

/// A window to draw.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// Its picture.
    pub(super) picture: Arc<Picture>,
    /// Where it goes.
    pub(super) at: Rect,
    /// Where it may draw.
    pub(super) clip: Rect,
    /// How opaque it is.
    pub(super) opacity: u8,
}

/// A layer of a window as it was drawn.
#[derive(Clone, PartialEq, Debug)]
struct Drawn {
    surface: u64,
    version: u64,
    to: Rect,
    clip: Rect,
    source: Rectangle<f64, Buffer>,
    transform: Transform,
    opacity: u8,
}

impl Drawn {
    fn covered(&self) -> Rect {
        self.to.intersection(self.clip)
    }
}

impl Painter {
    /// A context of this thread, on such a device.
    pub(super) fn new(device: DeviceChoice, size: Size) -> Result<Self, NoGl> {
        let (mut renderer, on_cpu) = renderer(device)?;
        renderer.downscale_filter(TextureFilter::Linear)?;
        renderer.upscale_filter(TextureFilter::Linear)?;
        let mut canvas = || -> Result<Canvas, NoGl> {
            let buffer = renderer.create_buffer(Fourcc::Abgr8888, (size.width, size.height).into())?;
            Ok(Canvas { buffer, drawn: None })
        };
        let canvases = [canvas()?, canvas()?];
        Ok(Self { renderer, canvases, textures: BTreeMap::new(), size, on_cpu, frames: 0 })
    }

    /// Draws windows from back to front into a buffer, and waits until the GPU has finished.
    pub(super) fn paint(&mut self, canvas: usize, items: &[Item]) -> Result<(), GlesError> {
        self.frames += 1;
        let layers: Vec<(Drawn, &Layer)> = items.iter().flat_map(layers_of).collect();
        for (_, layer) in &layers {
            self.upload(&layer.pixels)?;
        }
        let drawn: Vec<Drawn> = layers.into_iter().map(|(drawn, _)| drawn).collect();
        let parts = match &self.canvases[canvas].drawn {
            Some(before) => changed(before, &drawn, self.size),
            None => vec![Rect::of(self.size)],
        };
        self.draw(canvas, &drawn, &parts)?;
        self.canvases[canvas].drawn = Some(drawn);
        self.forget_unused();
        Ok(())
    }

    /// Whether it draws with the CPU.
    pub(super) fn is_on_cpu(&self) -> bool {
        self.on_cpu
    }

    /// Its size.
    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// What a buffer contains: red, green, blue and alpha, row after row.
    pub(super) fn read(&mut self, canvas: usize, part: Rect) -> Result<Vec<u8>, GlesError> {
        let region =
            Rectangle::new((part.at.x, part.at.y).into(), (part.size.width, part.size.height).into());
        let target = self.renderer.bind(&mut self.canvases[canvas].buffer)?;
        let mapping = self.renderer.copy_framebuffer(&target, region, Fourcc::Abgr8888)?;
        drop(target);
        Ok(self.renderer.map_texture(&mapping)?.to_vec())
    }

    fn draw(&mut self, canvas: usize, drawn: &[Drawn], parts: &[Rect]) -> Result<(), GlesError> {
        let size = (self.size.width, self.size.height).into();
        let mut target = self.renderer.bind(&mut self.canvases[canvas].buffer)?;
        let mut frame = self.renderer.render(&mut target, size, Transform::Normal)?;
        let everywhere: Vec<Rectangle<i32, Physical>> = parts.iter().map(|part| physical(*part)).collect();
        frame.clear(BACKGROUND, &everywhere)?;
        for layer in drawn {
            let Some(cached) = self.textures.get(&layer.surface) else {
                continue;
            };
            let inside = parts.iter().map(|part| part.intersection(layer.covered()));
            let inside = inside.filter(|part| !part.is_empty());
            let (x, y) = (layer.to.at.x, layer.to.at.y);
            let inside: Vec<Rectangle<i32, Physical>> =
                inside.map(|part| physical(part.moved(-x, -y))).collect();
            if inside.is_empty() {
                continue;
            }
            let (to, alpha) = (physical(layer.to), f32::from(layer.opacity) / f32::from(u8::MAX));
            Frame::render_texture_from_to(
                &mut frame,
                &cached.texture,
                layer.source,
                to,
                &inside,
                &[],
                layer.transform,
                alpha,
            )?;
        }
        let finished = frame.finish()?;
        // An interrupted wait is no error of the GPU: ask again.
        while finished.wait().is_err() {}
        Ok(())
    }

    /// Brings a surface's pixels to the GPU, as far as they are not there.
    fn upload(&mut self, pixels: &Pixels) -> Result<(), GlesError> {
        let frames = self.frames;
        let region = |part: Rect| -> Rectangle<i32, Buffer> {
            Rectangle::new((part.at.x, part.at.y).into(), (part.size.width, part.size.height).into())
        };
        if let Some(cached) = self.textures.get_mut(&pixels.surface)
            && cached.size == pixels.size
            && cached.format == pixels.format
        {
            cached.used = frames;
            if cached.version == pixels.version {
                return Ok(());
            }
            let follows = cached.version + 1 == pixels.version;
            let part = if follows { pixels.damage } else { Rect::of(pixels.size) };
            cached.version = pixels.version;
            if part.is_empty() {
                return Ok(());
            }
            return self.renderer.update_memory(&cached.texture, &pixels.bytes, region(part));
        }
        let size = (pixels.size.width, pixels.size.height).into();
        let texture = self.renderer.import_memory(&pixels.bytes, pixels.format, size, false)?;
        let Pixels { version, size, format, .. } = *pixels;
        self.textures.insert(pixels.surface, Cached { texture, version, size, format, used: frames });
        Ok(())
    }

    fn forget_unused(&mut self) {
        let frames = self.frames;
        self.textures.retain(|_, cached| frames - cached.used < UNUSED_MAX);
    }
}

/// The layers of a window at their places on the output.
fn layers_of(item: &Item) -> impl Iterator<Item = (Drawn, &Layer)> {
    let picture = &item.picture;
    let scale = |whole: i32, size: i32| if size > 0 { f64::from(whole) / f64::from(size) } else { 1.0 };
    let (across, down) =
        (scale(item.at.size.width, picture.size.width), scale(item.at.size.height, picture.size.height));
    picture.layers.iter().map(move |layer| {
        let (left, right) = (scaled(layer.at.at.x, across), scaled(layer.at.right(), across));
        let (top, bottom) = (scaled(layer.at.at.y, down), scaled(layer.at.bottom(), down));
        let drawn = Drawn {
            surface: layer.pixels.surface,
            version: layer.pixels.version,
            to: Rect::new(left, top, right - left, bottom - top).moved(item.at.at.x, item.at.at.y),
            clip: item.clip,
            source: layer.source,
            transform: layer.transform,
            opacity: item.opacity,
        };
        (drawn, layer)
    })
}

fn scaled(at: i32, factor: f64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
    let at = (f64::from(at) * factor).round() as i32;
    at
}

/// The parts of the output in which two drawings differ.
fn changed(before: &[Drawn], now: &[Drawn], size: Size) -> Vec<Rect> {
    let mut parts: Vec<Rect> = Vec::new();
    let mut add = |part: Rect| {
        let part = part.intersection(Rect::of(size));
        if part.is_empty() || parts.iter().any(|known| known.covers(part)) {
            return;
        }
        // Overlapping parts would be blended twice.
        let mut whole = part;
        while let Some(index) = parts.iter().position(|known| known.overlaps(whole)) {
            whole = whole.union(parts.swap_remove(index));
        }
        parts.push(whole);
    };
    for index in 0..before.len().max(now.len()) {
        match (before.get(index), now.get(index)) {
            (Some(old), Some(new)) if old == new => {}
            (old, new) => [old, new].into_iter().flatten().for_each(|drawn| add(drawn.covered())),
        }
    }
    if parts.len() > PARTS_MAX {
        return vec![parts.into_iter().fold(Rect::default(), Rect::union)];
    }
    parts
}

fn physical(rect: Rect) -> Rectangle<i32, Physical> {
    Rectangle::new((rect.at.x, rect.at.y).into(), (rect.size.width, rect.size.height).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(surface: u64, version: u64, to: Rect) -> Drawn {
        Drawn {
            surface,
            version,
            to,
            clip: Rect::new(0, 0, 100, 100),
            source: Rectangle::default(),
            transform: Transform::Normal,
            opacity: 255,
        }
    }

    #[test]
    fn only_what_changed_is_drawn_again() {
        let size = Size::new(100, 100);
        let a = drawn(1, 1, Rect::new(0, 0, 10, 10));
        let b = drawn(2, 1, Rect::new(20, 0, 10, 10));
        let same = [a.clone(), b.clone()];
        assert!(changed(&same, &same, size).is_empty());
        let newer = drawn(2, 2, Rect::new(20, 0, 10, 10));
        assert_eq!(changed(&same, &[a.clone(), newer], size), [Rect::new(20, 0, 10, 10)]);
        let moved = drawn(2, 1, Rect::new(25, 0, 10, 10));
        assert_eq!(changed(&same, &[a.clone(), moved], size), [Rect::new(20, 0, 15, 10)], "both places");
        assert_eq!(changed(&same, &[a], size), [Rect::new(20, 0, 10, 10)], "it is gone");
        let outside = drawn(3, 1, Rect::new(95, 95, 10, 10));
        assert_eq!(changed(&[], &[outside], size), [Rect::new(95, 95, 5, 5)]);
    }

    #[test]
    fn parts_never_overlap() {
        let size = Size::new(100, 100);
        let many: Vec<Drawn> = (0..40_i32)
            .map(|n| drawn(n.unsigned_abs().into(), 1, Rect::new((n * 7) % 90, n, 9, 9)))
            .collect();
        let parts = changed(&[], &many, size);
        assert!(parts.len() <= PARTS_MAX);
        for (index, part) in parts.iter().enumerate() {
            assert!(parts[..index].iter().all(|other| !other.overlaps(*part)));
        }
        for one in &many {
            assert!(parts.iter().any(|part| part.covers(one.covered())));
        }
    }
}
