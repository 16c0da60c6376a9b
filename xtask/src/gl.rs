//! The table of GL ES and EGL entry points, from the Khronos registry.
//!
//! `cargo xtask gl DIR` reads `gl.xml` and `egl.xml` of that folder and writes one line per entry
//! point: name, parameters and result by their size in registers, which is all that a wrapper
//! needs. The registry itself is not part of this repository (see `docs/adr`); so tidy cannot
//! compare with it, but the table carries a checksum by which a change by hand is noticed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use roxmltree::{Document, Node};

use crate::tidy::Finding;
use crate::tree::Tree;

/// Where the table is kept.
pub(crate) const TABLE: &str = "crates/takt-gl/src/entry/table.rs";

const CHECKSUM: &str = "// checksum ";

/// Reads the registry in `folder` and writes the table; says what it holds.
pub(crate) fn write(root: &Path, folder: &Path) -> Result<String> {
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).with_context(|| {
            format!("cannot read {}: give the folder that holds gl.xml and egl.xml", path.display())
        })
    };
    let mut commands = BTreeMap::new();
    for (name, text) in [("gl.xml", read("gl.xml")?), ("egl.xml", read("egl.xml")?)] {
        let document = Document::parse(&text).with_context(|| format!("{name} is no XML"))?;
        commands.extend(collect(&document).with_context(|| format!("in {name}"))?);
    }
    fs::write(root.join(TABLE), render(&commands)).with_context(|| format!("cannot write {TABLE}"))?;
    let egl = commands.keys().filter(|name| name.starts_with("egl")).count();
    Ok(format!("{TABLE}: {} GL ES and {egl} EGL entry points", commands.len() - egl))
}

/// Notices changes by hand.
pub(crate) fn check(tree: &Tree) -> Option<Finding> {
    let text = &tree.file(TABLE)?.text;
    let stated = text.lines().find_map(|line| line.strip_prefix(CHECKSUM));
    let body: String =
        text.lines().filter(|line| !line.starts_with(CHECKSUM)).flat_map(|line| [line, "\n"]).collect();
    (stated != Some(checksum(&body).as_str())).then(|| {
        Finding::error(TABLE, 1, "changed by hand: run `cargo xtask gl DIR` with the registry's folder")
    })
}

/// Signatures of all commands of EGL, of GL ES, and of their extensions.
fn collect(document: &Document<'_>) -> Result<BTreeMap<String, String>> {
    let root = document.root_element();
    let wanted = wanted(root);
    let mut commands = BTreeMap::new();
    for command in root.descendants().filter(|node| node.has_tag_name("command")) {
        let Some(proto) = child(command, "proto") else { continue };
        let name = text_of(proto, "name");
        if wanted.contains(name.as_str()) {
            let signature = signature(command, proto).with_context(|| format!("in {name}"))?;
            commands.insert(name, signature);
        }
    }
    if let Some(missing) = wanted.iter().find(|name| !commands.contains_key(**name)) {
        bail!("{missing} is required but not declared");
    }
    Ok(commands)
}

fn wanted<'a>(root: Node<'a, '_>) -> BTreeSet<&'a str> {
    const APIS: [&str; 3] = ["gles1", "gles2", "egl"];
    let ours = |apis: Option<&str>| apis.is_some_and(|apis| apis.split('|').any(|api| APIS.contains(&api)));
    let mut names = BTreeSet::new();
    for node in root.children() {
        let taken = match node.tag_name().name() {
            "feature" => ours(node.attribute("api")),
            "extensions" => {
                let extensions = node.children().filter(|node| ours(node.attribute("supported")));
                extensions.for_each(|extension| names.extend(required(extension)));
                false
            }
            _ => false,
        };
        if taken {
            names.extend(required(node));
        }
    }
    names
}

/// Commands that a feature or an extension requires, unless only desktop GL gets them.
fn required<'a>(node: Node<'a, '_>) -> impl Iterator<Item = &'a str> {
    let require = node.children().filter(|node| node.has_tag_name("require"));
    let require = require.filter(|node| !matches!(node.attribute("api"), Some("gl" | "glcore")));
    require
        .flat_map(|node| node.children().filter(|node| node.has_tag_name("command")))
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

/// How a C type is passed; none for `void`.
fn kind(declared: &str) -> Result<Option<&'static str>> {
    if declared.contains('*') {
        return Ok(Some("Ptr"));
    }
    let name = declared.trim().trim_start_matches("const ").trim_start_matches("struct ").trim();
    Ok(Some(match name {
        "void" => return Ok(None),
        "GLenum" | "GLuint" | "GLbitfield" | "EGLBoolean" | "EGLenum" => "u32",
        "GLint" | "GLsizei" | "GLfixed" | "GLclampx" | "EGLint" | "EGLNativeFileDescriptorKHR" => "i32",
        "GLboolean" | "GLubyte" => "u8",
        "GLbyte" => "i8",
        "GLshort" => "i16",
        "GLushort" | "GLhalfNV" => "u16",
        "GLfloat" | "GLclampf" => "f32",
        "GLdouble" | "GLclampd" => "f64",
        "GLintptr" | "GLsizeiptr" | "EGLAttrib" | "EGLAttribKHR" | "EGLsizeiANDROID" => "isize",
        "GLint64" | "GLint64EXT" | "EGLnsecsANDROID" => "i64",
        "GLuint64" | "GLuint64EXT" | "EGLTime" | "EGLTimeKHR" | "EGLTimeNV" | "EGLuint64KHR"
        | "EGLuint64NV" => "u64",
        // Handles, native windows and functions.
        "GLsync"
        | "GLeglImageOES"
        | "GLeglClientBufferEXT"
        | "GLDEBUGPROC"
        | "GLDEBUGPROCKHR"
        | "GLVULKANPROCNV" => "Ptr",
        name if name.starts_with("EGL") || name.starts_with("__egl") => "Ptr",
        _ => bail!("unknown type '{name}'"),
    }))
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

fn render(commands: &BTreeMap<String, String>) -> String {
    let mut body = String::from(HEAD);
    for (name, signature) in commands {
        body += &format!("            {name}{signature};\n");
    }
    body += "        }\n    };\n}\n";
    format!("{CHECKSUM}{}\n{body}", checksum(&body))
}

const HEAD: &str = "\
//! Every entry point of EGL, GL ES 1 to 3.2 and their extensions.
//!
//! Written by `cargo xtask gl` from the Khronos registry; change nothing here by hand.

/// Hands the whole table to a macro.
#[macro_export]
macro_rules! for_each_entry_point {
    ($then:ident) => {
        $then! {
";

/// FNV-1a, which suffices against slips.
fn checksum(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: &str = r#"<registry>
        <commands>
            <command><proto>void <name>glDrawArrays</name></proto>
                <param><ptype>GLenum</ptype> <name>mode</name></param>
                <param><ptype>GLint</ptype> <name>first</name></param></command>
            <command><proto>const <ptype>GLubyte</ptype> *<name>glGetString</name></proto>
                <param><ptype>GLenum</ptype> <name>type</name></param></command>
            <command><proto>void <name>glBegin</name></proto></command>
        </commands>
        <feature api="gles2"><require><command name="glDrawArrays"/></require></feature>
        <feature api="gl"><require><command name="glBegin"/></require></feature>
        <extensions>
            <extension supported="gl|gles2"><require><command name="glGetString"/></require>
                <require api="gl"><command name="glBegin"/></require></extension>
        </extensions></registry>"#;

    #[test]
    fn commands_of_es_are_taken_with_their_sizes() {
        let commands = collect(&Document::parse(REGISTRY).unwrap()).unwrap();
        let lines: Vec<String> = commands.iter().map(|(name, rest)| format!("{name}{rest}")).collect();
        assert_eq!(lines, ["glDrawArrays(mode: u32, first: i32)", "glGetString(type_: u32) -> Ptr"]);
    }

    #[test]
    fn a_change_by_hand_is_noticed() {
        let commands = collect(&Document::parse(REGISTRY).unwrap()).unwrap();
        let text = render(&commands);
        assert_eq!(check(&Tree::of(&[(TABLE, &text)])), None);
        let changed = text.replace("first: i32", "first: i64");
        assert!(check(&Tree::of(&[(TABLE, &changed)])).is_some());
    }

    #[test]
    fn an_unknown_type_is_an_error() {
        assert!(kind("GLmystery").is_err());
        assert_eq!(kind("const void *").unwrap(), Some("Ptr"));
    }
}
