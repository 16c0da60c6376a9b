//! Programs that no daemon schedules, with the library in front of a driver without a GPU: nothing changes for them.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

#[path = "../../takt-cli/tests/support/built.rs"]
mod built;

fn products() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// The folder of the library under test and of the driver.
fn libraries() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built::packages(&["takt-cuda-hook", "takt-cuda-fake"]))
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

impl Folder {
    fn library(&self) -> PathBuf {
        self.0.join("libcuda.so.1")
    }
}

/// A folder as `takt run` makes it, for one test; `driver` is what stands behind the library.
fn folder(test: &str, driver: &Path) -> Folder {
    let folder = products().join(format!("cuda-{test}-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("none")).expect("our own folder");
    std::fs::copy(libraries().join("libcuda_takt.so"), folder.join("libcuda.so.1")).expect("it was built");
    for (to, name) in [
        (Path::new("libcuda.so.1"), "libcuda.so"),
        (driver, "libcuda-driver.so"),
        (Path::new("../libcuda.so.1"), "none/libcuda-driver.so"),
    ] {
        symlink(to, folder.join(name)).expect("our own folder");
    }
    Folder(folder)
}

fn fake() -> PathBuf {
    libraries().join("libtakt_cuda_fake.so")
}

/// Compiles a program; with `linked` it needs the driver from its start.
fn compile(name: &str, linked: bool) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let program = products().join(format!("cuda-{name}-{linked}"));
    // Tests that share a program run at the same time, so it is put there as a whole.
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let beside = products().join(format!("cuda-{name}-{}-{number}", std::process::id()));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-Wall", "-Werror", "-o"]).arg(&beside).arg(source);
    if linked {
        // All names are looked for at the start, so that one that is missing is noticed.
        gcc.args(["-DLINKED", "-Wl,-z,now"]).arg(fake());
    }
    let output = gcc.args(["-ldl", "-lpthread"]).output().expect("gcc starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    std::fs::rename(&beside, &program).expect("our own files");
    program
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a program on the driver alone.
fn alone(program: &Path, find: &str) -> Output {
    let folder = Folder(products().join(format!("cuda-alone-{}-{find}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("our own folder");
    symlink(fake(), folder.library()).expect("our own folder");
    Command::new(program).env("LD_LIBRARY_PATH", &folder.0).env("FIND", find).output().expect("it starts")
}

#[test]
fn programs_find_the_same_in_every_way() {
    let folder = folder("ways", &fake());
    for name in ["order", "graphs", "threads"] {
        for find in ["linked", "symbol", "address", "thread"] {
            let program = compile(name, find == "linked");
            let expected = alone(&program, find);
            assert!(expected.status.success(), "{name} {find}: {}", text(&expected.stdout));
            for (preload, library) in [(true, "libcuda.so.1"), (false, "libcuda.so"), (false, "libcuda.so.1")]
            {
                let mut command = Command::new(&program);
                command.env("FIND", find).env("LIBRARY", library).env("LD_LIBRARY_PATH", &folder.0);
                if preload {
                    command.env("LD_PRELOAD", folder.library());
                }
                let output = command.output().expect("it starts");
                assert_eq!(text(&output.stdout), text(&expected.stdout), "{name} {find} {library} {preload}");
                assert_eq!(text(&output.stderr), "", "{name} {find}");
                assert!(output.status.success());
            }
        }
    }
}

/// Compiles a program whose calls all come from a library, as those of the CUDA runtime do where it is a library of
/// its own; with `opened`, that is opened when the program runs, as Python does it.
fn behind_a_library(name: &str, opened: bool) -> PathBuf {
    let number = std::process::id();
    let of = |what: &str| products().join(format!("cuda-{name}-{opened}-{number}-{what}"));
    let (library, main, program) = (of("runtime.so"), of("main.c"), of("behind"));
    let text_of = if opened {
        format!(
            "#include <dlfcn.h>\nint main(void) {{ void *l = dlopen(\"{}\", RTLD_NOW | RTLD_LOCAL); \
             void (*run)(void) = l ? dlsym(l, \"run\") : 0; if (!run) return 9; run(); return 0; }}\n",
            library.display()
        )
    } else {
        "void run(void);\nint main(void) { run(); return 0; }\n".to_owned()
    };
    std::fs::write(&main, text_of).expect("our own file");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-shared", "-fPIC", "-Dmain=run", "-o"]).arg(&library).arg(source).arg("-lpthread");
    assert!(gcc.status().expect("gcc starts").success());
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-o"]).arg(&program).arg(main).arg("-ldl");
    if !opened {
        gcc.arg(&library);
    }
    assert!(gcc.status().expect("gcc starts").success());
    program
}

#[test]
fn runtimes_that_are_libraries_find_the_same() {
    let folder = folder("runtimes", &fake());
    for opened in [false, true] {
        let (program, names) = (behind_a_library("order", opened), behind_a_library("names", opened));
        for find in ["address", "thread"] {
            let expected = alone(&program, find);
            assert!(expected.status.success(), "{find}: {}", text(&expected.stdout));
            let hooked = |program: &Path| {
                let mut command = Command::new(program);
                command.env("FIND", find).env("LD_LIBRARY_PATH", &folder.0).output().expect("it starts")
            };
            let output = hooked(&program);
            assert_eq!(
                text(&output.stdout),
                text(&expected.stdout),
                "{find} {opened}: {}",
                text(&output.stderr)
            );
            let found = text(&hooked(&names).stdout);
            assert!(
                found.contains("cuLaunchKernel: ours by name, ours by address"),
                "{find} {opened}: {found}"
            );
        }
    }
}

#[test]
fn a_program_without_a_driver_sees_no_device() {
    let folder = folder("none", Path::new("/no/such/driver"));
    let program = compile("threads", false);
    let preload = folder.library();
    let output = Command::new(&program).env("FIND", "symbol").env("LD_PRELOAD", &preload).output();
    let said = text(&output.expect("it starts").stdout);
    assert!(said.ends_with("cuInit(0) gives 100\n"), "{said}");
    let other = Command::new("/bin/true").env("LD_PRELOAD", &preload).output().expect("it starts");
    assert_eq!((other.status.success(), text(&other.stderr)), (true, String::new()), "others do not care");
}

#[test]
fn a_driver_without_a_gpu_says_so_itself() {
    let folder = folder("no-gpu", &fake());
    let output = Command::new(compile("threads", false))
        .envs([("FIND", "address"), ("TAKT_FAKE_DEVICES", "0")])
        .env("LD_PRELOAD", folder.library())
        .output()
        .expect("it starts");
    assert!(text(&output.stdout).ends_with("cuInit(0) gives 100\n"), "{}", text(&output.stdout));
}

#[test]
fn names_that_are_not_hooked_lead_to_the_driver() {
    let folder = folder("names", &fake());
    let output = Command::new(compile("names", false))
        .env("LD_PRELOAD", folder.library())
        .output()
        .expect("it starts");
    assert_eq!(
        text(&output.stdout),
        "cuLaunchKernel: ours by name, ours by address\n\
         cuEventRecord: the driver's by name, the driver's by address\n\
         cuGetExportTable: the driver's by name, the driver's by address\n\
         cuStreamBeginCapture: ours by name, ours by address\n"
    );
    let hidden = Command::new(compile("names", false))
        .env("LD_PRELOAD", folder.library())
        .env("TAKT_FAKE_HIDDEN", "1")
        .output()
        .expect("it starts");
    let said = text(&hidden.stdout);
    assert!(said.contains("cuLaunchKernel: ours by name, ours by address\n"), "{said}");
    assert!(said.contains("cuEventRecord: the driver's by name, another by address\n"), "{said}");
}
