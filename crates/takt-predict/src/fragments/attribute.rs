//! Vertex positions and indices as the bytes an app handed to GL.
//!
//! The bytes are an app's, so nothing about them is believed: what lies outside the buffer reads
//! as zero, as robust GL contexts do.

/// How one component of an attribute is stored.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum Format {
    /// `GL_FLOAT`.
    #[default]
    F32,
    /// `GL_HALF_FLOAT`.
    F16,
    /// `GL_FIXED`: 16.16 bits.
    Fixed,
    /// `GL_BYTE`.
    I8,
    /// `GL_UNSIGNED_BYTE`.
    U8,
    /// `GL_SHORT`.
    I16,
    /// `GL_UNSIGNED_SHORT`.
    U16,
    /// `GL_INT`.
    I32,
    /// `GL_UNSIGNED_INT`.
    U32,
    /// `GL_BYTE`, scaled to −1 … 1.
    I8Normalized,
    /// `GL_UNSIGNED_BYTE`, scaled to 0 … 1.
    U8Normalized,
    /// `GL_SHORT`, scaled to −1 … 1.
    I16Normalized,
    /// `GL_UNSIGNED_SHORT`, scaled to 0 … 1.
    U16Normalized,
    /// `GL_INT`, scaled to −1 … 1.
    I32Normalized,
    /// `GL_UNSIGNED_INT`, scaled to 0 … 1.
    U32Normalized,
    /// `GL_INT_2_10_10_10_REV`: all four components in one word.
    I2101010,
    /// `GL_UNSIGNED_INT_2_10_10_10_REV`.
    U2101010,
    /// `GL_INT_2_10_10_10_REV`, scaled to −1 … 1.
    I2101010Normalized,
    /// `GL_UNSIGNED_INT_2_10_10_10_REV`, scaled to 0 … 1.
    U2101010Normalized,
}

impl Format {
    /// Bytes of a vertex with so many components; more than four are four.
    pub fn vertex_size(self, components: u8) -> usize {
        let component = match self {
            Self::F32 | Self::Fixed | Self::I32 | Self::U32 | Self::I32Normalized | Self::U32Normalized => 4,
            Self::F16 | Self::I16 | Self::U16 | Self::I16Normalized | Self::U16Normalized => 2,
            Self::I8 | Self::U8 | Self::I8Normalized | Self::U8Normalized => 1,
            Self::I2101010 | Self::U2101010 | Self::I2101010Normalized | Self::U2101010Normalized => {
                return 4;
            }
        };
        component * usize::from(components.min(4))
    }

    /// Reads the components of a vertex; those that are not there stay as they are.
    fn read(self, bytes: &[u8], vertex: &mut [f32]) -> Option<()> {
        if let Some(components) = self.unpack(bytes) {
            vertex.iter_mut().zip(components?).for_each(|(place, value)| *place = value);
            return Some(());
        }
        for (place, component) in vertex.iter_mut().zip(bytes.chunks_exact(self.vertex_size(1))) {
            *place = self.read_one(component)?;
        }
        Some(())
    }

    /// The components of a vertex that are in one word, if this is such a format and there is one.
    fn unpack(self, bytes: &[u8]) -> Option<Option<[f32; 4]>> {
        let (signed, normalized) = match self {
            Self::I2101010 => (true, false),
            Self::U2101010 => (false, false),
            Self::I2101010Normalized => (true, true),
            Self::U2101010Normalized => (false, true),
            _ => return None,
        };
        let component = |word: u32, (low, bits): (u32, u32)| {
            let top = word << (32 - low - bits);
            let value =
                if signed { (top.cast_signed() >> (32 - bits)) as f32 } else { (top >> (32 - bits)) as f32 };
            let largest = (1u32 << (bits - u32::from(signed))) - 1;
            if normalized { (value / largest as f32).max(-1.0) } else { value }
        };
        let word = bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        Some(word.map(|word| [(0, 10), (10, 10), (20, 10), (30, 2)].map(|place| component(word, place))))
    }

    /// Reads one component from the start of `bytes`.
    fn read_one(self, bytes: &[u8]) -> Option<f32> {
        let byte = || bytes.first().copied();
        let short = || bytes.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes));
        let word = || bytes.first_chunk().copied();
        Some(match self {
            Self::F32 => f32::from_ne_bytes(word()?),
            Self::F16 => half(short()?),
            Self::Fixed => i32::from_ne_bytes(word()?) as f32 / 65536.0,
            Self::I8 => f32::from(byte()?.cast_signed()),
            Self::U8 => f32::from(byte()?),
            Self::I16 => f32::from(short()?.cast_signed()),
            Self::U16 => f32::from(short()?),
            Self::I32 => i32::from_ne_bytes(word()?) as f32,
            Self::U32 => u32::from_ne_bytes(word()?) as f32,
            Self::I8Normalized => (f32::from(byte()?.cast_signed()) / 127.0).max(-1.0),
            Self::U8Normalized => f32::from(byte()?) / 255.0,
            Self::I16Normalized => (f32::from(short()?.cast_signed()) / 32767.0).max(-1.0),
            Self::U16Normalized => f32::from(short()?) / 65535.0,
            Self::I32Normalized => (i32::from_ne_bytes(word()?) as f32 / i32::MAX as f32).max(-1.0),
            Self::U32Normalized => u32::from_ne_bytes(word()?) as f32 / u32::MAX as f32,
            Self::I2101010 | Self::U2101010 | Self::I2101010Normalized | Self::U2101010Normalized => {
                return None;
            }
        })
    }
}

/// A vertex attribute in a buffer or in client memory.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Attribute<'a> {
    /// The buffer.
    pub bytes: &'a [u8],
    /// Where the first vertex starts.
    pub offset: usize,
    /// Bytes from one vertex to the next; zero means that they lie side by side, as in GL.
    pub stride: usize,
    /// Components per vertex, 1 to 4; missing ones are 0, 0, 1.
    pub components: u8,
    /// How they are stored.
    pub format: Format,
}

impl Attribute<'_> {
    /// The vertex with this number; the origin if it lies outside the buffer.
    #[inline]
    pub fn vertex(&self, index: u32) -> [f32; 4] {
        self.read(index).unwrap_or(OUTSIDE)
    }

    /// Vertices that lie in the buffer, up to its last byte.
    pub(super) fn vertices(&self) -> usize {
        let size = self.format.vertex_size(self.components);
        let stride = if self.stride == 0 { size } else { self.stride };
        let last = self.bytes.len().checked_sub(size).and_then(|last| last.checked_sub(self.offset));
        last.map_or(0, |last| last / stride.max(1) + 1)
    }

    /// Bytes from this vertex on and the stride, if all that is read are three floats.
    pub(super) fn floats(&self, first: u32) -> Option<(&[u8], usize)> {
        if self.format != Format::F32 || self.components != 3 {
            return None;
        }
        let stride = if self.stride == 0 { 12 } else { self.stride };
        let start = stride.checked_mul(usize::try_from(first).ok()?)?.checked_add(self.offset)?;
        Some((self.bytes.get(start..)?, stride))
    }

    /// Three floats of [`floats`](Self::floats); zero beyond the end.
    #[inline]
    pub(super) fn three(bytes: &[u8], start: usize) -> [f32; 3] {
        let read = bytes.get(start..).and_then(|rest| rest.first_chunk::<12>());
        read.map_or([0.0; 3], |bytes| {
            let (words, _) = bytes.as_chunks::<4>();
            [words[0], words[1], words[2]].map(f32::from_ne_bytes)
        })
    }

    fn read(&self, index: u32) -> Option<[f32; 4]> {
        let size = self.format.vertex_size(self.components);
        let stride = if self.stride == 0 { size } else { self.stride };
        let start = stride.checked_mul(usize::try_from(index).ok()?)?.checked_add(self.offset)?;
        let bytes = self.bytes.get(start..start.checked_add(size)?)?;
        let mut vertex = OUTSIDE;
        if self.format == Format::F32 {
            // Nearly all positions, and nearly all have three components: spelt out, reading them
            // is several times faster than in a loop.
            let (words, _) = bytes.as_chunks::<4>();
            let float = |word: &[u8; 4]| f32::from_ne_bytes(*word);
            if let [x, y, z] = words {
                return Some([float(x), float(y), float(z), 1.0]);
            }
            vertex.iter_mut().zip(words).for_each(|(value, word)| *value = float(word));
            return Some(vertex);
        }
        self.format.read(bytes, &mut vertex[..usize::from(self.components.min(4))])?;
        Some(vertex)
    }
}

/// How indices are stored.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum IndexFormat {
    /// `GL_UNSIGNED_BYTE`.
    U8,
    /// `GL_UNSIGNED_SHORT`.
    U16,
    /// `GL_UNSIGNED_INT`.
    U32,
}

impl IndexFormat {
    /// Bytes of an index.
    pub fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 => 4,
        }
    }
}

/// Where the vertices of a draw come from.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Elements<'a> {
    /// `glDrawArrays`: consecutive vertices.
    Arrays {
        /// The first of them.
        first: u32,
    },
    /// `glDrawElements`: through indices.
    Indexed {
        /// Index bytes, from the first index of the draw on.
        bytes: &'a [u8],
        /// How they are stored.
        format: IndexFormat,
    },
}

impl Elements<'_> {
    /// Elements whose vertices lie in memory, if there are so many vertices in their buffer;
    /// those after them have none.
    pub(super) fn in_memory(&self, vertices: usize) -> usize {
        match *self {
            Self::Arrays { first } => vertices.saturating_sub(usize::try_from(first).unwrap_or(usize::MAX)),
            Self::Indexed { bytes, format } => bytes.len() / format.size(),
        }
    }

    /// The index of the `n`-th element; none if it lies outside the index buffer.
    pub fn index(&self, n: u32) -> Option<u32> {
        let at = usize::try_from(n).ok()?;
        match *self {
            Self::Arrays { first } => first.checked_add(n),
            Self::Indexed { bytes, format } => match format {
                IndexFormat::U8 => bytes.get(at).copied().map(u32::from),
                IndexFormat::U16 => {
                    let rest = bytes.get(at.checked_mul(2)?..)?;
                    rest.first_chunk().map(|bytes| u32::from(u16::from_ne_bytes(*bytes)))
                }
                IndexFormat::U32 => {
                    let rest = bytes.get(at.checked_mul(4)?..)?;
                    rest.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
                }
            },
        }
    }
}

/// What GL reads where nothing was given.
const OUTSIDE: [f32; 4] = [0.0, 0.0, 0.0, 1.0];

/// A half-precision number.
fn half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from((bits >> 10) & 0x1f);
    let fraction = f32::from(bits & 0x3ff) / 1024.0;
    let magnitude = match exponent {
        0 => fraction * 2.0f32.powi(-14),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1.0 + fraction) * 2.0f32.powi(exponent - 15),
    };
    sign * magnitude
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(bytes: &[u8], components: u8, format: Format) -> Attribute<'_> {
        Attribute { bytes, offset: 0, stride: 0, components, format }
    }

    #[test]
    fn missing_components_are_zero_and_one() {
        let bytes: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_ne_bytes()).collect();
        assert_eq!(attribute(&bytes, 2, Format::F32).vertex(1), [3.0, 4.0, 0.0, 1.0]);
        assert_eq!(attribute(&bytes, 4, Format::F32).vertex(0), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn outside_the_buffer_is_the_origin() {
        let bytes = [0x7fu8; 10];
        for index in [2, 1000, u32::MAX] {
            assert_eq!(attribute(&bytes, 3, Format::I16).vertex(index), OUTSIDE);
        }
        let far = Attribute { offset: usize::MAX, stride: usize::MAX, ..attribute(&bytes, 9, Format::U8) };
        assert_eq!(far.vertex(u32::MAX), OUTSIDE);
    }

    #[test]
    fn vertices_are_counted_as_they_are_read() {
        for (len, offset, stride, components) in [
            (0, 0, 0, 3),
            (11, 0, 0, 3),
            (24, 0, 0, 3),
            (35, 0, 0, 3),
            (40, 5, 7, 1),
            (9, 9, 0, 0),
            (9, 10, 3, 0),
        ] {
            let bytes: Vec<u8> = vec![1; len];
            let all = Attribute { offset, stride, ..attribute(&bytes, components, Format::F32) };
            let read = (0..100).take_while(|index| all.read(*index).is_some()).count();
            assert_eq!(
                all.vertices(),
                if components == 0 && stride == 0 { 1 } else { read },
                "{len} {offset}"
            );
        }
    }

    #[test]
    fn small_formats_are_scaled() {
        assert_eq!(attribute(&[255, 0], 1, Format::U8Normalized).vertex(0)[0], 1.0);
        assert_eq!(attribute(&[0x80, 0], 1, Format::I8Normalized).vertex(0)[0], -1.0);
        assert_eq!(attribute(&0x3c00u16.to_ne_bytes(), 1, Format::F16).vertex(0)[0], 1.0);
        assert_eq!(attribute(&0xc000u16.to_ne_bytes(), 1, Format::F16).vertex(0)[0], -2.0);
        assert_eq!(attribute(&0x0001_8000i32.to_ne_bytes(), 1, Format::Fixed).vertex(0)[0], 1.5);
    }

    #[test]
    fn four_components_fit_in_one_word() {
        let word = |x: i32, y: i32, z: i32, w: i32| {
            let bits = |value: i32, count: u32| value.cast_unsigned() & ((1 << count) - 1);
            (bits(x, 10) | bits(y, 10) << 10 | bits(z, 10) << 20 | bits(w, 2) << 30).to_ne_bytes()
        };
        let bytes: Vec<u8> = [word(1, 2, 3, 1), word(-512, 511, -1, -2)].concat();
        let read = |format, components, index| attribute(&bytes, components, format).vertex(index);
        assert_eq!(read(Format::I2101010, 4, 0), [1.0, 2.0, 3.0, 1.0]);
        assert_eq!(read(Format::I2101010, 4, 1), [-512.0, 511.0, -1.0, -2.0]);
        assert_eq!(read(Format::U2101010, 4, 1), [512.0, 511.0, 1023.0, 2.0]);
        assert_eq!(read(Format::I2101010Normalized, 4, 1), [-1.0, 1.0, -1.0 / 511.0, -1.0]);
        assert_eq!(read(Format::U2101010Normalized, 3, 1), [512.0 / 1023.0, 511.0 / 1023.0, 1.0, 1.0]);
        assert_eq!(read(Format::U2101010, 4, 2), OUTSIDE);
    }

    #[test]
    fn indices_stop_at_the_end_of_their_buffer() {
        let bytes: Vec<u8> = [7u16, 8, 9].iter().flat_map(|value| value.to_ne_bytes()).collect();
        let elements = Elements::Indexed { bytes: &bytes, format: IndexFormat::U16 };
        assert_eq!([0, 2, 3].map(|n| elements.index(n)), [Some(7), Some(9), None]);
        assert_eq!(Elements::Arrays { first: u32::MAX }.index(1), None);
    }
}
