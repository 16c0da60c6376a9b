//! Positions as a real vertex shader computes them: [`PositionSlice`] behind [`PositionSource`].
//!
//! Nearly all shaders multiply one attribute with matrices. Their factors are computed once, and
//! what remains per vertex is one product. All others run the whole slice, with the attributes
//! that it reads besides the position looked up by the number of the vertex.

use std::cell::{Cell, RefCell};

use super::attribute::Attribute;
use super::draw::{BufferId, Vertex};
use super::{MatrixPosition, PositionSource};
use crate::glsl::{
    AttributeArray, AttributeData, Budget, EvaluateError, PositionSlice, Scratch, SliceAttribute,
    UniformValues, VertexIds, VertexInputs,
};

/// Where the values of an attribute come from.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Input<'a> {
    /// An enabled array.
    Array {
        /// Where it lies.
        attribute: Attribute<'a>,
        /// The buffer that it lies in; none for client memory.
        buffer: Option<BufferId>,
        /// `glVertexAttribDivisor`: 0 if each vertex has a value, otherwise the number of
        /// instances that share one.
        divisor: u32,
    },
    /// `glVertexAttrib*`, for a disabled array.
    Constant([f32; 4]),
}

impl Input<'_> {
    fn value(&self, vertex: u32, instance: u32) -> [f32; 4] {
        match self {
            Self::Array { attribute, divisor: 0, .. } => attribute.vertex(vertex),
            Self::Array { attribute, divisor, .. } => attribute.vertex(instance / divisor),
            Self::Constant(value) => *value,
        }
    }

    /// Whether each vertex has a value of its own.
    pub(crate) fn is_per_vertex(&self) -> bool {
        matches!(self, Self::Array { divisor: 0, .. })
    }

    fn is_per_instance(&self) -> bool {
        matches!(self, Self::Array { divisor: 1.., .. })
    }
}

/// Memory for positions, to be used again: once it has grown to fit, no call allocates.
#[derive(Clone, Default, Debug)]
pub struct ShaderMemory {
    scratch: Scratch,
    /// Four values per vertex, one attribute after the other.
    floats: Vec<f32>,
    ints: Vec<i32>,
    ids: Vec<u32>,
}

/// A vertex shader with its uniforms and attributes.
#[derive(Debug)]
pub struct ShaderPosition<'a>(ProgramKind<'a>);

#[derive(Debug)]
enum ProgramKind<'a> {
    Affine(AffinePosition),
    General(General<'a>),
}

#[derive(Debug)]
struct General<'a> {
    slice: &'a PositionSlice,
    uniforms: &'a UniformValues,
    inputs: &'a [Input<'a>],
    /// The input that [`Vertex::position`] is of.
    main: Option<usize>,
    instances_differ: bool,
    memory: RefCell<&'a mut ShaderMemory>,
    /// One for all calls: a shader decides how long it runs, and how often it is asked is decided
    /// by the draw.
    budget: Cell<Budget>,
    failure: Cell<Option<EvaluateError>>,
}

impl<'a> ShaderPosition<'a> {
    /// The shader of a draw. There is one input for each of [`PositionSlice::attributes`], in
    /// that order, and [`position_input`] tells which of them the draw's positions must be.
    ///
    /// # Errors
    ///
    /// If inputs or uniforms do not fit the slice.
    pub fn new(
        slice: &'a PositionSlice,
        uniforms: &'a UniformValues,
        inputs: &'a [Input<'a>],
        memory: &'a mut ShaderMemory,
    ) -> Result<Self, EvaluateError> {
        if inputs.len() != slice.attributes().len() {
            return Err(EvaluateError::Attributes);
        }
        let instances_differ = slice.uses_instance() || inputs.iter().any(Input::is_per_instance);
        let main = position_input(inputs);
        if !instances_differ
            && main.is_some()
            && let Some(columns) = slice.matrix(uniforms, &mut memory.scratch)?
        {
            let is_projective = is_projective(&columns, inputs, slice.attributes());
            return Ok(Self(ProgramKind::Affine(AffinePosition { columns, is_projective })));
        }
        Ok(Self(ProgramKind::General(General {
            slice,
            uniforms,
            inputs,
            main,
            instances_differ,
            memory: RefCell::new(memory),
            budget: Cell::default(),
            failure: Cell::new(None),
        })))
    }

    /// What went wrong while positions were computed, if anything did; those are no numbers then.
    pub fn failure(&self) -> Option<EvaluateError> {
        match &self.0 {
            ProgramKind::Affine(_) => None,
            ProgramKind::General(general) => general.failure.get(),
        }
    }

    /// The shader without what it borrows, if one matrix is all that there is to it.
    pub fn affine(&self) -> Option<AffinePosition> {
        match self.0 {
            ProgramKind::Affine(position) => Some(position),
            ProgramKind::General(_) => None,
        }
    }
}

/// Which of a slice's inputs [`super::Draw::positions`] must be: the first with a value for each
/// vertex.
pub fn position_input(inputs: &[Input<'_>]) -> Option<usize> {
    inputs.iter().position(Input::is_per_vertex)
}

/// A matrix and a vector map boxes to boxes, unless vertices are points in four dimensions and
/// the vector shifts each by the same, whatever its `w`.
fn is_projective(columns: &[[f32; 4]; 5], inputs: &[Input<'_>], attributes: &[SliceAttribute]) -> bool {
    let has_w =
        |input: &Input<'_>| matches!(input, Input::Array { attribute, .. } if attribute.components > 3);
    let four = attributes.iter().zip(inputs).any(|(slice, input)| slice.components > 3 && has_w(input));
    !four || columns[4] == [0.0; 4]
}

/// A matrix times the position, plus a vector.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct AffinePosition {
    /// The vector is the last of them.
    columns: [[f32; 4]; 5],
    is_projective: bool,
}

impl AffinePosition {
    /// The same for other inputs; none if those take more than the matrix.
    pub(crate) fn with_inputs(self, slice: &PositionSlice, inputs: &[Input<'_>]) -> Option<Self> {
        let fits = inputs.len() == slice.attributes().len() && inputs.iter().all(Input::is_per_vertex);
        let is_projective = is_projective(&self.columns, inputs, slice.attributes());
        fits.then_some(Self { is_projective, ..self })
    }
}

impl PositionSource for AffinePosition {
    fn positions(&self, _instance: u32, vertices: &[Vertex], clip: &mut [[f32; 4]]) {
        transform(&self.columns, vertices, clip);
    }

    fn is_projective(&self) -> bool {
        self.is_projective
    }

    fn matrix(&self) -> Option<[[f32; 4]; 4]> {
        let [a, b, c, d, offset] = self.columns;
        Some([a, b, c, std::array::from_fn(|row| d[row] + offset[row])])
    }
}

impl PositionSource for ShaderPosition<'_> {
    fn positions(&self, instance: u32, vertices: &[Vertex], clip: &mut [[f32; 4]]) {
        match &self.0 {
            ProgramKind::Affine(position) => position.positions(instance, vertices, clip),
            ProgramKind::General(general) => {
                for (vertices, clip) in vertices.chunks(CHUNK).zip(clip.chunks_mut(CHUNK)) {
                    if let Err(error) = general.evaluate(instance, vertices, clip) {
                        general.failure.set(Some(error));
                        clip.fill([f32::NAN; 4]);
                    }
                }
            }
        }
    }

    fn is_projective(&self) -> bool {
        matches!(&self.0, ProgramKind::Affine(position) if position.is_projective)
    }

    fn matrix(&self) -> Option<[[f32; 4]; 4]> {
        self.affine()?.matrix()
    }

    fn needs_draw(&self) -> bool {
        matches!(&self.0, ProgramKind::General(_))
    }

    fn instances_differ(&self) -> bool {
        matches!(&self.0, ProgramKind::General(general) if general.instances_differ)
    }
}

fn transform(columns: &[[f32; 4]; 5], vertices: &[Vertex], clip: &mut [[f32; 4]]) {
    let [a, b, c, d, offset] = *columns;
    #[expect(clippy::float_cmp, reason = "the common case of no w needs one product less")]
    if vertices.iter().all(|vertex| vertex.position[3] == 1.0) {
        let last = std::array::from_fn(|row| d[row] + offset[row]);
        return MatrixPosition([a, b, c, last]).positions(0, vertices, clip);
    }
    MatrixPosition([a, b, c, d]).positions(0, vertices, clip);
    for clip in clip {
        *clip = std::array::from_fn(|row| clip[row] + offset[row]);
    }
}

impl General<'_> {
    fn evaluate(
        &self,
        instance: u32,
        vertices: &[Vertex],
        clip: &mut [[f32; 4]],
    ) -> Result<(), EvaluateError> {
        if let Some(failure) = self.failure.get() {
            return Err(failure);
        }
        let mut memory = self.memory.borrow_mut();
        let ShaderMemory { scratch, floats, ints, ids } = &mut **memory;
        self.gather(instance, vertices, floats, ints);
        ids.clear();
        ids.extend(vertices.iter().map(|vertex| vertex.index));
        let mut arrays = [EMPTY; INPUTS_MAX];
        let arrays = arrays.get_mut(..self.inputs.len()).ok_or(EvaluateError::Attributes)?;
        for (number, (array, slice)) in arrays.iter_mut().zip(self.slice.attributes()).enumerate() {
            let range = 4 * vertices.len() * number..4 * vertices.len() * (number + 1);
            let data = if slice.integer {
                AttributeData::Ints(&ints[range])
            } else {
                AttributeData::Floats(&floats[range])
            };
            *array = AttributeArray { data, stride: 4, components: 4 };
        }
        let ids = VertexIds::Each(ids);
        let draw = VertexInputs { uniforms: self.uniforms, attributes: arrays, ids, instance };
        let mut budget = self.budget.get();
        let result = self.slice.evaluate_within(&mut budget, &draw, scratch, clip);
        self.budget.set(budget);
        result
    }

    /// Fetches the inputs of all vertices.
    fn gather(&self, instance: u32, vertices: &[Vertex], floats: &mut Vec<f32>, ints: &mut Vec<i32>) {
        floats.clear();
        for (number, input) in self.inputs.iter().enumerate() {
            let is_main = self.main == Some(number);
            let value = |vertex: &Vertex| {
                if is_main { vertex.position } else { input.value(vertex.index, instance) }
            };
            floats.extend(vertices.iter().flat_map(value));
        }
        ints.clear();
        if self.slice.attributes().iter().any(|slice| slice.integer) {
            #[expect(clippy::cast_possible_truncation, reason = "saturates, and formats hold integers")]
            ints.extend(floats.iter().map(|value| *value as i32));
        }
    }
}

/// Vertices that are computed per call.
const CHUNK: usize = 1024;
/// Inputs of a slice: more than any driver has attributes. Slices with more are not evaluated.
const INPUTS_MAX: usize = 64;
const EMPTY: AttributeArray<'_> =
    AttributeArray { data: AttributeData::Floats(&[]), stride: 0, components: 0 };

#[cfg(test)]
mod tests;
