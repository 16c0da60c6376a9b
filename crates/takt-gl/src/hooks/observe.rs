//! Calls after which a draw may not be cut; see `slice::decide`.

use crate::client::context::State;
use crate::entry::Ptr;
use crate::gl;

super::noted! {
    glBeginQuery(target: u32, _id: u32) => |state| state.shadow.observers.begin_query(target);
    glBeginQueryEXT(target: u32, _id: u32) => |state| state.shadow.observers.begin_query(target);
    glEndQuery(target: u32) => |state| state.shadow.observers.end_query(target);
    glEndQueryEXT(target: u32) => |state| state.shadow.observers.end_query(target);
    // Monitors have numbers of their own, which are none of queries' targets.
    glBeginPerfMonitorAMD(monitor: u32) => |state| state.shadow.observers.begin_query(monitor);
    glEndPerfMonitorAMD(monitor: u32) => |state| state.shadow.observers.end_query(monitor);
    glBeginPerfQueryINTEL(query: u32) => |state| state.shadow.observers.begin_query(query);
    glEndPerfQueryINTEL(query: u32) => |state| state.shadow.observers.end_query(query);
    glBeginTransformFeedback(_mode: u32) => |state| state.shadow.observers.feedback(true);
    glResumeTransformFeedback() => |state| state.shadow.observers.feedback(true);
    glPauseTransformFeedback() => |state| state.shadow.observers.feedback(false);
    glEndTransformFeedback() => |state| state.shadow.observers.feedback(false);
    glDebugMessageCallback(callback: Ptr, _user: Ptr) => |state| state.shadow.observers.debugged(!callback.is_null());
    glDebugMessageCallbackKHR(callback: Ptr, _user: Ptr) =>
        |state| state.shadow.observers.debugged(!callback.is_null());
    glEnableiEXT(capability: u32, _index: u32) => |state| enabled(state, capability);
    glEnableiNV(capability: u32, _index: u32) => |state| enabled(state, capability);
    glEnableiOES(capability: u32, _index: u32) => |state| enabled(state, capability);
    glEnablei(capability: u32, _index: u32) => |state| enabled(state, capability);
    glScissorArrayvNV(_first: u32, _count: i32, _areas: Ptr) => |state| state.shadow.observers.several_viewports();
    glScissorArrayvOES(_first: u32, _count: i32, _areas: Ptr) => |state| state.shadow.observers.several_viewports();
    glScissorIndexedNV(_index: u32, _x: i32, _y: i32, _width: i32, _height: i32) =>
        |state| state.shadow.observers.several_viewports();
    glScissorIndexedOES(_index: u32, _x: i32, _y: i32, _width: i32, _height: i32) =>
        |state| state.shadow.observers.several_viewports();
    glScissorIndexedvNV(_index: u32, _area: Ptr) => |state| state.shadow.observers.several_viewports();
    glScissorIndexedvOES(_index: u32, _area: Ptr) => |state| state.shadow.observers.several_viewports();
    glViewportArrayvNV(_first: u32, _count: i32, _areas: Ptr) => |state| state.shadow.observers.several_viewports();
    glViewportArrayvOES(_first: u32, _count: i32, _areas: Ptr) => |state| state.shadow.observers.several_viewports();
    glViewportIndexedfNV(_index: u32, _x: f32, _y: f32, _width: f32, _height: f32) =>
        |state| state.shadow.observers.several_viewports();
    glViewportIndexedfOES(_index: u32, _x: f32, _y: f32, _width: f32, _height: f32) =>
        |state| state.shadow.observers.several_viewports();
    glViewportIndexedfvNV(_index: u32, _area: Ptr) => |state| state.shadow.observers.several_viewports();
    glViewportIndexedfvOES(_index: u32, _area: Ptr) => |state| state.shadow.observers.several_viewports();
}

/// A scissor test of its own belongs to a viewport of its own, and blending to a target.
fn enabled(state: &mut State, capability: u32) {
    match capability {
        gl::SCISSOR_TEST => state.shadow.observers.several_viewports(),
        // Of one of several targets; that it is switched off again is not noticed.
        gl::BLEND => state.shadow.raster.enable(capability, true),
        _ => {}
    }
}
