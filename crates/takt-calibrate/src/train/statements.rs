//! Lines of shaders: each leaves another mix of operations behind.
//!
//! All of them read and write `x`, and most read `y`; both have four components. `y` stays below
//! one and `x` grows by a constant at most, so no value becomes infinite, whatever follows what:
//! drivers take other ways where values are no numbers.

/// Statements of both stages, by what they are mostly about.
pub(super) const STATEMENTS: [&[&str]; 7] = [
    // Additions, minima, rounding.
    &[
        "x += y.yzwx;",
        "x = abs(x - y);",
        "x.xy = min(x.xy, y.zw);",
        "x.xyz = max(x.xyz, y.wzy);",
        "x.z = x.z - y.w;",
        "x = floor(x * 1.7) * 0.5;",
        "x.xw = fract(x.xw);",
        "y = fract(y.wxyz + x);",
    ],
    // Multiply-adds and what is made of them.
    &[
        "x = x * y + 0.37;",
        "x.xyz = x.yzx * 0.7 + y.xyz;",
        "x.w = dot(x, y) * 0.2;",
        "x.x = dot(x.yzw, y.xyz) * 0.3;",
        "x = mix(x, y, 0.3);",
        "x.xyz = cross(x.xyz, y.zxy) * 0.5;",
        "y = fract(y * 0.9 + x * 0.1);",
        "x = turn * x;",
        "x.xyz = reflect(x.xyz, y.xyz) * 0.14;",
    ],
    // Roots, reciprocals, exponentials, sines.
    &[
        "x.x = sin(x.y);",
        "x = cos(x);",
        "x = sqrt(abs(x) + 0.1);",
        "x.y = exp2(-abs(x.x));",
        "x.xy = log2(abs(x.zw) + 1.1);",
        "x.w = pow(abs(y.x) + 0.1, 1.7);",
        "x = x / (abs(y) + 1.0);",
        "x.z = inversesqrt(abs(x.w) + 0.2);",
        "x.xyz = normalize(x.xyz + 0.1);",
        "x.x = length(x.yz) * 0.7;",
    ],
    // Comparisons and choices.
    &[
        "x.x = x.y > x.z ? x.w : y.x;",
        "x = x.w < y.w ? x.yxwz : y;",
        "x = mix(x, y, step(0.5, x.wzyx));",
        "x.y = x.x == y.x ? 0.3 : x.w;",
        "x = clamp(x, -0.9, 0.9);",
        "x.xyz = smoothstep(-0.2, 1.3, x.zxy);",
    ],
    // Branches.
    &[
        "if (x.x > y.y) { x.z += 1.7; x = x.wxyz; }",
        "if (x.w < 0.3) { x = x * y; } else { x.y = x.z; }",
        "if (x.y + x.z > y.x) x.w = sin(x.w);",
    ],
    // Conversions.
    &[
        "x.y = float(int(x.x * 8.0)) * 0.12;",
        "x.zw = vec2(ivec2(y.xy * 5.0)) * 0.2;",
        "x = vec4(ivec4(x * 16.0)) * 0.06;",
    ],
    // Loops.
    &[
        "for (int i = 0; i < 3; i++) { x = x * 0.8 + y.wzyx; }",
        "for (int i = 0; i < 6; i++) { x.xy = x.yx * 0.9 + float(i); }",
        "for (int i = 0; i < 4; i++) { x.z = sin(x.z + y.x); }",
    ],
];

/// A lookup that depends on earlier computations.
pub(super) const LOOKUP: &str = "x += texture2D(picture, x.xy);";
