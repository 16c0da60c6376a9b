//! Names of GL, GL ES, EGL and GLX, from the Khronos registry: entry points and numbers.
//!
//! `cargo xtask gl DIR` reads `gl.xml`, `egl.xml` and `glx.xml` of that folder and writes the generated
//! files of `takt-gl-api`. [`ENTRY_POINTS`] has one line per entry point: the API that it belongs to, name,
//! parameters and result by their size in registers, which is all that a wrapper needs. [`GL`], [`EGL`]
//! and [`GLX`] have one line per number. The registry itself is not part of this repository (see `docs/adr`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use roxmltree::{Document, Node};

use crate::generated::save;

pub(crate) const ENTRY_POINTS: &str = "crates/takt-gl-api/src/entry/table.rs";
pub(crate) const GL: &str = "crates/takt-gl-api/src/gl.rs";
pub(crate) const EGL: &str = "crates/takt-gl-api/src/egl.rs";
pub(crate) const GLX: &str = "crates/takt-gl-api/src/glx.rs";

/// APIs by the words of the registry, and what the table calls them. An entry point of several is that of the
/// first.
const APIS: [(&str, &[&str]); 4] =
    [("egl", &["egl"]), ("gles", &["gles1", "gles2"]), ("gl", &["gl", "glcore"]), ("glx", &["glx"])];

/// Reads the registry in `folder` and writes the files; says what they hold.
pub(crate) fn write(root: &Path, folder: &Path) -> Result<String> {
    let mut commands = BTreeMap::new();
    let mut said = String::new();
    for (name, prefix, file) in [("gl.xml", "GL_", GL), ("egl.xml", "EGL_", EGL), ("glx.xml", "GLX_", GLX)] {
        let path = folder.join(name);
        let text = fs::read_to_string(&path).with_context(|| {
            format!("cannot read {}: give the folder that holds gl.xml, egl.xml and glx.xml", path.display())
        })?;
        let document = Document::parse(&text).with_context(|| format!("{name} is no XML"))?;
        commands.extend(collect(&document).with_context(|| format!("in {name}"))?);
        let numbers = numbers(&document, prefix).with_context(|| format!("in {name}"))?;
        save(root, file, &render_numbers(prefix, &numbers))?;
        said += &format!("{file}: {} numbers\n", numbers.len());
    }
    save(root, ENTRY_POINTS, &render_commands(&commands))?;
    let of = |api: &str| commands.values().filter(|(of, _)| *of == api).count();
    let counts = APIS.map(|(api, _)| format!("{} of {api}", of(api)));
    Ok(said + &format!("{ENTRY_POINTS}: entry points, {}", counts.join(", ")))
}

/// API and signature of each command, by its name.
type Commands = BTreeMap<String, (&'static str, String)>;

/// All commands, those of extensions as well.
fn collect(document: &Document<'_>) -> Result<Commands> {
    let root = document.root_element();
    let wanted = wanted(root, "command");
    let mut commands = BTreeMap::new();
    for command in root.descendants().filter(|node| node.has_tag_name("command")) {
        let Some(proto) = child(command, "proto") else { continue };
        let name = text_of(proto, "name");
        if let Some(api) = wanted.get(name.as_str()) {
            let signature = signature(command, proto).with_context(|| format!("in {name}"))?;
            commands.insert(name, (*api, signature));
        }
    }
    if let Some(missing) = wanted.keys().find(|name| !commands.contains_key(**name)) {
        bail!("{missing} is required but not declared");
    }
    Ok(commands)
}

/// What every number is called, and how Rust writes it. Where GL and GL ES differ, that of GL ES counts.
fn numbers(document: &Document<'_>, prefix: &str) -> Result<BTreeMap<String, String>> {
    let root = document.root_element();
    let wanted = wanted(root, "enum");
    let mut numbers = BTreeMap::new();
    let blocks = root.children().filter(|node| node.has_tag_name("enums"));
    for number in blocks.flat_map(|node| node.children().filter(|node| node.has_tag_name("enum"))) {
        let name = number.attribute("name").context("a number of no name")?;
        if !wanted.contains_key(name) {
            continue;
        }
        let value = number.attribute("value").with_context(|| format!("{name} has no value"))?;
        let Some(value) = value_of(prefix, value).with_context(|| format!("in {name}"))? else { continue };
        // Some names of GLX lack it.
        let short = name.strip_prefix(prefix).unwrap_or(name);
        // Rust's names do not begin with a digit.
        let sign = if short.starts_with(|first: char| first.is_ascii_digit()) { "_" } else { "" };
        let desktop = matches!(number.attribute("api"), Some("gl" | "glcore"));
        let entry = numbers.entry(format!("{sign}{short}"));
        if desktop {
            entry.or_insert(value);
        } else {
            entry.insert_entry(value);
        }
    }
    Ok(numbers)
}

/// Type and value: GL counts without a sign, EGL and GLX with one, all in 32 bits unless the value needs
/// more. None for handles and names, which are no numbers.
fn value_of(prefix: &str, value: &str) -> Result<Option<String>> {
    let (cast, digits) = match value.strip_prefix("EGL_CAST(").and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => inner.split_once(',').context("a cast without a value")?,
        None => ("", value),
    };
    if !matches!(cast, "" | "EGLint" | "EGLnsecsANDROID") || digits.starts_with('"') {
        return Ok(None);
    }
    let number = match digits.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    let number = number.with_context(|| format!("cannot read the number '{value}'"))?;
    let kind = match (prefix, cast) {
        (_, "EGLnsecsANDROID") => "i64",
        _ if number > i128::from(u32::MAX) => "u64",
        ("EGL_" | "GLX_", _) if number <= i128::from(i32::MAX) => "i32",
        _ if number < 0 => "i32",
        _ => "u32",
    };
    let text = if number < 0 { number.to_string() } else { format!("{number:#x}") };
    Ok(Some(format!("{kind} = {text}")))
}

/// What APIs and their extensions require, by its tag: names, and the first API of each.
fn wanted<'a>(root: Node<'a, '_>, tag: &'static str) -> BTreeMap<&'a str, &'static str> {
    let mut names = BTreeMap::new();
    for (api, words) in APIS {
        let ours =
            |apis: Option<&str>| apis.is_some_and(|apis| apis.split('|').any(|api| words.contains(&api)));
        for node in root.children() {
            let parts: Vec<Node<'_, '_>> = match node.tag_name().name() {
                "feature" if ours(node.attribute("api")) => vec![node],
                "extensions" => node.children().filter(|node| ours(node.attribute("supported"))).collect(),
                _ => Vec::new(),
            };
            for name in parts.into_iter().flat_map(|part| required(part, tag, words)) {
                names.entry(name).or_insert(api);
            }
        }
    }
    names
}

/// What a feature or an extension requires, unless only other APIs get it.
fn required<'a>(
    node: Node<'a, '_>,
    tag: &'static str,
    words: &'static [&'static str],
) -> impl Iterator<Item = &'a str> {
    let require = node.children().filter(|node| node.has_tag_name("require"));
    let require = require.filter(move |node| node.attribute("api").is_none_or(|api| words.contains(&api)));
    require
        .flat_map(move |node| node.children().filter(move |node| node.has_tag_name(tag)))
        .filter_map(|node| node.attribute("name"))
}

fn signature(command: Node<'_, '_>, proto: Node<'_, '_>) -> Result<String> {
    let mut parameters = Vec::new();
    for param in command.children().filter(|node| node.has_tag_name("param")) {
        let kind = kind(&declared(param))?.context("a parameter of no type")?;
        parameters.push(format!("{}: {kind}", identifier(&text_of(param, "name"))));
    }
    let result = kind(&declared(proto))?.map_or_else(String::new, |kind| format!(" -> {kind}"));
    Ok(format!("({}){result}", parameters.join(", ")))
}

/// The type as written, without the name.
fn declared(node: Node<'_, '_>) -> String {
    let parts = node.children().filter(|part| !part.has_tag_name("name"));
    parts
        .flat_map(|part| part.descendants().filter(|node| node.is_text()).filter_map(|node| node.text()))
        .collect()
}

/// Kinds of parameters, and the names of the registry for each.
const KINDS: &[(&str, &[&str])] = &[
    (
        "u32",
        &[
            "GLenum",
            "GLuint",
            "GLbitfield",
            "EGLBoolean",
            "EGLenum",
            "unsigned int",
            "GLXVideoDeviceNV",
            "GLhandleARB",
        ],
    ),
    (
        "i32",
        &[
            "GLint",
            "GLsizei",
            "GLfixed",
            "GLclampx",
            "EGLint",
            "EGLNativeFileDescriptorKHR",
            "Bool",
            "Status",
            "int",
        ],
    ),
    ("u8", &["GLboolean", "GLubyte"]),
    ("i8", &["GLbyte"]),
    ("i16", &["GLshort"]),
    ("u16", &["GLushort", "GLhalfNV"]),
    ("f32", &["GLfloat", "GLclampf", "float"]),
    ("f64", &["GLdouble", "GLclampd"]),
    (
        "isize",
        &[
            "GLintptr",
            "GLsizeiptr",
            "GLintptrARB",
            "GLsizeiptrARB",
            "EGLAttrib",
            "EGLAttribKHR",
            "EGLsizeiANDROID",
            "GLvdpauSurfaceNV",
        ],
    ),
    ("i64", &["GLint64", "GLint64EXT", "EGLnsecsANDROID", "int64_t"]),
    (
        "u64",
        &["GLuint64", "GLuint64EXT", "EGLTime", "EGLTimeKHR", "EGLTimeNV", "EGLuint64KHR", "EGLuint64NV"],
    ),
    // Numbers of the X server, which Xlib passes as long ones.
    (
        "usize",
        &[
            "GLXDrawable",
            "GLXWindow",
            "GLXPbuffer",
            "GLXPbufferSGIX",
            "GLXPixmap",
            "GLXContextID",
            "GLXVideoCaptureDeviceNV",
            "GLXVideoSourceSGIX",
            "Window",
            "Pixmap",
            "Colormap",
            "Font",
            "unsigned long",
            "VLServer",
            "VLPath",
            "VLNode",
            "DMbuffer",
        ],
    ),
    // Handles, native windows and functions.
    (
        "Ptr",
        &[
            "GLsync",
            "GLeglImageOES",
            "GLeglClientBufferEXT",
            "GLDEBUGPROC",
            "GLDEBUGPROCARB",
            "GLDEBUGPROCAMD",
            "GLDEBUGPROCKHR",
            "GLVULKANPROCNV",
            "GLXContext",
            "GLXFBConfig",
            "GLXFBConfigSGIX",
            "__GLXextFuncPtr",
        ],
    ),
];

/// How a C type is passed; none for `void`.
fn kind(declared: &str) -> Result<Option<&'static str>> {
    if declared.contains('*') {
        return Ok(Some("Ptr"));
    }
    let name = declared.trim().trim_start_matches("const ").trim_start_matches("struct ").trim();
    if name == "void" {
        return Ok(None);
    }
    if let Some((kind, _)) = KINDS.iter().find(|(_, names)| names.contains(&name)) {
        return Ok(Some(kind));
    }
    // The others of EGL are handles and functions as well.
    let is_handle = name.starts_with("EGL") || name.starts_with("__egl");
    if is_handle { Ok(Some("Ptr")) } else { bail!("unknown type '{name}'") }
}

fn identifier(name: &str) -> String {
    match name {
        "type" | "ref" | "in" | "box" | "move" | "match" | "use" | "loop" | "where" | "mod" => {
            format!("{name}_")
        }
        _ => name.to_owned(),
    }
}

fn child<'a, 'i>(node: Node<'a, 'i>, tag: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|node| node.has_tag_name(tag))
}

fn text_of(node: Node<'_, '_>, tag: &str) -> String {
    child(node, tag).and_then(|node| node.text()).unwrap_or("").trim().to_owned()
}

fn render_commands(commands: &Commands) -> String {
    let mut body = String::from(HEAD);
    for (name, (api, signature)) in commands {
        body += &format!("            {api} {name}{signature};\n");
    }
    body + "        }\n    };\n}\n"
}

fn render_numbers(prefix: &str, numbers: &BTreeMap<String, String>) -> String {
    let api = match prefix {
        "GL_" => "GL 1 to 4.6, GL ES 1 to 3.2",
        "GLX_" => "GLX",
        _ => "EGL",
    };
    let mut body = format!(
        "//! Every number of {api} and of extensions, without `{prefix}`.\n//!\n\
         //! Generated by `cargo xtask gl` from the Khronos registry; change nothing here by hand.\n\n\
         #![expect(missing_docs, non_upper_case_globals, reason = \"names of the registry\")]\n\n"
    );
    for (name, value) in numbers {
        body += &format!("pub const {name}: {value};\n");
    }
    body
}

const HEAD: &str = "\
//! Every entry point of EGL, GLX, GL ES 1 to 3.2, GL 1 to 4.6 and of their extensions.
//!
//! The first word says whose it is: `gl` is desktop GL's alone, `gles` may be both's.
//!
//! Generated by `cargo xtask gl` from the Khronos registry; change nothing here by hand.

/// Hands the whole table to a macro.
#[macro_export]
macro_rules! for_each_entry_point {
    ($then:ident) => {
        $then! {
";

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: &str = r#"<registry>
        <enums><enum value="0x0000" name="GL_POINTS"/><enum value="0x0007" name="GL_QUADS"/>
            <enum value="0x87F9" name="GL_3DC_X"/><enum value="0x1" name="GL_POINTS" api="gl"/>
            <enum value="0xFFFFFFFFFFFFFFFF" name="GL_IGNORED" type="ull"/></enums>
        <commands>
            <command><proto>void <name>glDrawArrays</name></proto>
                <param><ptype>GLenum</ptype> <name>mode</name></param>
                <param><ptype>GLint</ptype> <name>first</name></param></command>
            <command><proto>const <ptype>GLubyte</ptype> *<name>glGetString</name></proto>
                <param><ptype>GLenum</ptype> <name>type</name></param></command>
            <command><proto>void <name>glBegin</name></proto></command>
        </commands>
        <feature api="gles2"><require><command name="glDrawArrays"/><enum name="GL_POINTS"/>
            <enum name="GL_IGNORED"/><enum name="GL_3DC_X"/></require></feature>
        <feature api="gl"><require><command name="glBegin"/><enum name="GL_QUADS"/></require></feature>
        <extensions>
            <extension supported="gl|gles2"><require><command name="glGetString"/></require>
                <require api="gl"><command name="glBegin"/></require></extension>
        </extensions></registry>"#;

    #[test]
    fn commands_are_taken_with_their_apis_and_sizes() {
        let commands = collect(&Document::parse(REGISTRY).unwrap()).unwrap();
        let line = |(name, (api, rest)): (&String, &(&str, String))| format!("{api} {name}{rest}");
        let lines: Vec<String> = commands.iter().map(line).collect();
        assert_eq!(
            lines,
            [
                "gl glBegin()",
                "gles glDrawArrays(mode: u32, first: i32)",
                "gles glGetString(type_: u32) -> Ptr"
            ]
        );
    }

    #[test]
    fn numbers_are_taken_with_their_types() {
        let numbers = numbers(&Document::parse(REGISTRY).unwrap(), "GL_").unwrap();
        let lines: Vec<String> = numbers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(
            lines,
            [
                "IGNORED: u64 = 0xffffffffffffffff",
                "POINTS: u32 = 0x0",
                "QUADS: u32 = 0x7",
                "_3DC_X: u32 = 0x87f9"
            ],
            "the number of GL ES counts where there are two"
        );
        assert_eq!(value_of("GLX_", "0xFFFFFFFF").unwrap().as_deref(), Some("u32 = 0xffffffff"));
        assert_eq!(value_of("GLX_", "\"GLX\"").unwrap(), None);
        assert_eq!(value_of("EGL_", "EGL_CAST(EGLint,-1)").unwrap().as_deref(), Some("i32 = -1"));
        assert_eq!(value_of("EGL_", "EGL_CAST(EGLContext,0)").unwrap(), None);
        assert!(value_of("EGL_", "many").is_err());
    }

    #[test]
    fn an_unknown_type_is_an_error() {
        assert!(kind("GLmystery").is_err());
        assert_eq!(kind("const void *").unwrap(), Some("Ptr"));
    }
}
