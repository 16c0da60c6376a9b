//! Thrift's compact protocol, as far as Parquet's metadata needs it; writing only.

/// A structure under construction. Fields must come in the order of their numbers.
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

/// Types of fields and elements.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Struct {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), last: 0 }
    }

    /// Ends the structure.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    pub(super) fn i32(mut self, field: u8, value: i32) -> Self {
        self.field(field, I32);
        zigzag(&mut self.bytes, value.into());
        self
    }

    pub(super) fn i64(mut self, field: u8, value: i64) -> Self {
        self.field(field, I64);
        zigzag(&mut self.bytes, value);
        self
    }

    pub(super) fn text(mut self, field: u8, value: &str) -> Self {
        self.field(field, BINARY);
        binary(&mut self.bytes, value);
        self
    }

    pub(super) fn inner(mut self, field: u8, value: Self) -> Self {
        self.field(field, STRUCT);
        self.bytes.extend(value.finish());
        self
    }

    pub(super) fn structs(mut self, field: u8, values: Vec<Self>) -> Self {
        self.list(field, STRUCT, values.len());
        values.into_iter().for_each(|value| self.bytes.extend(value.finish()));
        self
    }

    pub(super) fn i32s(mut self, field: u8, values: &[i32]) -> Self {
        self.list(field, I32, values.len());
        values.iter().for_each(|value| zigzag(&mut self.bytes, (*value).into()));
        self
    }

    pub(super) fn texts(mut self, field: u8, values: &[&str]) -> Self {
        self.list(field, BINARY, values.len());
        values.iter().for_each(|value| binary(&mut self.bytes, value));
        self
    }

    fn field(&mut self, field: u8, kind: u8) {
        // All structures of Parquet have fields less than 16 apart.
        debug_assert!(field > self.last && field - self.last < 16);
        self.bytes.push((field - self.last) << 4 | kind);
        self.last = field;
    }

    fn list(&mut self, field: u8, kind: u8, length: usize) {
        self.field(field, LIST);
        match u8::try_from(length) {
            Ok(short @ 0..15) => self.bytes.push(short << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                varint(&mut self.bytes, length as u64);
            }
        }
    }
}

fn binary(out: &mut Vec<u8>, text: &str) {
    varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Small magnitudes of either sign become small numbers.
fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Seven bits at a time, the lowest first.
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}
