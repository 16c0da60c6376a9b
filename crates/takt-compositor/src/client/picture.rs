//! The picture of a window, from its surfaces as they are now.

use std::sync::{Arc, PoisonError};

use smithay::desktop::PopupManager;
use smithay::reexports::wayland_server::protocol::wl_surface::WlSurface;
use smithay::utils::{Buffer, Logical, Point, Rectangle, Size as LogicalSize};
use smithay::wayland::compositor::{
    RectangleKind, RegionAttributes, SubsurfaceCachedState, SurfaceAttributes, SurfaceData, TraversalAction,
    with_states, with_surface_tree_upward,
};
use smithay::wayland::shell::xdg::SurfaceCachedState;
use smithay::wayland::viewporter::{ViewportCachedState, ensure_viewport_valid};
use takt_cockpit::geometry::{Point as Place, Rect};
use takt_cockpit::windows::INPUT_RECTS_MAX;

use super::commits::{Content, content};
use crate::picture::{Layer, Picture};

/// A surface at its place.
struct Placed {
    surface: WlSurface,
    layer: Layer,
    input: Vec<Rectangle<i32, Logical>>,
}

/// The picture of the window with that root surface, and where it takes input; none if it shows nothing.
pub(super) fn of(root: &WlSurface, number: u64) -> Option<(Picture, Vec<Rect>)> {
    let mut parts = Vec::new();
    add_tree(root, (0, 0).into(), &mut parts);
    if parts.is_empty() {
        return None;
    }
    let geometry = geometry(root, &parts);
    add_popups(root, geometry, &mut parts);
    let moved = |at: Rect| at.moved(-geometry.at.x, -geometry.at.y);
    let mut input: Vec<Rect> =
        parts.iter().flat_map(|part| &part.input).map(|part| moved(rect(*part))).collect();
    input.truncate(INPUT_RECTS_MAX);
    let layers = parts.into_iter().map(|part| Layer { at: moved(part.layer.at), ..part.layer }).collect();
    Some((Picture { number, look: 0, layers, size: geometry.size }, input))
}

/// The surface in front that takes input at a place of the window's picture, and where that surface is in it.
pub(super) fn surface_at(root: &WlSurface, at: Place) -> Option<(WlSurface, Point<f64, Logical>)> {
    let mut parts = Vec::new();
    add_tree(root, (0, 0).into(), &mut parts);
    let geometry = geometry(root, &parts);
    add_popups(root, geometry, &mut parts);
    let at = Point::<i32, Logical>::from((at.x, at.y)) + Point::from((geometry.at.x, geometry.at.y));
    let part = parts.iter().rev().find(|part| part.input.iter().any(|rect| rect.contains(at)))?;
    let origin = (part.layer.at.at.x - geometry.at.x, part.layer.at.at.y - geometry.at.y);
    Some((part.surface.clone(), Point::<i32, Logical>::from(origin).to_f64()))
}

/// The part of a window's surfaces that it calls itself.
fn geometry(root: &WlSurface, parts: &[Placed]) -> Rect {
    let whole = parts.iter().fold(Rect::default(), |whole, part| whole.union(part.layer.at));
    let geometry =
        with_states(root, |states| states.cached_state.get::<SurfaceCachedState>().current().geometry);
    // A client may call more its window than it drew.
    let geometry = geometry.map_or(whole, |given| rect(given).intersection(whole));
    if geometry.is_empty() { whole } else { geometry }
}

fn add_popups(root: &WlSurface, geometry: Rect, parts: &mut Vec<Placed>) {
    for (popup, at) in PopupManager::popups_for_surface(root) {
        let offset = popup.geometry().loc;
        let at = at - offset + Point::from((geometry.at.x, geometry.at.y));
        add_tree(popup.wl_surface(), at, parts);
    }
}

/// Adds a surface and all below it, from back to front.
fn add_tree(root: &WlSurface, at: Point<i32, Logical>, parts: &mut Vec<Placed>) {
    with_surface_tree_upward(
        root,
        at,
        |_, states, at| match place(states, *at) {
            // What is below a surface without pixels is not shown.
            Some((at, ..)) => TraversalAction::DoChildren(at),
            None => TraversalAction::SkipChildren,
        },
        |surface, states, at| parts.extend(part(surface, states, *at)),
        |_, _, _| true,
    );
}

/// Where a surface is, if it shows anything, and how large its buffer is before and after cropping.
fn place(
    states: &SurfaceData,
    at: Point<i32, Logical>,
) -> Option<(Point<i32, Logical>, LogicalSize<i32, Logical>)> {
    let content = content(states).lock().unwrap_or_else(PoisonError::into_inner);
    let size = buffer_size(&content)?;
    let offset = match states.role {
        Some("subsurface") => states.cached_state.get::<SubsurfaceCachedState>().current().location,
        _ => (0, 0).into(),
    };
    Some((at + offset, size))
}

/// Size of a surface's buffer in its own coordinates.
fn buffer_size(content: &Content) -> Option<LogicalSize<i32, Logical>> {
    let pixels = content.pixels.as_ref()?;
    let size: LogicalSize<i32, Buffer> = (pixels.size.width, pixels.size.height).into();
    Some(size.to_logical(content.scale, content.transform))
}

fn part(surface: &WlSurface, states: &SurfaceData, at: Point<i32, Logical>) -> Option<Placed> {
    let (at, buffer) = place(states, at)?;
    if !ensure_viewport_valid(states, buffer) {
        return None;
    }
    let viewport = *states.cached_state.get::<ViewportCachedState>().current();
    let source = viewport.src.unwrap_or_else(|| Rectangle::from_size(buffer.to_f64()));
    let size = viewport.size().unwrap_or(buffer);
    let content = content(states).lock().unwrap_or_else(PoisonError::into_inner);
    let pixels = Arc::clone(content.pixels.as_ref()?);
    let whole = Rectangle::new(at, size);
    let input = states.cached_state.get::<SurfaceAttributes>().current().input_region.clone();
    let layer = Layer {
        pixels,
        source: source.to_buffer(f64::from(content.scale), content.transform, &buffer.to_f64()),
        at: rect(whole),
        transform: content.transform,
    };
    Some(Placed { surface: surface.clone(), layer, input: region(input, whole) })
}

/// The rectangles of a region of a surface; a surface without a region is one.
fn region(given: Option<RegionAttributes>, surface: Rectangle<i32, Logical>) -> Vec<Rectangle<i32, Logical>> {
    let Some(given) = given else {
        return vec![surface];
    };
    let mut rects: Vec<Rectangle<i32, Logical>> = Vec::new();
    for (kind, mut rect) in given.rects {
        rect.loc += surface.loc;
        let Some(rect) = rect.intersection(surface) else {
            continue;
        };
        match kind {
            RectangleKind::Add => rects.push(rect),
            RectangleKind::Subtract => rects = Rectangle::subtract_rects_many_in_place(rects, [rect]),
        }
        if rects.len() > INPUT_RECTS_MAX {
            rects.truncate(INPUT_RECTS_MAX);
        }
    }
    rects
}

fn rect(rect: Rectangle<i32, Logical>) -> Rect {
    Rect::new(rect.loc.x, rect.loc.y, rect.size.w, rect.size.h)
}
