//! Modules, libraries and their kernels.

use std::ffi::{CStr, CString};

use takt_cuda_api::{Ptr, result};

use crate::capture::guarded;
use crate::kernels::{Kernel, entries};
use crate::put;
use crate::world::{World, pointer, world};

/// A module, or a library, which is the same here.
#[derive(Debug)]
pub(crate) struct Module {
    entries: Vec<(String, Vec<usize>)>,
    functions: Vec<usize>,
}

/// A kernel of a module, be it called a function or a kernel.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) kernel: Kernel,
    pub(crate) name: CString,
    /// Sizes of its parameters.
    pub(crate) parameters: Vec<usize>,
    module: usize,
    /// It was launched.
    pub(crate) loaded: bool,
}

/// Only text is understood.
unsafe fn load(image: Ptr) -> Result<usize, i32> {
    guarded()?;
    if image.is_null() {
        return Err(result::INVALID_VALUE);
    }
    // SAFETY: an image of PTX is text that ends with a zero byte.
    let text = unsafe { CStr::from_ptr(image.cast()) }.to_string_lossy();
    if !text.contains(".entry") {
        return Err(result::INVALID_IMAGE);
    }
    Ok(world().modules.add(Module { entries: entries(&text), functions: Vec::new() }))
}

fn unload(module: usize) -> crate::Answer {
    let mut world = world();
    let functions = world.modules.remove(module)?.functions;
    functions.into_iter().try_for_each(|function| world.functions.remove(function).map(drop))
}

impl World {
    fn function(&mut self, module: usize, name: &str) -> Result<usize, i32> {
        let there = self
            .functions
            .all()
            .find(|(_, function)| function.module == module && function.name.to_bytes() == name.as_bytes());
        if let Some((handle, _)) = there {
            return Ok(handle);
        }
        let entries = &self.modules.get(module)?.entries;
        let (_, parameters) = entries.iter().find(|(entry, _)| entry == name).ok_or(result::NOT_FOUND)?;
        let function = Function {
            kernel: Kernel::of(name),
            name: CString::new(name).map_err(|_zero| result::INVALID_VALUE)?,
            parameters: parameters.clone(),
            module,
            loaded: false,
        };
        let handle = self.functions.add(function);
        self.modules.get(module)?.functions.push(handle);
        Ok(handle)
    }
}

unsafe fn find(to: Ptr, module: Ptr, name: Ptr) -> crate::Answer {
    // SAFETY: a name that ends with a zero byte.
    let name = unsafe { CStr::from_ptr(name.cast()) }.to_string_lossy();
    let handle = world().function(module.addr(), &name)?;
    // SAFETY: up to the caller.
    unsafe { put(to, pointer(handle)) }
}

unsafe fn tell_name(to: Ptr, function: Ptr) -> crate::Answer {
    let mut world = world();
    let name = world.functions.get(function.addr())?.name.as_ptr();
    // SAFETY: up to the caller.
    unsafe { put(to, name) }
}

api! {
    fn cuModuleLoadData(module: Ptr, image: Ptr) { put(module, pointer(load(image)?)) }

    fn cuModuleLoadDataEx(module: Ptr, image: Ptr, numOptions: u32, options: Ptr, optionValues: Ptr) {
        let _unused = (numOptions, options, optionValues);
        put(module, pointer(load(image)?))
    }

    fn cuModuleUnload(hmod: Ptr) { unload(hmod.addr()) }

    fn cuModuleGetFunction(hfunc: Ptr, hmod: Ptr, name: Ptr) { find(hfunc, hmod, name) }

    fn cuLibraryLoadData(
        library: Ptr, code: Ptr, jitOptions: Ptr, jitOptionsValues: Ptr, numJitOptions: u32, libraryOptions: Ptr,
        libraryOptionValues: Ptr, numLibraryOptions: u32
    ) {
        let _unused = (jitOptions, jitOptionsValues, numJitOptions);
        let _unused = (libraryOptions, libraryOptionValues, numLibraryOptions);
        put(library, pointer(load(code)?))
    }

    fn cuLibraryUnload(library: Ptr) { unload(library.addr()) }

    fn cuLibraryGetKernel(pKernel: Ptr, library: Ptr, name: Ptr) { find(pKernel, library, name) }

    fn cuKernelGetFunction(pFunc: Ptr, kernel: Ptr) {
        world().functions.get(kernel.addr())?;
        put(pFunc, kernel)
    }

    fn cuKernelGetLibrary(pLib: Ptr, kernel: Ptr) {
        let module = world().functions.get(kernel.addr())?.module;
        put(pLib, pointer(module))
    }

    fn cuFuncGetModule(hmod: Ptr, hfunc: Ptr) {
        let module = world().functions.get(hfunc.addr())?.module;
        put(hmod, pointer(module))
    }

    fn cuFuncGetName(name: Ptr, hfunc: Ptr) { tell_name(name, hfunc) }

    fn cuKernelGetName(name: Ptr, hfunc: Ptr) { tell_name(name, hfunc) }

    fn cuFuncGetAttribute(pi: Ptr, attrib: u32, hfunc: Ptr) {
        let _unused = attrib;
        world().functions.get(hfunc.addr())?;
        put(pi, 0_i32)
    }

    fn cuFuncIsLoaded(state: Ptr, function: Ptr) {
        let loaded = world().functions.get(function.addr())?.loaded;
        put(state, u32::from(loaded))
    }

    fn cuModuleGetLoadingMode(mode: Ptr) { put(mode, 2_u32) }
}
