//! The bytes of a message: a head, then fields by number.

use super::{Invalid, NAME_MAX};
use crate::VERSION;

pub(super) const MAGIC: [u8; 4] = *b"takt";
pub(super) const HEAD: usize = 8;

pub(super) mod kind {
    pub(crate) const HELLO: u16 = 1;
    pub(crate) const WELCOME: u16 = 2;
    pub(crate) const REFUSED: u16 = 3;
    pub(crate) const ASK: u16 = 4;
    pub(crate) const ANSWER: u16 = 5;
}

pub(super) mod field {
    pub(crate) const TEXT: u16 = 1;
    pub(crate) const PRIORITY: u16 = 2;
    pub(crate) const FPS: u16 = 3;
    pub(crate) const ETPF: u16 = 4;
    pub(crate) const MAX_SLICE: u16 = 5;
    pub(crate) const APP: u16 = 6;
    pub(crate) const MORE: u16 = 7;
    pub(crate) const PACED: u16 = 8;
    pub(crate) const AGAIN: u16 = 9;
    pub(crate) const SPIN: u16 = 10;
    pub(crate) const PROTECTED: u16 = 11;
    pub(crate) const DISPLAY: u16 = 12;
    pub(crate) const PERIOD: u16 = 13;
    pub(crate) const DEADLINE: u16 = 14;
    pub(crate) const RUNTIME: u16 = 15;
    pub(crate) const HARD: u16 = 16;
    pub(crate) const GPU: u16 = 17;
    pub(crate) const ON_CPU: u16 = 18;
    pub(crate) const GUARANTEED: u16 = 19;
    pub(crate) const OWN: u16 = 20;
    pub(crate) const GAPS: u16 = 21;
    pub(crate) const GAP: u16 = 22;
    pub(crate) const DIVISIBLE: u16 = 23;
    pub(crate) const FEEDS: u16 = 24;
    pub(crate) const SHARES: u16 = 25;
    pub(crate) const BY_DISPLAY: u16 = 26;
    pub(crate) const PACING: u16 = 27;
    pub(crate) const CONTRACT: u16 = 28;
    pub(crate) const SLICES: u16 = 29;
    pub(crate) const FAMILY: u16 = 30;
    pub(crate) const COUNT: usize = 31;
}

/// Puts a message together.
pub(super) struct Encoder {
    pub(super) bytes: Vec<u8>,
}

impl Encoder {
    pub(super) fn new(kind: u16) -> Self {
        let mut bytes = Vec::with_capacity(HEAD);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        Self { bytes }
    }

    pub(super) fn field(mut self, number: u16, value: &[u8]) -> Self {
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.bytes.extend(number.to_le_bytes());
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(&value[..length.into()]);
        self
    }

    pub(super) fn optional<const N: usize>(self, number: u16, value: Option<[u8; N]>) -> Self {
        match value {
            Some(value) => self.field(number, &value),
            None => self,
        }
    }

    pub(super) fn name(self, number: u16, name: Option<&str>) -> Self {
        match name {
            Some(name) => self.text_field(number, name, NAME_MAX),
            None => self,
        }
    }

    pub(super) fn text(self, text: &str, most: usize) -> Self {
        self.text_field(field::TEXT, text, most)
    }

    pub(super) fn text_field(self, number: u16, text: &str, most: usize) -> Self {
        let text = &text[..text.floor_char_boundary(most)];
        self.field(number, text.as_bytes())
    }
}

/// The fields of a message by number.
pub(super) struct Fields<'a>([Option<&'a [u8]>; field::COUNT]);

impl<'a> Fields<'a> {
    pub(super) fn read(mut bytes: &'a [u8]) -> Result<Self, Invalid> {
        let mut fields = [None; field::COUNT];
        while !bytes.is_empty() {
            let Some((&[n0, n1, l0, l1], rest)) = bytes.split_first_chunk::<4>() else {
                return Err(Invalid::Field(0));
            };
            let number = u16::from_le_bytes([n0, n1]);
            let length = u16::from_le_bytes([l0, l1]).into();
            let (value, rest) = rest.split_at_checked(length).ok_or(Invalid::Field(number))?;
            if let Some(slot) = fields.get_mut(usize::from(number))
                && slot.replace(value).is_some()
            {
                return Err(Invalid::Field(number));
            }
            bytes = rest;
        }
        Ok(Self(fields))
    }

    pub(super) fn get(&self, number: u16) -> Option<&'a [u8]> {
        self.0.get(usize::from(number)).copied().flatten()
    }

    pub(super) fn optional<const N: usize>(&self, number: u16) -> Result<Option<[u8; N]>, Invalid> {
        let damaged = |_| Invalid::Field(number);
        self.get(number).map(<[u8; N]>::try_from).transpose().map_err(damaged)
    }

    pub(super) fn text(&self, most: usize) -> Result<String, Invalid> {
        self.text_field(field::TEXT, most)?.ok_or(Invalid::Missing(field::TEXT))
    }

    pub(super) fn text_field(&self, number: u16, most: usize) -> Result<Option<String>, Invalid> {
        match self.get(number).map(str::from_utf8) {
            None => Ok(None),
            Some(Ok(text)) if text.len() <= most => Ok(Some(text.to_owned())),
            Some(_) => Err(Invalid::Field(number)),
        }
    }
}
