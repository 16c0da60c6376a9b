//! Names of the CUDA driver API, from bindings that others generated from its headers.
//!
//! `cargo xtask cuda FILE` reads a file of Rust bindings (`src/driver/sys/mod.rs` of the crate `cudarc`, MIT or
//! Apache-2.0) and writes [`ENTRY_POINTS`]: one line per entry point with the sizes of its parameters, which is all
//! that a wrapper needs. The driver exports most functions that take a stream a second time, for programs whose
//! default stream is one per thread. Headers hide those names behind macros, so bindings lack them; [`twin`] knows
//! which functions have one. [`HOOKS`] is the part of the table that Takt stands in front of ([`is_hooked`]);
//! `cargo xtask cuda hooks` writes that part anew from the table that is there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::generated;

pub(crate) const ENTRY_POINTS: &str = "crates/takt-cuda-api/src/table.rs";

pub(crate) const HOOKS: &str = "crates/takt-cuda-api/src/hooks.rs";

/// Entry points that the driver exports for old programs, and that bindings of today lack.
const OLD: &[(&str, &str)] = &[
    ("cuCtxDestroy", "ctx: CUcontext"),
    ("cuDevicePrimaryCtxRelease", "dev: CUdevice"),
    ("cuDevicePrimaryCtxReset", "dev: CUdevice"),
    ("cuStreamBeginCapture", "hStream: CUstream"),
    ("cuStreamDestroy", "hStream: CUstream"),
];

/// Entry points that Takt stands in front of, without the ends of their names ([`family`]): those that give the GPU
/// work, wait for it, or change what Takt keeps in mind. What is missing here goes straight to the driver.
const HOOKED: &[&str] = &[
    "cuArrayDestroy",
    "cuCtxDestroy",
    "cuCtxDetach",
    "cuCtxSynchronize",
    "cuDevicePrimaryCtxRelease",
    "cuDevicePrimaryCtxReset",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuGetProcAddress",
    "cuGraphExecBatchMemOpNodeSetParams",
    "cuGraphExecChildGraphNodeSetParams",
    "cuGraphExecDestroy",
    "cuGraphExecKernelNodeSetParams",
    "cuGraphExecMemcpyNodeSetParams",
    "cuGraphExecMemsetNodeSetParams",
    "cuGraphExecNodeSetParams",
    "cuGraphExecUpdate",
    "cuGraphLaunch",
    "cuGraphNodeSetEnabled",
    "cuGraphUpload",
    "cuGraphicsMapResources",
    "cuGraphicsUnmapResources",
    "cuGreenCtxDestroy",
    "cuInit",
    "cuLaunch",
    "cuLaunchCooperativeKernel",
    "cuLaunchCooperativeKernelMultiDevice",
    "cuLaunchGrid",
    "cuLaunchGridAsync",
    "cuLaunchHostFunc",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuLibraryLoadData",
    "cuLibraryLoadFromFile",
    "cuLibraryUnload",
    "cuMemBatchDecompressAsync",
    "cuMemDiscardAndPrefetchBatchAsync",
    "cuMemFree",
    "cuMemFreeHost",
    "cuMemHostUnregister",
    "cuMemPrefetchAsync",
    "cuMemPrefetchBatchAsync",
    "cuMipmappedArrayDestroy",
    "cuModuleLoad",
    "cuModuleLoadData",
    "cuModuleLoadDataEx",
    "cuModuleLoadFatBinary",
    "cuModuleUnload",
    "cuStreamAddCallback",
    "cuStreamBatchMemOp",
    "cuStreamBeginCapture",
    "cuStreamBeginCaptureToCig",
    "cuStreamBeginCaptureToGraph",
    "cuStreamBeginRecaptureToGraph",
    "cuStreamDestroy",
    "cuStreamEndCapture",
    "cuStreamEndCaptureToCig",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuStreamWaitValue32",
    "cuStreamWaitValue64",
    "cuWaitExternalSemaphoresAsync",
];

/// Functions that take a stream and have no second form.
const WITHOUT_TWIN: &[&str] = &[
    "cuCtxGetStreamPriorityRange",
    "cuEGLStreamConsumerAcquireFrame",
    "cuEGLStreamConsumerReleaseFrame",
    "cuEGLStreamProducerPresentFrame",
    "cuEGLStreamProducerReturnFrame",
    "cuLaunchGridAsync",
    "cuStreamDestroy",
    "cuStreamDestroy_v2",
    "cuStreamGetGreenCtx",
];

/// Functions that have a second form although no parameter of theirs is a stream.
const WITH_TWIN: &[&str] = &["cuGraphInstantiateWithParams", "cuLaunchKernelEx"];

/// Reads bindings and writes the table; says what it holds.
pub(crate) fn write(root: &Path, bindings: &Path) -> Result<String> {
    let text = fs::read_to_string(bindings)
        .with_context(|| format!("cannot read {}: give a file of bindings", bindings.display()))?;
    let entries = collect(&text)?;
    ensure!(entries.contains_key("cuLaunchKernel"), "{} declares no cuLaunchKernel", bindings.display());
    generated::save(root, ENTRY_POINTS, &render(HEAD, &entries))?;
    let twins = entries.keys().filter(|name| name.ends_with("_ptsz") || name.ends_with("_ptds")).count();
    let all = entries.len();
    let hooked: BTreeMap<_, _> = entries.into_iter().filter(|(name, _)| is_hooked(name)).collect();
    generated::save(root, HOOKS, &render(HOOKS_HEAD, &hooked))?;
    let hooked = hooked.len();
    Ok(format!("{ENTRY_POINTS}: {all} entry points, {twins} of them for streams of threads, {hooked} hooked"))
}

/// Writes [`HOOKS`] anew from the table that is there; says what it holds.
pub(crate) fn write_hooks(root: &Path) -> Result<String> {
    let table =
        fs::read_to_string(root.join(ENTRY_POINTS)).with_context(|| format!("cannot read {ENTRY_POINTS}"))?;
    let hooked = hooked_in(&table);
    generated::save(root, HOOKS, &render(HOOKS_HEAD, &hooked))?;
    Ok(format!("{HOOKS}: {} entry points", hooked.len()))
}

/// The entry points of a table that Takt stands in front of, with their signatures.
fn hooked_in(table: &str) -> BTreeMap<String, String> {
    let lines = table.lines().filter_map(|line| line.trim_start().strip_suffix(';'));
    let entries = lines.filter_map(|line| line.split_once('(')).filter(|(name, _)| is_hooked(name));
    entries.map(|(name, rest)| (name.to_owned(), format!("({rest}"))).collect()
}

/// The name of an entry point without its version and without the mark of the thread's default stream.
fn family(name: &str) -> &str {
    let name = name.trim_end_matches("_ptsz").trim_end_matches("_ptds");
    match name.rsplit_once("_v") {
        Some((family, version)) if version.parse::<u32>().is_ok() => family,
        _ => name,
    }
}

/// Whether Takt stands in front of an entry point. All copies and memsets are work.
fn is_hooked(name: &str) -> bool {
    let moves = name.starts_with("cuMemcpy") || name.starts_with("cuMemset");
    moves || HOOKED.contains(&family(name))
}

/// Signatures of all entry points.
fn collect(text: &str) -> Result<BTreeMap<String, String>> {
    let types = Types::of(text);
    let mut entries = BTreeMap::new();
    let mut add = |name: &str, parameters: &str| -> Result<()> {
        let signature = signature(parameters, &types).with_context(|| format!("in {name}"))?;
        if let Some(twin) = twin(name, parameters) {
            entries.insert(twin, signature.clone());
        }
        // Parameters that changed their names are the same parameters.
        match entries.insert(name.to_owned(), signature.clone()) {
            Some(before) if kinds(&before) != kinds(&signature) => bail!("{name} is declared in two ways"),
            _ => Ok(()),
        }
    };
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("pub unsafe fn cu") else { continue };
        // The loader of the library itself.
        if rest.starts_with("lib(") {
            continue;
        }
        let (name, rest) = rest.split_once('(').context("a function without parameters")?;
        let (parameters, result) = rest.split_once(") -> ").with_context(|| format!("in cu{name}"))?;
        ensure!(result.trim_end_matches(" {") == "CUresult", "cu{name} returns {result}");
        add(&format!("cu{name}"), parameters)?;
    }
    for (name, parameters) in OLD {
        add(name, parameters)?;
    }
    Ok(entries)
}

/// The second name of a function, for the default stream of the thread.
fn twin(name: &str, parameters: &str) -> Option<String> {
    let moves = name.starts_with("cuMemcpy") || name.starts_with("cuMemset");
    if moves && !name.contains("Async") && !name.contains("Attributes") {
        return Some(format!("{name}_ptds"));
    }
    let streams = parameters.split(", ").any(|parameter| parameter.ends_with(": CUstream"));
    let has = (streams && !WITHOUT_TWIN.contains(&name)) || WITH_TWIN.contains(&name);
    has.then(|| format!("{name}_ptsz"))
}

/// The types of a signature, without names.
fn kinds(signature: &str) -> Vec<&str> {
    let parameters = signature.trim_matches(['(', ')']).split(", ");
    parameters.map(|parameter| parameter.split_once(": ").map_or("", |(_, kind)| kind)).collect()
}

fn signature(parameters: &str, types: &Types<'_>) -> Result<String> {
    let mut all = Vec::new();
    for parameter in parameters.split(", ").filter(|parameter| !parameter.is_empty()) {
        let (name, declared) = parameter.split_once(": ").context("a parameter without a type")?;
        all.push(format!("{}: {}", identifier(name), types.kind(declared)?));
    }
    Ok(format!("({})", all.join(", ")))
}

fn identifier(name: &str) -> String {
    let name = name.trim_start_matches('_');
    match name {
        "type" | "ref" | "in" | "move" | "match" | "use" | "loop" | "where" | "mod" => format!("{name}_"),
        _ => name.to_owned(),
    }
}

/// What the names of types stand for.
struct Types<'a> {
    aliases: BTreeMap<&'a str, &'a str>,
    enums: Vec<&'a str>,
}

impl<'a> Types<'a> {
    fn of(text: &'a str) -> Self {
        let mut types = Self { aliases: BTreeMap::new(), enums: Vec::new() };
        for line in text.lines() {
            if let Some((name, target)) =
                line.strip_prefix("pub type ").and_then(|rest| rest.split_once(" = "))
            {
                types.aliases.insert(name, target.trim_end_matches(';'));
            } else if let Some((target, name)) =
                line.strip_prefix("pub use self::").and_then(|rest| rest.split_once(" as "))
            {
                types.aliases.insert(name.trim_end_matches(';'), target);
            } else if let Some(name) = line.strip_prefix("pub enum ") {
                types.enums.push(name.trim_end_matches(" {"));
            } else if let Some((name, _)) =
                line.strip_prefix("pub struct ").and_then(|rest| rest.split_once("(pub ::core::ffi::c_uint)"))
            {
                types.enums.push(name);
            }
        }
        types
    }

    /// How a type is passed.
    fn kind(&self, declared: &str) -> Result<&'static str> {
        let pointer = declared.starts_with('*') || declared.starts_with("Option<");
        if pointer || declared.starts_with("::core::option::Option<") {
            return Ok("Ptr");
        }
        Ok(match declared {
            "usize" => "usize",
            "f32" => "f32",
            "u64" | "::core::ffi::c_ulonglong" | "::core::ffi::c_ulong" => "u64",
            "i64" | "::core::ffi::c_longlong" | "::core::ffi::c_long" => "i64",
            "u32" | "::core::ffi::c_uint" => "u32",
            "i32" | "::core::ffi::c_int" => "i32",
            "::core::ffi::c_ushort" => "u16",
            "::core::ffi::c_uchar" => "u8",
            // Structures by value: two words of 32 bits travel in one register, 64 bytes in memory.
            "CUmemLocation" => "u64",
            "CUipcEventHandle" | "CUipcMemHandle" => "Handle64",
            name if self.enums.contains(&name) => "u32",
            name => match self.aliases.get(name) {
                Some(target) => self.kind(target)?,
                None => bail!("unknown type '{name}'"),
            },
        })
    }
}

fn render(head: &str, entries: &BTreeMap<String, String>) -> String {
    let mut body = String::from(head);
    for (name, signature) in entries {
        body += &format!("            {name}{signature};\n");
    }
    body + "        }\n    };\n}\n"
}

const HEAD: &str = "\
//! Every entry point of the CUDA driver API, 11.4 to 13.4.
//!
//! Generated by `cargo xtask cuda`; change nothing here by hand. Each returns a `CUresult`.

/// Hands the whole table to a macro.
#[macro_export]
macro_rules! for_each_entry_point {
    ($then:ident) => {
        $then! {
";

const HOOKS_HEAD: &str = "\
//! The entry points that Takt stands in front of.
//!
//! Generated by `cargo xtask cuda`; change nothing here by hand.

/// Hands them to a macro, as [`for_each_entry_point`](crate::for_each_entry_point) does with all.
#[macro_export]
macro_rules! for_each_hook {
    ($then:ident) => {
        $then! {
";

#[cfg(test)]
mod tests {
    use super::*;

    const BINDINGS: &str = "\
pub use self::cudaError_enum as CUresult;
pub use self::CUmode_enum as CUmode;
pub type CUstream = *mut CUstream_st;
pub type CUcontext = *mut CUctx_st;
pub type CUdevice = CUdevice_v1;
pub type CUdevice_v1 = ::core::ffi::c_int;
pub type CUdeviceptr = CUdeviceptr_v2;
pub type CUdeviceptr_v2 = ::core::ffi::c_ulonglong;
pub enum CUmode_enum {
pub unsafe fn cuMemcpyHtoD_v2(dst: CUdeviceptr, src: *const ::core::ffi::c_void, ByteCount: usize) -> CUresult {
pub unsafe fn cuMemcpyAsync(dst: CUdeviceptr, ByteCount: usize, hStream: CUstream) -> CUresult {
pub unsafe fn cuStreamDestroy_v2(hStream: CUstream) -> CUresult {
pub unsafe fn cuThreadExchange(mode: CUmode, type: ::core::ffi::c_int) -> CUresult {
pub unsafe fn culib() -> &'static ::libloading::Library {
";

    #[test]
    fn entry_points_are_taken_with_their_sizes_and_twins() {
        let entries = collect(BINDINGS).unwrap();
        let lines: Vec<String> = entries.iter().map(|(name, rest)| format!("{name}{rest}")).collect();
        assert_eq!(
            lines,
            [
                "cuCtxDestroy(ctx: Ptr)",
                "cuDevicePrimaryCtxRelease(dev: i32)",
                "cuDevicePrimaryCtxReset(dev: i32)",
                "cuMemcpyAsync(dst: u64, ByteCount: usize, hStream: Ptr)",
                "cuMemcpyAsync_ptsz(dst: u64, ByteCount: usize, hStream: Ptr)",
                "cuMemcpyHtoD_v2(dst: u64, src: Ptr, ByteCount: usize)",
                "cuMemcpyHtoD_v2_ptds(dst: u64, src: Ptr, ByteCount: usize)",
                "cuStreamBeginCapture(hStream: Ptr)",
                "cuStreamBeginCapture_ptsz(hStream: Ptr)",
                "cuStreamDestroy(hStream: Ptr)",
                "cuStreamDestroy_v2(hStream: Ptr)",
                "cuThreadExchange(mode: u32, type_: i32)",
            ]
        );
    }

    #[test]
    fn all_forms_of_a_function_are_hooked() {
        for name in
            ["cuLaunchKernel_ptsz", "cuStreamDestroy_v2", "cuMemcpy2DAsync_v2_ptsz", "cuMemsetD8_v2_ptds"]
        {
            assert!(is_hooked(name), "{name}");
        }
        for name in ["cuGraphAddHostNode", "cuEventRecord_ptsz", "cuGetExportTable", "cuMemAlloc_v2"] {
            assert!(!is_hooked(name), "{name}");
        }
        assert_eq!(family("cuGreenCtxStreamCreate"), "cuGreenCtxStreamCreate");
    }

    #[test]
    fn what_is_hooked_is_what_the_list_says() {
        let file = |name: &str| fs::read_to_string(crate::workspace::root().join(name)).unwrap();
        let hooked = hooked_in(&file(ENTRY_POINTS));
        let missing = HOOKED.iter().filter(|wanted| !hooked.keys().any(|name| family(name) == **wanted));
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<&&str>::new(), "no such entry point");
        let (_, written) =
            file(HOOKS).split_once('\n').map(|(sum, body)| (sum.len(), body.to_owned())).unwrap();
        assert_eq!(written, render(HOOKS_HEAD, &hooked), "cargo xtask cuda hooks");
    }

    #[test]
    fn what_cannot_be_understood_is_an_error() {
        let unknown = "pub unsafe fn cuNew(what: CUmystery) -> CUresult {\n";
        assert!(
            format!("{:#}", collect(unknown).unwrap_err()).contains("in cuNew: unknown type 'CUmystery'")
        );
        let twice = format!("{BINDINGS}pub unsafe fn cuStreamDestroy_v2(hStream: usize) -> CUresult {{\n");
        assert!(collect(&twice).unwrap_err().to_string().contains("declared in two ways"));
    }
}
