//! Reading and writing of variables and their parts.

use super::{Lowerer, Value};
use crate::glsl::ast::{ExprId, ExprKind};
use crate::glsl::code::{Id, UniformRow};
use crate::glsl::error::{ErrorKind, GlslError, Result};
use crate::glsl::limits::PLACES_MAX;
use crate::glsl::op::Op;
use crate::glsl::token::Name;
use crate::glsl::types::{Base, Type};

/// Something to read a part of. A part of a large array must not cost a copy of the array.
enum Source {
    Slots { slot: u32, uniform: Option<u32> },
    Row { index: Id, row: UniformRow },
    Ids(Vec<Id>),
}

/// Where an assignment goes. A computed subscript makes several places, each with its condition.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) ty: Type,
    spots: Vec<(Option<Id>, u32)>,
    swizzle: Option<Vec<u8>>,
}

/// A part of a type: its own type and how many scalars come before it.
struct Part {
    ty: Type,
    offset: u32,
}

impl Lowerer<'_> {
    /// Reads a variable, a member, an element or a swizzle.
    pub(super) fn read_path(&mut self, id: ExprId) -> Result<Value> {
        let (ty, source) = self.source(id)?;
        let size = self.size(self.tree.expr(id).line, ty)?;
        self.spend(self.tree.expr(id).line, size as usize)?;
        let ids = match source {
            Source::Ids(ids) => ids,
            Source::Slots { slot, .. } => (slot..slot + size).map(|slot| self.read(slot)).collect(),
            Source::Row { index, row } => (0..size)
                .map(|part| self.code.uniform_at(index, UniformRow { first: row.first + part, ..row }))
                .collect::<Result<_>>()?,
        };
        Ok(Value { ty, ids })
    }

    fn source(&mut self, id: ExprId) -> Result<(Type, Source)> {
        let tree = self.tree;
        let line = tree.expr(id).line;
        match &tree.expr(id).kind {
            ExprKind::Variable(name) => {
                let found = self.variable(line, *name)?;
                Ok((found.ty, Source::Slots { slot: found.slot, uniform: found.uniform }))
            }
            ExprKind::Field(base, name) => {
                let (ty, source) = self.nested(line, |lowerer| lowerer.source(*base))?;
                if matches!(ty.base, Base::Struct(_)) {
                    let part = self.member(line, ty, *name)?;
                    return Ok((part.ty, self.narrow(line, source, &part)?));
                }
                let picked = self.swizzle(line, ty, *name)?;
                let ids = self.ids_of(line, ty, source)?;
                let ids: Vec<Id> = picked.iter().map(|component| ids[usize::from(*component)]).collect();
                Ok((swizzled(ty, ids.len()), Source::Ids(ids)))
            }
            ExprKind::Index(base, index) => {
                let (ty, source) = self.nested(line, |lowerer| lowerer.source(*base))?;
                let index = self.expr(*index)?;
                self.element(line, ty, source, &index)
            }
            _ => {
                let value = self.expr(id)?;
                Ok((value.ty, Source::Ids(value.ids)))
            }
        }
    }

    fn ids_of(&mut self, line: u32, ty: Type, source: Source) -> Result<Vec<Id>> {
        let part = Part { ty, offset: 0 };
        match self.narrow(line, source, &part)? {
            Source::Ids(ids) => Ok(ids),
            Source::Slots { slot, .. } => {
                let size = self.size(line, ty)?;
                self.spend(line, size as usize)?;
                Ok((slot..slot + size).map(|slot| self.read(slot)).collect())
            }
            Source::Row { index, row } => (0..self.size(line, ty)?)
                .map(|part| self.code.uniform_at(index, UniformRow { first: row.first + part, ..row }))
                .collect(),
        }
    }

    fn narrow(&mut self, line: u32, source: Source, part: &Part) -> Result<Source> {
        Ok(match source {
            Source::Slots { slot, uniform } => {
                Source::Slots { slot: slot + part.offset, uniform: uniform.map(|word| word + part.offset) }
            }
            Source::Row { index, row } => {
                Source::Row { index, row: UniformRow { first: row.first + part.offset, ..row } }
            }
            Source::Ids(ids) => {
                let start = part.offset as usize;
                let end = start + self.size(line, part.ty)? as usize;
                Source::Ids(ids[start..end].to_vec())
            }
        })
    }

    fn element(&mut self, line: u32, ty: Type, source: Source, index: &Value) -> Result<(Type, Source)> {
        let (element, length) = element_type(line, ty)?;
        let size = self.size(line, element)?;
        let index = single_integer(line, index)?;
        if let Some(index) = self.code.constant(index) {
            // Out of bounds is undefined; any element will do, but none outside.
            let part = Part { ty: element, offset: index.min(length - 1) * size };
            return Ok((element, self.narrow(line, source, &part)?));
        }
        if let Source::Slots { uniform: Some(first), .. } = source {
            let row = UniformRow { first, stride: size, length };
            return Ok((element, Source::Row { index, row }));
        }
        let ids = self.ids_of(line, ty, source)?;
        self.spend(line, ids.len())?;
        let mut chosen = ids[..size as usize].to_vec();
        for (number, candidate) in (1..length).zip(ids.chunks(size.max(1) as usize).skip(1)) {
            let number = self.code.bits(number)?;
            let here = self.code.binary(Op::BEqual, index, number)?;
            self.code.begin_group();
            for (chosen, candidate) in chosen.iter_mut().zip(candidate) {
                *chosen = self.code.select(here, *candidate, *chosen)?;
            }
        }
        Ok((element, Source::Ids(chosen)))
    }

    fn member(&mut self, line: u32, ty: Type, name: Name) -> Result<Part> {
        let text = self.text(name);
        let found = match (ty.base, ty.array) {
            (Base::Struct(number), None) => {
                self.structs[usize::from(number)].fields.iter().find(|field| field.name == text)
            }
            _ => None,
        };
        let found = found.map(|field| Part { ty: field.ty, offset: field.offset });
        found.ok_or_else(|| GlslError::new(line, ErrorKind::UnknownName(text.to_owned())))
    }

    /// The components that a swizzle names.
    fn swizzle(&self, line: u32, ty: Type, name: Name) -> Result<Vec<u8>> {
        let text = self.text(name);
        let bad = || GlslError::types(line, format!("no component `{text}` in {ty}"));
        let Some((_, 1, rows)) = ty.shape() else {
            return Err(bad());
        };
        let component = |letter: char| {
            let place = ["xyzw", "rgba", "stpq"].iter().find_map(|set| set.find(letter));
            place.and_then(|place| u8::try_from(place).ok()).filter(|place| *place < rows)
        };
        let picked: Option<Vec<u8>> = text.chars().map(component).collect();
        picked.filter(|picked| (1..=4).contains(&picked.len())).ok_or_else(bad)
    }

    /// Where an assignment to this expression goes.
    pub(super) fn place(&mut self, id: ExprId) -> Result<Place> {
        let tree = self.tree;
        let line = tree.expr(id).line;
        match &tree.expr(id).kind {
            ExprKind::Variable(name) => {
                let found = self.variable(line, *name)?;
                if found.uniform.is_some() {
                    return Err(GlslError::types(line, "assignment to a uniform"));
                }
                Ok(Place { ty: found.ty, spots: vec![(None, found.slot)], swizzle: None })
            }
            ExprKind::Field(base, name) => {
                let mut place = self.nested(line, |lowerer| lowerer.place(*base))?;
                if matches!(place.ty.base, Base::Struct(_)) {
                    let part = self.member(line, place.ty, *name)?;
                    place.ty = part.ty;
                    place.spots.iter_mut().for_each(|(_, slot)| *slot += part.offset);
                    return Ok(place);
                }
                let picked = self.swizzle(line, place.ty, *name)?;
                place.ty = swizzled(place.ty, picked.len());
                place.swizzle = Some(match place.swizzle {
                    None => picked,
                    Some(outer) => picked.iter().map(|component| outer[usize::from(*component)]).collect(),
                });
                Ok(place)
            }
            ExprKind::Index(base, index) => {
                let place = self.nested(line, |lowerer| lowerer.place(*base))?;
                let index = self.expr(*index)?;
                self.place_element(line, place, &index)
            }
            _ => Err(GlslError::types(line, "this cannot be assigned to")),
        }
    }

    fn place_element(&mut self, line: u32, place: Place, index: &Value) -> Result<Place> {
        let (ty, length) = element_type(line, place.ty)?;
        let size = self.size(line, ty)?;
        let index = single_integer(line, index)?;
        if place.swizzle.is_some() {
            return Err(GlslError::types(line, "subscript of a swizzle cannot be assigned to"));
        }
        let mut spots = Vec::new();
        if let Some(index) = self.code.constant(index) {
            let offset = index.min(length - 1) * size;
            spots.extend(place.spots.iter().map(|(condition, slot)| (*condition, slot + offset)));
            return Ok(Place { ty, spots, swizzle: None });
        }
        if place.spots.len().saturating_mul(length as usize) > PLACES_MAX {
            return Err(GlslError::limit(line, "PLACES_MAX"));
        }
        for number in 0..length {
            let constant = self.code.bits(number)?;
            let here = self.code.binary(Op::BEqual, index, constant)?;
            for (condition, slot) in &place.spots {
                let both = match condition {
                    Some(condition) => self.code.binary(Op::BAnd, *condition, here)?,
                    None => here,
                };
                spots.push((Some(both), slot + number * size));
            }
        }
        Ok(Place { ty, spots, swizzle: None })
    }

    /// The slots of a spot, in the order of the value's scalars.
    fn spot_slots(&self, line: u32, place: &Place, slot: u32) -> Result<Vec<u32>> {
        Ok(match &place.swizzle {
            Some(picked) => picked.iter().map(|component| slot + u32::from(*component)).collect(),
            None => (slot..slot + self.size(line, place.ty)?).collect(),
        })
    }

    pub(super) fn load(&mut self, line: u32, place: &Place) -> Result<Value> {
        let mut chosen: Vec<Id> = Vec::new();
        for (condition, slot) in &place.spots {
            let slots = self.spot_slots(line, place, *slot)?;
            self.spend(line, slots.len())?;
            let ids: Vec<Id> = slots.iter().map(|slot| self.read(*slot)).collect();
            match condition {
                Some(condition) if !chosen.is_empty() => {
                    for (chosen, id) in chosen.iter_mut().zip(ids) {
                        *chosen = self.code.select(*condition, id, *chosen)?;
                    }
                }
                _ => chosen = ids,
            }
        }
        Ok(Value { ty: place.ty, ids: chosen })
    }

    pub(super) fn store(&mut self, line: u32, place: &Place, value: &Value) -> Result<()> {
        if place.ty != value.ty {
            return Err(GlslError::types(line, format!("{} assigned to {}", value.ty, place.ty)));
        }
        for (condition, slot) in &place.spots {
            let slots = self.spot_slots(line, place, *slot)?;
            self.spend(line, slots.len())?;
            self.code.begin_group();
            for (slot, id) in slots.into_iter().zip(&value.ids) {
                let id = match condition {
                    Some(condition) => {
                        let old = self.read(slot);
                        self.code.select(*condition, *id, old)?
                    }
                    None => *id,
                };
                self.write(slot, id);
            }
        }
        Ok(())
    }
}

fn swizzled(ty: Type, count: usize) -> Type {
    let rows = u8::try_from(count).unwrap_or(4);
    ty.shape().map_or(ty, |(scalar, _, _)| Type::vector(scalar, rows))
}

/// The type of elements, and how many there are.
fn element_type(line: u32, ty: Type) -> Result<(Type, u32)> {
    match (ty.array, ty.base) {
        (Some(length @ 1..), base) => Ok((Type::of(base), length)),
        (None, Base::Number { scalar, columns: 1, rows }) if rows > 1 => {
            Ok((Type::vector(scalar, 1), u32::from(rows)))
        }
        (None, Base::Number { scalar, columns, rows }) if columns > 1 => {
            Ok((Type::vector(scalar, rows), u32::from(columns)))
        }
        _ => Err(GlslError::types(line, format!("{ty} has no elements"))),
    }
}

fn single_integer(line: u32, index: &Value) -> Result<Id> {
    match index.ids.as_slice() {
        [id] if [Type::INT, Type::UINT].contains(&index.ty) => Ok(*id),
        _ => Err(GlslError::types(line, format!("subscript of type {}", index.ty))),
    }
}
