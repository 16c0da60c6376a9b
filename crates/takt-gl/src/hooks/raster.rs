//! Viewport, scissor, culling, tests.

super::noted! {
    glViewport(x: i32, y: i32, width: i32, height: i32) => |state| state.raster.viewport(x, y, width, height);
    glScissor(x: i32, y: i32, width: i32, height: i32) => |state| state.raster.scissor(x, y, width, height);
    glEnable(cap: u32) => |state| state.raster.enable(cap, true);
    glDisable(cap: u32) => |state| state.raster.enable(cap, false);
    glDepthRangef(near: f32, far: f32) => |state| state.raster.depth_range(near, far);
    glCullFace(mode: u32) => |state| state.raster.cull_face(mode);
    glFrontFace(mode: u32) => |state| state.raster.front_face(mode);
    glLineWidth(width: f32) => |state| state.raster.line_width(width);
}
