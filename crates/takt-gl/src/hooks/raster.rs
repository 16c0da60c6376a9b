//! Viewport, scissor, culling, tests.

super::noted! {
    glViewport(x: i32, y: i32, width: i32, height: i32) => |state| state.shadow.raster.viewport(x, y, width, height);
    glScissor(x: i32, y: i32, width: i32, height: i32) => |state| state.shadow.raster.scissor(x, y, width, height);
    glEnable(cap: u32) => |state| state.shadow.raster.enable(cap, true);
    glDisable(cap: u32) => |state| state.shadow.raster.enable(cap, false);
    glDepthRangef(near: f32, far: f32) => |state| state.shadow.raster.depth_range(near, far);
    glCullFace(mode: u32) => |state| state.shadow.raster.cull_face(mode);
    glFrontFace(mode: u32) => |state| state.shadow.raster.front_face(mode);
    glLineWidth(width: f32) => |state| state.shadow.raster.line_width(width);
}
