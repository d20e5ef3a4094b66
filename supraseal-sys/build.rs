//! Compiles the C++ side, and with the feature `bindgen` generates its
//! bindings instead of using the committed ones.
//!
//! blst's headers and its static library come from the `blst` crate, so that
//! both languages call the same code.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};

const SOURCES: [&str; 5] = ["resources", "pool", "b_g2_msm", "dealloc", "status"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    // Exported by blst's build script, which a prebuilt libblst.a ends early.
    let blst_include = env::var("DEP_BLST_BINDINGS")
        .map_err(|_| "the blst crate exported no include path; build it from its source")?;

    compile(&root, &blst_include);
    #[cfg(feature = "bindgen")]
    generate_bindings(&root, &blst_include)?;

    if env::var_os("CARGO_FEATURE_CUDA").is_some() {
        println!(
            "cargo::warning=feature `cuda`: there is no device code yet, \
             so only the CPU side is built and no GPU will be used"
        );
    }
    println!("cargo::metadata=include={}", root.display());
    println!("cargo::rerun-if-changed=wrapper.h");
    println!("cargo::rerun-if-changed=csrc");
    Ok(())
}

fn compile(root: &Path, blst_include: &str) {
    let source = |name: &str| root.join("csrc").join(name).with_extension("cpp");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .warnings(true)
        .extra_warnings(true)
        .flag_if_supported("-pthread")
        .include(blst_include)
        .files(SOURCES.map(source));
    if env::var_os("CARGO_FEATURE_TEST_HOOKS").is_some() {
        build.file(source("test_hooks"));
    }
    build.compile("cuzk_supraseal");
}

#[cfg(feature = "bindgen")]
fn generate_bindings(root: &Path, blst_include: &str) -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?).join("bindings.rs");
    bindgen::Builder::default()
        .header(root.join("wrapper.h").display().to_string())
        .clang_arg(format!("-I{blst_include}"))
        .allowlist_item("(cuzk|CUZK)_.*")
        .blocklist_item("CUZK_NOEXCEPT")
        // The same types as the `blst` crate's, not copies of them.
        .blocklist_type("blst_.*|limb_t")
        .raw_line("use blst::{blst_fr, blst_p2, blst_p2_affine};")
        .default_macro_constant_type(bindgen::MacroTypeVariation::Signed)
        .rust_edition(bindgen::RustEdition::Edition2024)
        .wrap_unsafe_ops(true)
        .use_core()
        // The same text whatever rustfmt is installed.
        .formatter(bindgen::Formatter::Prettyplease)
        .generate()?
        .write_to_file(&out)?;
    // For the test that compares them with the committed ones.
    println!("cargo::rustc-env=CUZK_GENERATED_BINDINGS={}", out.display());
    Ok(())
}
