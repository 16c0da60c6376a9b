//! Uniforms in blocks: their values lie in buffers, where the driver says.

use super::interface::Uniform;
use super::op::truth;
use super::types::{Base, Scalar};
use super::values::UniformValues;

/// Which member of which block a uniform is, in words of `glGetUniformBlockIndex` and
/// `glGetActiveUniform`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockMember {
    /// The block; an element of an array of blocks is a block of its own, such as `Bones[1]`.
    pub block: String,
    /// The member; elements of an array of blocks share it, such as `Bones.matrix`.
    pub name: String,
}

/// Where a member of a block lies, in bytes: what `glGetActiveUniformsiv` says of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MemberLayout {
    /// From the beginning of the block.
    pub offset: usize,
    /// From one element of an array to the next.
    pub array_stride: usize,
    /// From one column of a matrix to the next, or from one row.
    pub matrix_stride: usize,
    /// Whether matrices lie by rows.
    pub row_major: bool,
}

impl UniformValues {
    /// Takes a uniform from the bytes of its block; says whether it had another value before.
    /// None if it lies beyond them, and then it is not worth anything.
    pub fn read(&mut self, uniform: &Uniform, layout: &MemberLayout, bytes: &[u8]) -> Option<bool> {
        let Base::Number { scalar, columns, rows } = uniform.ty.base else {
            return None;
        };
        let (columns, rows) = (usize::from(columns), usize::from(rows));
        let first = uniform.first as usize;
        let words = self.words.get_mut(first..first + uniform.words as usize)?;
        let mut changed = false;
        for (at, word) in words.iter_mut().enumerate() {
            let (vector, row) = (at / rows, at % rows);
            let (element, column) = (vector / columns, vector % columns);
            let inside = match layout.row_major && columns > 1 {
                true => row.checked_mul(layout.matrix_stride)?.checked_add(column * WORD)?,
                false => column.checked_mul(layout.matrix_stride)?.checked_add(row * WORD)?,
            };
            let start = element.checked_mul(layout.array_stride)?.checked_add(layout.offset)?;
            let place = bytes.get(start.checked_add(inside)?..)?.first_chunk::<WORD>()?;
            let bits = u32::from_ne_bytes(*place);
            let value = if scalar == Scalar::Bool { truth(bits != 0) } else { bits };
            changed |= *word != value;
            *word = value;
        }
        Some(changed)
    }
}

/// Bytes of a number.
const WORD: usize = 4;

#[cfg(test)]
mod tests {
    use super::super::{Interface, Options, Stage, analyse};
    use super::*;

    const SOURCE: &str = "#version 300 es
        struct Light { vec3 at; float power; };
        layout(std140) uniform Scene { layout(row_major) mat3x2 turn; vec2 eyes[2]; bool on; Light lights[2]; };
        layout(shared) uniform Bones { mat4 matrix; } bones[2];
        uniform Only { float one; } only;
        in vec4 at;
        void main() {
            vec2 place = turn * (bones[1].matrix * at).xyz + eyes[1] * lights[1].power + only.one;
            gl_Position = on ? vec4(place, 0, 1) : bones[0].matrix * at;
        }";

    fn interface() -> Interface {
        let options = Options { stage: Stage::Vertex, extensions: &[] };
        analyse(SOURCE, &options).expect("it is a shader").interface
    }

    fn bytes(words: &[f32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn members_have_the_names_that_gl_knows_them_by() {
        let names: Vec<String> = interface()
            .uniforms
            .iter()
            .map(|uniform| {
                let member = uniform.block.as_ref().expect("all are in blocks");
                format!("{} = {} of {}", uniform.name, member.name, member.block)
            })
            .collect();
        assert_eq!(
            names,
            [
                "turn = turn of Scene",
                "eyes = eyes of Scene",
                "on = on of Scene",
                "lights[0].at = lights[0].at of Scene",
                "lights[0].power = lights[0].power of Scene",
                "lights[1].at = lights[1].at of Scene",
                "lights[1].power = lights[1].power of Scene",
                "Bones[0].matrix = Bones.matrix of Bones[0]",
                "Bones[1].matrix = Bones.matrix of Bones[1]",
                "Only.one = Only.one of Only",
            ]
        );
    }

    #[test]
    fn values_are_read_by_strides_and_by_rows() {
        let interface = interface();
        let uniform = |name: &str| interface.uniforms.iter().find(|uniform| uniform.name == name).unwrap();
        let mut values = UniformValues::new(&interface);
        let value = |values: &UniformValues, name: &str| {
            let uniform = uniform(name);
            let words = values.words(&(uniform.first..uniform.first + uniform.words)).iter();
            words.map(|word| f32::from_bits(*word)).collect::<Vec<_>>()
        };

        // Two rows of three columns, 16 bytes apart.
        let rows = bytes(&[9.0, 1.0, 2.0, 3.0, 9.0, 4.0, 5.0, 6.0]);
        let layout =
            MemberLayout { offset: 4, matrix_stride: 16, row_major: true, ..MemberLayout::default() };
        assert_eq!(values.read(uniform("turn"), &layout, &rows), Some(true));
        assert_eq!(value(&values, "turn"), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0], "by columns");
        assert_eq!(values.read(uniform("turn"), &layout, &rows), Some(false), "nothing new");
        let columns = MemberLayout { matrix_stride: 8, row_major: false, offset: 0, ..layout };
        assert_eq!(values.read(uniform("turn"), &columns, &rows), Some(true));
        assert_eq!(value(&values, "turn"), [9.0, 1.0, 2.0, 3.0, 9.0, 4.0]);

        let layout = MemberLayout { offset: 4, array_stride: 16, ..MemberLayout::default() };
        assert_eq!(values.read(uniform("eyes"), &layout, &rows), Some(true));
        assert_eq!(value(&values, "eyes"), [1.0, 2.0, 4.0, 5.0]);
        // Drivers may say anything about what is no matrix.
        let odd = MemberLayout { row_major: true, matrix_stride: 99, ..layout };
        assert_eq!(values.read(uniform("eyes"), &odd, &rows), Some(false));

        let truth = MemberLayout { offset: 4, ..MemberLayout::default() };
        assert_eq!(values.read(uniform("on"), &truth, &[0, 0, 0, 0, 0, 7, 0, 0]), Some(true));
        let on = uniform("on").first;
        assert_eq!(values.words(&(on..on + 1)), [super::truth(true)]);
    }

    #[test]
    fn what_lies_beyond_is_unknown() {
        let interface = interface();
        let matrix = &interface.uniforms[7];
        let mut values = UniformValues::new(&interface);
        let tight = MemberLayout { matrix_stride: 16, ..MemberLayout::default() };
        assert_eq!(values.read(matrix, &tight, &[0; 64]), Some(false));
        assert_eq!(values.read(matrix, &tight, &[0; 63]), None);
        for wrong in [
            MemberLayout { offset: usize::MAX, ..tight },
            MemberLayout { matrix_stride: usize::MAX, ..tight },
            MemberLayout { offset: 4, ..tight },
        ] {
            assert_eq!(values.read(matrix, &wrong, &[0; 64]), None, "{wrong:?}");
        }
    }
}
