//! Numbers that GL ES and EGL give to names, as far as they are used here.

#![expect(missing_docs, reason = "documented by Khronos")]

pub const NONE: u32 = 0;
pub const POINTS: u32 = 0;
pub const LINES: u32 = 1;
pub const LINE_LOOP: u32 = 2;
pub const LINE_STRIP: u32 = 3;
pub const TRIANGLES: u32 = 4;
pub const TRIANGLE_STRIP: u32 = 5;
pub const TRIANGLE_FAN: u32 = 6;

pub const DEPTH_BUFFER_BIT: u32 = 0x100;
pub const STENCIL_BUFFER_BIT: u32 = 0x400;
pub const COLOR_BUFFER_BIT: u32 = 0x4000;

pub const FRONT: u32 = 0x404;
pub const BACK: u32 = 0x405;
pub const FRONT_AND_BACK: u32 = 0x408;
pub const CW: u32 = 0x900;
pub const CCW: u32 = 0x901;
pub const CULL_FACE: u32 = 0xB44;
pub const DEPTH_TEST: u32 = 0xB71;
pub const STENCIL_TEST: u32 = 0xB90;
pub const BLEND: u32 = 0xBE2;
pub const SCISSOR_TEST: u32 = 0xC11;
pub const RASTERIZER_DISCARD: u32 = 0x8C89;
pub const PRIMITIVE_RESTART_FIXED_INDEX: u32 = 0x8D69;

pub const BYTE: u32 = 0x1400;
pub const UNSIGNED_BYTE: u32 = 0x1401;
pub const SHORT: u32 = 0x1402;
pub const UNSIGNED_SHORT: u32 = 0x1403;
pub const INT: u32 = 0x1404;
pub const UNSIGNED_INT: u32 = 0x1405;
pub const FLOAT: u32 = 0x1406;
pub const HALF_FLOAT: u32 = 0x140B;
pub const FIXED: u32 = 0x140C;
pub const HALF_FLOAT_OES: u32 = 0x8D61;
pub const UNSIGNED_INT_2_10_10_10_REV: u32 = 0x8368;
pub const INT_2_10_10_10_REV: u32 = 0x8D9F;

pub const COLOR: u32 = 0x1800;
pub const DEPTH: u32 = 0x1801;
pub const STENCIL: u32 = 0x1802;
pub const DEPTH_STENCIL: u32 = 0x84F9;

pub const VENDOR: u32 = 0x1F00;
pub const RENDERER: u32 = 0x1F01;
pub const VERSION: u32 = 0x1F02;
pub const EXTENSIONS: u32 = 0x1F03;

pub const TEXTURE_2D: u32 = 0xDE1;
pub const TEXTURE_3D: u32 = 0x806F;
pub const TEXTURE0: u32 = 0x84C0;
pub const TEXTURE_CUBE_MAP: u32 = 0x8513;
pub const TEXTURE_CUBE_MAP_POSITIVE_X: u32 = 0x8515;
pub const TEXTURE_CUBE_MAP_NEGATIVE_Z: u32 = 0x851A;
pub const TEXTURE_2D_ARRAY: u32 = 0x8C1A;
pub const TEXTURE_EXTERNAL_OES: u32 = 0x8D65;

pub const ARRAY_BUFFER: u32 = 0x8892;
pub const ELEMENT_ARRAY_BUFFER: u32 = 0x8893;
pub const PIXEL_UNPACK_BUFFER: u32 = 0x88EC;
pub const UNIFORM_BUFFER: u32 = 0x8A11;
pub const COPY_READ_BUFFER: u32 = 0x8F36;
pub const COPY_WRITE_BUFFER: u32 = 0x8F37;
pub const TRANSFORM_FEEDBACK_BUFFER: u32 = 0x8C8E;
pub const SHADER_STORAGE_BUFFER: u32 = 0x90D2;
pub const ATOMIC_COUNTER_BUFFER: u32 = 0x92C0;
pub const INVALID_INDEX: u32 = u32::MAX;

pub const FRAGMENT_SHADER: u32 = 0x8B30;
pub const VERTEX_SHADER: u32 = 0x8B31;
pub const LINK_STATUS: u32 = 0x8B82;

pub const READ_FRAMEBUFFER: u32 = 0x8CA8;
pub const DRAW_FRAMEBUFFER: u32 = 0x8CA9;
pub const COLOR_ATTACHMENT0: u32 = 0x8CE0;
pub const FRAMEBUFFER: u32 = 0x8D40;
pub const RENDERBUFFER: u32 = 0x8D41;

pub const ALPHA: u32 = 0x1906;
pub const RGB: u32 = 0x1907;
pub const RGBA: u32 = 0x1908;
pub const LUMINANCE: u32 = 0x1909;
pub const LUMINANCE_ALPHA: u32 = 0x190A;
pub const UNSIGNED_SHORT_4_4_4_4: u32 = 0x8033;
pub const UNSIGNED_SHORT_5_5_5_1: u32 = 0x8034;
pub const UNSIGNED_SHORT_5_6_5: u32 = 0x8363;

pub const MAP_READ_BIT: u32 = 1;

pub const EGL_SUCCESS: i32 = 0x3000;
pub const EGL_NONE: i32 = 0x3038;
pub const EGL_HEIGHT: i32 = 0x3056;
pub const EGL_WIDTH: i32 = 0x3057;
pub const EGL_SAMPLES: i32 = 0x3031;
pub const EGL_CONFIG_ID: i32 = 0x3028;
pub const EGL_CONTEXT_CLIENT_VERSION: i32 = 0x3098;
pub const EGL_VENDOR: i32 = 0x3053;
pub const EGL_EXTENSIONS: i32 = 0x3055;
pub const EGL_OPENGL_ES_API: u32 = 0x30A0;
pub const EGL_SYNC_FENCE: u32 = 0x30F9;
pub const SYNC_GPU_COMMANDS_COMPLETE: u32 = 0x9117;
pub const ALREADY_SIGNALED: u32 = 0x911A;
pub const TIMEOUT_EXPIRED: u32 = 0x911B;
pub const CONDITION_SATISFIED: u32 = 0x911C;
pub const EGL_TIMEOUT_EXPIRED: i32 = 0x30F5;
pub const EGL_CONDITION_SATISFIED: i32 = 0x30F6;
