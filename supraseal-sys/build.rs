//! Compiles the C++ side. With the feature `cuda` it compiles the device code, too.
//! With the feature `bindgen` it generates the bindings instead of using the committed
//! ones.
//!
//! blst's headers and its static library come from the `blst` crate, so that both
//! languages call the same code.

#[path = "build/nvcc.rs"]
mod nvcc;

use std::collections::BTreeSet;
use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: [&str; 8] = [
    "resources",
    "pool",
    "copy",
    "b_g2_msm",
    "b_g2_packed",
    "dealloc",
    "status",
    "device_ffi",
];

/// The sources that include the kernels' interface.
const DEVICE_SOURCES: [&str; 5] = [
    "plan",
    "device",
    "device_circuit",
    "device_msms",
    "device_proof",
];

/// The sources of the test hooks.
const HOOK_SOURCES: [&str; 4] = [
    "test_hooks",
    "device_double",
    "double_hold",
    "double_stream",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    // blst's build script exports this. It ends early for a prebuilt libblst.a, and
    // exports nothing then.
    let blst_include = env::var("DEP_BLST_BINDINGS")
        .map_err(|_| "the blst crate exported no include path; build it from its source")?;

    // docs.rs sets it, and has no nvcc. Documentation links nothing.
    println!("cargo::rerun-if-env-changed=DOCS_RS");
    if env::var_os("DOCS_RS").is_none() {
        compile_and_link(&root, &blst_include)?;
    }
    #[cfg(feature = "bindgen")]
    generate_bindings(&root, &blst_include)?;

    println!("cargo::metadata=include={}", root.display());
    for path in ["wrapper.h", "csrc", "cuda", "build"] {
        println!("cargo::rerun-if-changed={path}");
    }
    Ok(())
}

fn compile_and_link(root: &Path, blst_include: &str) -> Result<(), Box<dyn Error>> {
    let cuda = env::var_os("CARGO_FEATURE_CUDA").is_some();
    let toolkit = cuda.then(Toolkit::find).transpose()?;
    let device = toolkit
        .map(|toolkit| DeviceCode::compile(root, toolkit))
        .transpose()?;
    compile(root, blst_include, device.as_ref());
    // Linked after the code that calls it.
    if let Some(device) = &device {
        device.link();
    }
    Ok(())
}

/// Compiles the C++ side into one archive. The files that name device code are compiled
/// twice: once for a card, and once for tests, with that code as plain C++.
fn compile(root: &Path, blst_include: &str, device: Option<&DeviceCode>) {
    let source = |name: &&str| root.join("csrc").join(name).with_extension("cpp");
    let hooks = env::var_os("CARGO_FEATURE_TEST_HOOKS").is_some();
    let compiler = || {
        let mut build = cc::Build::new();
        build
            .cpp(true)
            .std("c++17")
            .warnings(true)
            .extra_warnings(true)
            .flag_if_supported("-pthread")
            .include(blst_include);
        if let Some(device) = device {
            build.define("CUZK_CUDA", None);
            build.define("CUZK_STACK_BYTES", device.stack_bytes.to_string().as_str());
        }
        if hooks {
            build.define("CUZK_DOUBLE", None);
        }
        build
    };
    let mut all = compiler();
    all.files(SOURCES.iter().map(source));
    if let Some(device) = device {
        all.include(&device.toolkit.runtime.include)
            .files(DEVICE_SOURCES.iter().map(source))
            .file(source(&"device_cuda"));
    }
    if hooks {
        // Objects are named after their sources, and these sources are compiled twice.
        let objects = env::var_os("OUT_DIR")
            .map(PathBuf::from)
            .unwrap_or_default();
        let emulated = compiler()
            .out_dir(objects.join("emulated"))
            .define("CUZK_EMULATED", None)
            .include(root.join("csrc/fake_cuda"))
            .files(DEVICE_SOURCES.iter().map(source))
            .files(["device_cuda", "fake_cuda/hooks"].iter().map(source))
            .file(root.join("cuda/emulated.cpp"))
            .compile_intermediates();
        all.objects(emulated).files(HOOK_SOURCES.iter().map(source));
    }
    all.compile("cuzk_supraseal");
}

/// A CUDA installation.
struct Toolkit {
    nvcc: PathBuf,
    runtime: nvcc::Runtime,
}

impl Toolkit {
    fn find() -> Result<Self, Box<dyn Error>> {
        for name in ["PATH", nvcc::NVCC_VARIABLE, nvcc::ARCH_VARIABLE]
            .iter()
            .chain(&nvcc::HOME_VARIABLES)
        {
            println!("cargo::rerun-if-env-changed={name}");
        }
        let nvcc = nvcc::find(|name| env::var_os(name), Path::is_file)?;
        let real = fs::canonicalize(&nvcc)?;
        let runtime = nvcc::find_runtime(&real, |name| env::var_os(name), Path::is_file)?;
        Ok(Self { nvcc, runtime })
    }
}

/// The output of nvcc for `cuda/*.cu`.
struct DeviceCode {
    toolkit: Toolkit,
    objects: Vec<PathBuf>,
    /// The most stack that a kernel's thread has.
    stack_bytes: u64,
}

impl DeviceCode {
    fn compile(root: &Path, toolkit: Toolkit) -> Result<Self, Box<dyn Error>> {
        let sources = files_in(&root.join("cuda"), "cu")?;
        let objects = PathBuf::from(env::var("OUT_DIR")?).join("cuda");
        // The output of an earlier build must not be used for this one.
        if objects.exists() {
            fs::remove_dir_all(&objects)?;
        }
        fs::create_dir_all(&objects)?;
        let asked = env::var(nvcc::ARCH_VARIABLE).ok();
        let architectures = nvcc::architectures(asked.as_deref())?;
        let host_compiler = cc::Build::new().cpp(true).get_compiler();
        let mut command = Command::new(&toolkit.nvcc);
        command
            .args(["-std=c++17", "-O3", "--compile", "-Xcompiler=-fPIC"])
            // Prints the sizes of stacks.
            .arg("-Xptxas=-v")
            .args(["--threads", &env::var("NUM_JOBS")?])
            .arg("-ccbin")
            .arg(host_compiler.path())
            .args(nvcc::gencode(&architectures))
            // The PTX is kept for the list of entries.
            .args(["--keep", "--keep-dir"])
            .arg(&objects)
            .args(&sources)
            .current_dir(&objects);
        // Lints ask for no optimisation. The compilers of device code are fastest with a little of it.
        if env::var("OPT_LEVEL")? == "0" {
            command.args(["-Xcicc=-O1", "-Xptxas=-O1"]);
        }
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(format!("nvcc failed ({}): {command:?}\n{said}", output.status).into());
        }
        list_entries(&objects)?;
        Ok(Self {
            toolkit,
            objects: files_in(&objects, "o")?,
            stack_bytes: nvcc::stack_bytes(&said)?,
        })
    }

    /// Links the device code and the CUDA runtime, both statically. The program needs a
    /// driver where it runs, and nothing else of CUDA.
    fn link(&self) {
        cc::Build::new()
            .objects(&self.objects)
            .compile("cuzk_device");
        println!(
            "cargo::rustc-link-search=native={}",
            self.toolkit.runtime.library.display()
        );
        println!("cargo::rustc-link-lib=static=cudart_static");
        for library in ["dl", "rt", "pthread", "stdc++"] {
            println!("cargo::rustc-link-lib={library}");
        }
    }
}

/// Writes the names of the kernels in the PTX beside it. A test compares them with the
/// committed names. A kernel that only the host compiler saw is missing from the device
/// code, and everything still links.
fn list_entries(objects: &Path) -> Result<(), Box<dyn Error>> {
    let mut mangled = BTreeSet::new();
    for ptx in files_in(objects, "ptx")? {
        mangled.extend(nvcc::entries(&fs::read_to_string(ptx)?));
    }
    let output = Command::new("c++filt").args(&mangled).output()?;
    let names: BTreeSet<String> = String::from_utf8(output.stdout)?
        .lines()
        .map(str::to_owned)
        .collect();
    let list: String = names.iter().map(|name| format!("{name}\n")).collect();
    let path = objects.join("entries.txt");
    fs::write(&path, list)?;
    println!("cargo::rustc-env=CUZK_PTX_ENTRIES={}", path.display());
    Ok(())
}

/// Returns the files of `folder` with this extension, in the order of their names.
fn files_in(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(feature = "bindgen")]
fn generate_bindings(root: &Path, blst_include: &str) -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?).join("bindings.rs");
    bindgen::Builder::default()
        .header(root.join("wrapper.h").display().to_string())
        .clang_arg(format!("-I{blst_include}"))
        .allowlist_item("(cuzk|CUZK)_.*")
        .blocklist_item("CUZK_NOEXCEPT")
        // The types of the `blst` crate itself, not copies of them.
        .blocklist_type("blst_.*|limb_t")
        .raw_line("use blst::{blst_fr, blst_p1, blst_p2, blst_p2_affine};")
        .default_macro_constant_type(bindgen::MacroTypeVariation::Signed)
        .rust_edition(bindgen::RustEdition::Edition2024)
        .wrap_unsafe_ops(true)
        .use_core()
        // The text must not depend on the installed rustfmt.
        .formatter(bindgen::Formatter::Prettyplease)
        .generate()?
        .write_to_file(&out)?;
    // For the test that compares them with the committed bindings.
    println!("cargo::rustc-env=CUZK_GENERATED_BINDINGS={}", out.display());
    Ok(())
}
