//! Vertex shaders that reach the corners of the language.
//!
//! Values near a jump (a comparison, a rounding) could fall on different sides on CPU and driver
//! without either being wrong, so the shaders keep away from jumps where arithmetic comes first.

/// Name and source.
pub(crate) const ALL: &[(&str, &str)] = &[
    ("es1 control flow", ES1_CONTROL),
    ("es1 functions and arrays", ES1_FUNCTIONS),
    ("es1 built-ins", ES1_BUILT_INS),
    ("es1 structures", ES1_STRUCTS),
    ("es1 early return", ES1_RETURN),
    ("es3 integers", ES3_INTEGERS),
    ("es3 data-dependent loops", ES3_LOOPS),
    ("es3 switch", ES3_SWITCH),
    ("es3 matrices", ES3_MATRICES),
    ("es3 uniform subscripts", ES3_SUBSCRIPTS),
    ("es3 vertex index", ES3_INDEX),
];

const ES1_CONTROL: &str = "
attribute vec4 a;
attribute vec2 b;
uniform mat4 m;
uniform bool flip;
uniform vec4 lift;
void main() {
    vec4 p = a;
    if (a.x > 0.25) { p.yz = p.zy * 2.0; if (b.x < 0.0) p.w += 1.0; else p.w -= b.y; }
    else if (flip) p = p.wzyx;
    for (int i = 0; i < 4; i++) {
        if (i == 2) continue;
        p.x += float(i) * 0.5;
        if (p.y > 1.5) break;
        p[i] += lift[i];
    }
    p.z = b.y > 0.0 && a.y > 0.0 || flip ? p.z : -p.z;
    gl_Position = m * p;
}";

const ES1_FUNCTIONS: &str = "
#define SCALE(x, f) ((x) * (f))
#define TWICE(x) SCALE(x, 2.0)
attribute vec3 position;
uniform vec3 offsets[3];
uniform float weights[3];
float sum;
float area(vec2 v) { return v.x * v.y; }
float area(vec3 v) { return v.x * v.y * v.z; }
void shift(inout vec3 v, in vec3 by, out float done) { v += by; done = dot(v, by); sum += done; }
vec3 blend(vec3 v) {
    vec3 parts[3];
    for (int i = 0; i < 3; ++i) parts[i] = v * weights[i] + offsets[i];
    return parts[0] + parts[1] - parts[2];
}
void main() {
    vec3 v = position;
    float d = 0.0;
    sum = 0.0;
    for (int i = 2; i >= 0; i--) shift(v, offsets[i], d);
    v.xy = TWICE(v.xy);
    gl_Position = vec4(blend(v), d + sum + area(v.xy) + area(position));
}";

const ES1_BUILT_INS: &str = "
attribute vec4 a;
attribute vec4 b;
uniform float t;
void main() {
    vec3 n = normalize(a.xyz + vec3(3.0));
    vec3 r = reflect(b.xyz, n) + refract(n, normalize(b.xyz + vec3(4.0)), 0.5) + faceforward(n, b.xyz, n);
    vec4 s = vec4(sin(a.x), cos(a.y), exp(a.z * 0.5), log(abs(a.w) + 1.0));
    vec4 u = clamp(b, -1.0, vec4(1.0).x) + mix(a, b, 0.25) + smoothstep(-2.0, 2.0, a);
    s += vec4(pow(abs(a.x) + 0.5, 1.5), exp2(b.x), log2(abs(b.y) + 2.0), inversesqrt(abs(b.z) + 0.5));
    s.x += atan(a.x, abs(b.x) + 0.5) + atan(b.y) + tan(t * 0.3);
    s.y += length(a) + distance(a, b) + dot(a, b) + sqrt(abs(t)) + radians(t) + degrees(t) * 0.01;
    u += max(a, b) + min(a, vec4(t)) + abs(b) + cross(a.xyz, b.xyz).xyzz;
    bvec4 less = lessThan(a, b);
    if (any(less) && !all(less)) u = -u;
    gl_Position = s + u + vec4(r, 1.0) + vec4(vec2(matrixCompMult(mat2(2.0), mat2(a)) * b.xy), 0.0, 0.0);
}";

/// Mesa computes arc sines by a short polynomial that is off by some 1e-4, which GL ES allows;
/// so this one is held against a wider tolerance.
pub(crate) const ARC_SINES: (&str, f32) = (
    "
attribute vec4 a;
void main() { gl_Position = vec4(asin(a.xy * 0.45), acos(a.zw * 0.45)) + asin(a * 0.3); }",
    2e-3,
);

const ES1_STRUCTS: &str = "
struct Light { vec3 at; float power; };
struct Scene { Light lights[2]; mat3 turn; };
attribute vec3 position;
uniform Light lamp;
uniform mat3 turn;
Light scaled(Light l, float f) { return Light(l.at * f, l.power + f); }
void main() {
    Scene s;
    s.lights[0] = lamp;
    s.lights[1] = scaled(lamp, position.x);
    s.turn = turn;
    s.turn[1] = s.turn[1].yzx;
    vec3 p = s.turn * position + position * s.turn;
    p += s.lights[1].at * s.lights[0].power;
    gl_Position = vec4(p, s.lights[1].power);
}";

const ES1_RETURN: &str = "
attribute vec3 position;
uniform vec4 plane;
vec4 place(vec3 p) {
    if (p.x > 0.5) return vec4(p, 1.0);
    for (int i = 0; i < 5; i++) {
        p.y += 0.25;
        if (p.y > 1.0) return vec4(p.zyx, float(i));
    }
    p += plane.xyz;
    return plane.wwww + p.xyzz;
}
void main() {
    gl_Position = place(position);
    if (position.z < 0.0) return;
    gl_Position.w += 2.0;
}";

const ES3_INTEGERS: &str = "#version 300 es
in vec4 a;
uniform int k;
uniform ivec2 j;
uint mixed(uint x) { x ^= x >> 16u; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; return x ^ (x >> 16); }
void main() {
    ivec4 i = ivec4(floor(a * 16.0));
    uint h = mixed(uint(abs(i.x) * 7 + k));
    int q = (i.y << 2) | (j.x & 3);
    int r = (abs(i.z) + 9) / (j.y + 1) % 5 - ~i.w;
    gl_Position = vec4(float(h & 1023u) / 1024.0, float(q), float(r), float(h >> 22u) + a.w);
}";

const ES3_LOOPS: &str = "#version 300 es
in vec2 c;
uniform int count;
uniform float limit;
void main() {
    vec2 z = vec2(0.0);
    int n = 0;
    while (n < count * 3) {
        z = vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) * 0.25 + c * 0.5;
        n++;
        if (n == 5) continue;
        if (n > 16) break;
    }
    float s = 0.0;
    int outer = 0;
    for (int i = 0; i < count; i++) {
        for (int j = 0; j <= i; ++j) { s += float(j) * 0.5; if (j > 3) break; }
        outer += i;
    }
    do { s += 0.125; outer--; } while (outer > 0 && s < 8.0);
    float t = 0.0;
    for (int i = 0; i < 3000; i++) { t += 0.001; if (i > count * 100) break; }
    gl_Position = vec4(z, s, float(n) + t);
}";

const ES3_SWITCH: &str = "#version 300 es
in vec3 position;
uniform int mode;
vec3 pick(vec3 p) {
    switch (int(floor(p.x)) + mode) {
    case 0: return p.zyx;
    case 1: p.x += 1.0;
    case 2: p.y += 2.0; break;
    default: p.z -= 1.0;
    case 5: p *= 2.0;
    }
    return p;
}
void main() { gl_Position = vec4(pick(position), 1.0); }";

const ES3_MATRICES: &str = "#version 300 es
layout(location = 2) in mat3 frame;
in vec4 position;
uniform mat4 m;
uniform mat2 s;
void main() {
    mat4 t = transpose(m);
    mat2x3 wide = mat2x3(frame);
    vec3 v = wide * position.xy + frame[2] * determinant(s);
    mat2 safe = s * s + mat2(20.0);
    vec2 w = inverse(safe) * position.zw;
    mat3x2 o = outerProduct(w, v);
    const vec2 tail[] = vec2[](vec2(1.0, 2.0), vec2(3.0, 4.0));
    gl_Position = t * position + vec4(o * v, w) + vec4(tail[1], float(tail.length()), 0.0);
    gl_Position.xy += trunc(position.zw) + round(position.xy * 3.0 + 0.25) + mod(position.xy, 0.75);
}";

const ES3_SUBSCRIPTS: &str = "#version 300 es
struct Bone { mat4 turn; vec4 shift; };
in vec4 position;
in vec2 choice;
uniform Bone bones[4];
uniform vec4 table[8];
void main() {
    int i = int(clamp(floor(abs(choice.x) * 2.0), 0.0, 3.0));
    int j = int(clamp(floor(abs(choice.y) * 4.0), 0.0, 7.0));
    float local[4] = float[](1.0, 2.0, 3.0, 4.0);
    local[i] = choice.y;
    vec4 p = bones[i].turn * position + bones[i].shift * local[3 - i];
    p[i] += table[j][3 - i];
    gl_Position = p + table[j].wzyx;
}";

const ES3_INDEX: &str = "#version 300 es
uniform vec4 scale;
void main() {
    int corner = gl_VertexID % 6;
    vec2 at = vec2(corner == 1 || corner == 2 || corner == 4, corner == 2 || corner == 4 || corner == 5);
    gl_Position = vec4(at * 2.0 - 1.0, float(gl_VertexID / 6), float(gl_InstanceID)) * scale;
}";
