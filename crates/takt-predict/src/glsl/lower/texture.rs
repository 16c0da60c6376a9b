//! Texture lookups: counted, never computed.

use super::{Lowerer, Value};
use crate::glsl::error::{GlslError, Result};
use crate::glsl::op::Op;
use crate::glsl::types::{Base, Scalar, Type};

impl Lowerer<'_> {
    /// A lookup, if that is the name of one.
    pub(super) fn texture_function(
        &mut self,
        line: u32,
        name: &str,
        values: &[Value],
    ) -> Result<Option<Value>> {
        let looks_up = ["texture", "texelFetch", "shadow2D"].iter().any(|prefix| name.starts_with(prefix));
        let sampler = match values.first().map(|value| value.ty) {
            Some(Type { base: Base::Sampler { texture, scalar, shadow }, array: None }) => {
                (texture, scalar, shadow)
            }
            _ => return Ok(None),
        };
        if !looks_up {
            return Err(GlslError::types(line, format!("sampler handed to {name}")));
        }
        let (texture, scalar, shadow) = sampler;
        let operands = values[1..].iter().flat_map(|value| value.ids.iter().copied()).collect();
        if name == "textureSize" {
            let rows = match texture {
                crate::glsl::types::Texture::D3 | crate::glsl::types::Texture::D2Array => 3,
                _ => 2,
            };
            return self.opaque(Type::vector(Scalar::Int, rows)).map(Some);
        }
        self.code.begin_group();
        let lookup = self.code.listed(Op::Texture, operands)?;
        let rows = if shadow && name != "texture2D" { 1 } else { 4 };
        let ids =
            (0..u32::from(rows)).map(|part| self.code.component(lookup, part)).collect::<Result<_>>()?;
        Ok(Some(Value { ty: Type::vector(scalar, rows), ids }))
    }

    /// A value that depends on something outside of the model.
    pub(super) fn opaque(&mut self, ty: Type) -> Result<Value> {
        let count = self.size(0, ty)?;
        let ids = (0..count).map(|_| self.code.push(Op::Opaque, 0, 0, 0)).collect::<Result<_>>()?;
        Ok(Value { ty, ids })
    }
}
