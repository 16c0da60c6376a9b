//! The bytes that a draw's vertices are made of.
//!
//! They lie in shadows of buffers, which are locked for as long as they are looked at, or in client
//! memory, from where they are copied. What cannot be had makes the whole draw unknown.

use std::sync::{Arc, MutexGuard};

use takt_predict::fragments::{Attribute, BufferId, Elements, IndexFormat, Input};

use super::buffer::{Buffer, Contents};
use super::client_memory;
use super::drawing::{Drawing, VertexSource};
use super::vertex::{Array, VertexArray, Vertices};
use crate::gl;

/// Buffers that a draw reads, locked.
#[derive(Debug)]
pub(crate) struct Held<'a>(Vec<(&'a Arc<Buffer>, MutexGuard<'a, Contents>)>);

impl<'a> Held<'a> {
    /// Locks what the attributes at these locations and the indices need, each buffer once and in
    /// the order of their numbers, so that no two threads wait for each other.
    pub(crate) fn new(array: &'a VertexArray, locations: &[Option<u32>]) -> Self {
        let attributes = locations.iter().filter_map(|location| at(array, *location));
        let mut buffers: Vec<&Arc<Buffer>> = attributes.filter_map(|array| array.buffer.as_ref()).collect();
        buffers.extend(&array.elements);
        buffers.sort_by_key(|buffer| buffer.number());
        buffers.dedup_by(|a, b| Arc::ptr_eq(a, b));
        Self(buffers.into_iter().map(|buffer| (buffer, buffer.lock())).collect())
    }

    fn bytes(&self, wanted: &Arc<Buffer>) -> Option<(&[u8], BufferId)> {
        let (buffer, contents) = self.0.iter().find(|(buffer, _)| Arc::ptr_eq(buffer, wanted))?;
        Some((contents.bytes()?, buffer.id(contents)))
    }
}

/// The array at a location, if there is one.
fn at(array: &VertexArray, location: Option<u32>) -> Option<&Array> {
    array.attributes.get(usize::try_from(location?).ok()?).filter(|array| array.enabled)
}

/// Copies of client memory: indices first, then each attribute.
pub(crate) type Copies = Vec<Vec<u8>>;

/// Copies what lies in client memory; false if something cannot be had.
pub(crate) fn copy(
    drawing: &Drawing,
    array: &VertexArray,
    locations: &[Option<u32>],
    held: &Held<'_>,
    copies: &mut Copies,
) -> bool {
    copies.resize(copies.len().max(locations.len() + 1), Vec::new());
    let count = usize::try_from(drawing.count).unwrap_or(0);
    if let (VertexSource::Elements { kind, pointer, .. }, None) = (drawing.source, &array.elements) {
        let Some(size) = index_format(kind).map(IndexFormat::size) else {
            return false;
        };
        if !count.checked_mul(size).is_some_and(|bytes| client_memory::read(pointer, bytes, &mut copies[0])) {
            return false;
        }
    }
    let in_client_memory = |array: &&Array| array.buffer.is_none();
    if !locations.iter().any(|location| at(array, *location).as_ref().is_some_and(in_client_memory)) {
        return true;
    }
    let Some(vertices) = last_vertex(drawing, array, held, copies) else {
        return false;
    };
    for (number, location) in locations.iter().enumerate() {
        let Some(array) = at(array, *location).filter(in_client_memory) else {
            continue;
        };
        let Some((bytes, from)) = array.bytes(vertices).zip(array.from(drawing.base())) else {
            return false;
        };
        if !client_memory::read(from, bytes, &mut copies[number + 1]) {
            return false;
        }
    }
    true
}

/// The largest number of a vertex that is drawn.
fn last_vertex(drawing: &Drawing, array: &VertexArray, held: &Held<'_>, copies: &Copies) -> Option<usize> {
    let count = u32::try_from(drawing.count).ok().filter(|count| *count > 0)?;
    let (elements, _) = elements(drawing, array, held, copies)?;
    match elements {
        Elements::Arrays { first } => usize::try_from(first.checked_add(count - 1)?).ok(),
        indexed @ Elements::Indexed { .. } => {
            let last = (0..count).filter_map(|n| indexed.index(n)).max()?;
            usize::try_from(last).ok()
        }
    }
}

/// Which vertices are drawn, and the name of their indices.
pub(crate) fn elements<'a>(
    drawing: &Drawing,
    array: &VertexArray,
    held: &'a Held<'_>,
    copies: &'a Copies,
) -> Option<(Elements<'a>, Option<(BufferId, u64)>)> {
    match drawing.source {
        VertexSource::Arrays { first } => {
            Some((Elements::Arrays { first: u32::try_from(first).ok()? }, None))
        }
        VertexSource::Elements { kind, pointer, .. } => {
            let format = index_format(kind)?;
            match &array.elements {
                Some(buffer) => {
                    let (bytes, id) = held.bytes(buffer)?;
                    Some((
                        Elements::Indexed { bytes: bytes.get(pointer..)?, format },
                        Some((id, pointer as u64)),
                    ))
                }
                None => Some((Elements::Indexed { bytes: copies.first()?, format }, None)),
            }
        }
        VertexSource::Unknown { .. } | VertexSource::Several { .. } => None,
    }
}

/// Where the attributes of a draw at these locations come from.
pub(crate) fn inputs<'a>(
    drawing: &Drawing,
    vertices: &'a Vertices,
    locations: &[Option<u32>],
    held: &'a Held<'_>,
    copies: &'a Copies,
) -> Option<Vec<Input<'a>>> {
    let input = |(number, location): (usize, &Option<u32>)| {
        let Some(array) = at(vertices.bound(), *location) else {
            let index = location.and_then(|location| usize::try_from(location).ok());
            let value = index.and_then(|index| vertices.constants.get(index));
            return Some(Input::Constant(value.copied().unwrap_or([0.0, 0.0, 0.0, 1.0])));
        };
        let Array { components, stride, divisor, .. } = *array;
        let format = array.format?;
        let (bytes, offset, buffer) = match &array.buffer {
            Some(buffer) => {
                let (bytes, id) = held.bytes(buffer)?;
                (bytes, array.from(drawing.base())?, Some(id))
            }
            None => (copies.get(number + 1)?.as_slice(), 0, None),
        };
        let attribute = Attribute { bytes, offset, stride, components, format };
        Some(Input::Array { attribute, buffer, divisor })
    };
    locations.iter().enumerate().map(input).collect()
}

fn index_format(kind: u32) -> Option<IndexFormat> {
    Some(match kind {
        gl::UNSIGNED_BYTE => IndexFormat::U8,
        gl::UNSIGNED_SHORT => IndexFormat::U16,
        gl::UNSIGNED_INT => IndexFormat::U32,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(pointer: usize) -> Array {
        Array { enabled: true, components: 2, stride: 12, pointer, ..Array::default() }
    }

    #[test]
    fn client_arrays_are_read_up_to_the_last_vertex_and_not_beyond() {
        let memory: Vec<f32> = (0..8_u8).map(f32::from).collect();
        let mut vertices = Vertices::default();
        *vertices.attribute(0).unwrap() = array(memory.as_ptr() as usize);
        let indices = [0_u16, 2, 1];
        let source =
            VertexSource::Elements { kind: gl::UNSIGNED_SHORT, pointer: indices.as_ptr() as usize, base: 0 };
        let drawing = Drawing::new(gl::TRIANGLES, source, 3, 1);
        let (held, mut copies) = (Held::new(vertices.bound(), &[Some(0)]), Copies::new());
        assert!(copy(&drawing, vertices.bound(), &[Some(0)], &held, &mut copies));
        assert_eq!(copies[1].len(), 2 * 12 + 8, "the last vertex has no stride");
        let inputs = inputs(&drawing, &vertices, &[Some(0), None], &held, &copies).unwrap();
        let [Input::Array { attribute, buffer: None, .. }, Input::Constant(_)] = inputs.as_slice() else {
            panic!("{inputs:?}");
        };
        assert_eq!(attribute.vertex(2)[..2], [6.0, 7.0]);
    }

    #[test]
    fn a_base_vertex_moves_vertices_and_not_instances() {
        let memory: Vec<f32> = (0..20_u8).map(f32::from).collect();
        let at = memory.as_ptr() as usize;
        let mut vertices = Vertices::default();
        *vertices.attribute(0).unwrap() = array(at + 12);
        *vertices.attribute(1).unwrap() = Array { divisor: 1, ..array(at) };
        let indices = [1_u8, 2];
        let locations = [Some(0), Some(1)];
        for (base, first) in [(2, 12.0), (-1, 3.0)] {
            let source =
                VertexSource::Elements { kind: gl::UNSIGNED_BYTE, pointer: indices.as_ptr() as usize, base };
            let drawing = Drawing::new(gl::LINES, source, 2, 1);
            let (held, mut copies) = (Held::new(vertices.bound(), &locations), Copies::new());
            assert!(copy(&drawing, vertices.bound(), &locations, &held, &mut copies));
            let inputs = inputs(&drawing, &vertices, &locations, &held, &copies).unwrap();
            let [Input::Array { attribute, .. }, Input::Array { attribute: instance, .. }] =
                inputs.as_slice()
            else {
                panic!("{inputs:?}");
            };
            assert_eq!((attribute.vertex(1)[0], instance.vertex(0)[0]), (first, 0.0));
        }
        assert_eq!(array(8).from(-1), None, "nothing lies before the beginning");
    }

    #[test]
    fn one_buffer_for_everything_is_locked_once() {
        let buffer = Arc::new(Buffer::new());
        buffer.lock().replace(64, Some(&[0; 64]), true);
        let mut vertices = Vertices::default();
        for location in 0..2 {
            *vertices.attribute(location).unwrap() = Array { buffer: Some(buffer.clone()), ..array(8) };
        }
        vertices.current().elements = Some(buffer.clone());
        let locations = [Some(0), Some(1)];
        let held = Held::new(vertices.bound(), &locations);
        let source = VertexSource::Elements { kind: gl::UNSIGNED_BYTE, pointer: 60, base: 0 };
        let drawing = Drawing::new(gl::TRIANGLES, source, 3, 1);
        let mut copies = Copies::new();
        assert!(copy(&drawing, vertices.bound(), &locations, &held, &mut copies));
        let (elements, index_buffer) = elements(&drawing, vertices.bound(), &held, &copies).unwrap();
        assert_eq!([elements.index(3), elements.index(4)], [Some(0), None]);
        assert_eq!(index_buffer.map(|(_, offset)| offset), Some(60));
        assert_eq!(inputs(&drawing, &vertices, &locations, &held, &copies).unwrap().len(), 2);
    }

    #[test]
    fn what_cannot_be_had_is_unknown() {
        let mut vertices = Vertices::default();
        *vertices.attribute(0).unwrap() = array(64);
        let draw = |source, count| Drawing::new(gl::TRIANGLES, source, count, 1);
        let held = Held::new(vertices.bound(), &[Some(0)]);
        let mut copies = Copies::new();
        for drawing in [
            draw(VertexSource::Arrays { first: 0 }, 3),
            draw(VertexSource::Arrays { first: -1 }, 3),
            draw(VertexSource::Arrays { first: i32::MAX }, i32::MAX),
            draw(VertexSource::Elements { kind: 7, pointer: 0, base: 0 }, 3),
            draw(VertexSource::Elements { kind: gl::UNSIGNED_INT, pointer: 8, base: 0 }, i32::MAX),
            draw(VertexSource::Unknown { at: 0 }, 3),
        ] {
            assert!(!copy(&drawing, vertices.bound(), &[Some(0)], &held, &mut copies), "{drawing:?}");
        }
    }
}
