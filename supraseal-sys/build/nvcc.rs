//! The CUDA compiler: its place, the architectures that it compiles for, and the way it
//! is called. The C++ compiler, which compiles the host side of the device prover, is
//! not chosen here.
//!
//! Invariant: all decisions here follow from the arguments. So tests need neither a
//! CUDA installation nor an environment.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable that names nvcc itself.
pub(crate) const NVCC_VARIABLE: &str = "NVCC";
/// The variables that name a CUDA installation, whose `bin` holds nvcc.
pub(crate) const HOME_VARIABLES: [&str; 2] = ["CUDA_HOME", "CUDA_PATH"];
/// The variable that names the architectures to compile for.
pub(crate) const ARCH_VARIABLE: &str = "SUPRASEAL_CUDA_ARCH";

const ARCH_DEFAULT: &str = "sm_80,sm_90,sm_120";
/// The place that the installers of CUDA and of distributions use.
const USUAL_PLACE: &str = "/usr/local/cuda";

/// The header of the runtime's interface; its file name stands for the runtime in
/// messages.
const HEADER: &str = "cuda_runtime_api.h";
const RUNTIME: &str = "libcudart_static.a";
/// The folders of an installation that may hold the header: installers and
/// distributions differ.
const INCLUDES: [&str; 2] = ["include", "targets/x86_64-linux/include"];
const LIBRARIES: [&str; 3] = ["lib64", "lib", "targets/x86_64-linux/lib"];

/// Returns the path of nvcc: `NVCC`, else the first on `PATH`, else that of `CUDA_HOME`
/// or `CUDA_PATH`, else that of the usual place.
///
/// # Errors
/// The places that were searched, and what to install.
pub(crate) fn find(
    variable: impl Fn(&str) -> Option<OsString>,
    is_file: impl Fn(&Path) -> bool,
) -> Result<PathBuf, String> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    // A wrong name is an error: nobody expects another compiler than the one named.
    if let Some(path) = set(NVCC_VARIABLE).map(PathBuf::from) {
        return match is_file(&path) {
            true => Ok(path),
            false => Err(format!(
                "{NVCC_VARIABLE} is {}, which is not a file; set it to the path of nvcc or unset it",
                path.display()
            )),
        };
    }
    let on_path = set("PATH").unwrap_or_default();
    let homes = HOME_VARIABLES.iter().filter_map(|name| set(name));
    std::env::split_paths(&on_path)
        .map(|folder| folder.join("nvcc"))
        .chain(
            homes
                .map(PathBuf::from)
                .chain([PathBuf::from(USUAL_PLACE)])
                .map(|home| home.join("bin/nvcc")),
        )
        .find(|path| is_file(path))
        .ok_or_else(|| {
            format!(
                "feature `cuda` needs nvcc, the CUDA compiler (12.8 or later), and there is none in \
                 {NVCC_VARIABLE}, PATH, CUDA_HOME, CUDA_PATH or {USUAL_PLACE}. Install the CUDA \
                 toolkit, or run `export NVCC=$(supraseal-sys/fetch-nvcc.sh)`, which takes it from \
                 the Python registry, or build without the feature"
            )
        })
}

/// The parts of CUDA that the host side of the device prover is compiled and linked
/// with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runtime {
    /// The folder with `cuda_runtime_api.h`.
    pub(crate) include: PathBuf,
    /// The folder with `libcudart_static.a`.
    pub(crate) library: PathBuf,
}

/// Returns CUDA's runtime: the one beside the compiler at `nvcc`, else that in
/// `CUDA_HOME`, else that in `CUDA_PATH`. Links are followed from `nvcc`, because
/// distributions link it into `PATH`. Both parts come from one installation, because
/// parts of two may not fit together.
///
/// # Errors
/// The places that were searched, and what to install.
pub(crate) fn find_runtime(
    nvcc: &Path,
    variable: impl Fn(&str) -> Option<OsString>,
    is_file: impl Fn(&Path) -> bool,
) -> Result<Runtime, String> {
    let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
    let beside = nvcc.parent().and_then(Path::parent).map(Path::to_owned);
    let named = HOME_VARIABLES.iter().filter_map(set).map(PathBuf::from);
    let homes: Vec<PathBuf> = beside.into_iter().chain(named).collect();
    let folder_with = |home: &Path, folders: &[&str], file: &str| {
        let mut folders = folders.iter().map(|folder| home.join(folder));
        folders.find(|folder| is_file(&folder.join(file)))
    };
    homes
        .iter()
        .find_map(|home| {
            Some(Runtime {
                include: folder_with(home, &INCLUDES, HEADER)?,
                library: folder_with(home, &LIBRARIES, RUNTIME)?,
            })
        })
        .ok_or_else(|| {
            let homes: Vec<_> = homes
                .iter()
                .map(|home| home.display().to_string())
                .collect();
            format!(
                "there is no CUDA runtime of {}: none of {} has {HEADER} (in {}) and {RUNTIME} \
                 (in {}). Install the CUDA runtime's development files, or set CUDA_HOME to an \
                 installation that has them",
                nvcc.display(),
                homes.join(", "),
                INCLUDES.join(", "),
                LIBRARIES.join(", ")
            )
        })
}

/// A real architecture: a number. A letter follows for those that run on one kind of
/// card only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arch {
    number: u32,
    variant: Option<char>,
}

impl Arch {
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix("sm_").unwrap_or(text);
        let (digits, variant) = match text.chars().last()? {
            last @ ('a' | 'f') => (&text[..text.len() - 1], Some(last)),
            _ => (text, None),
        };
        let number = digits.parse().ok().filter(|number| *number >= 50)?;
        Some(Self { number, variant })
    }

    fn name(&self) -> String {
        let variant = self.variant.map(String::from).unwrap_or_default();
        format!("{}{variant}", self.number)
    }
}

/// Returns the architectures in `asked`, or the default ones. The names are `sm_90` or
/// `90`, separated by commas or spaces.
///
/// # Errors
/// A name that is not one of an architecture.
pub(crate) fn architectures(asked: Option<&str>) -> Result<BTreeSet<Arch>, String> {
    let asked = asked.filter(|text| !text.trim().is_empty());
    asked
        .unwrap_or(ARCH_DEFAULT)
        .split([',', ' ', ';'])
        .filter(|name| !name.is_empty())
        .map(|name| {
            Arch::parse(name).ok_or_else(|| {
                format!(
                    "{ARCH_VARIABLE}: expected architectures such as \"{ARCH_DEFAULT}\", got {name:?}"
                )
            })
        })
        .collect()
}

/// Returns nvcc's options: machine code for each architecture, and PTX for the lowest
/// one. The driver compiles the PTX for each later card that none of the machine codes
/// fits.
pub(crate) fn gencode(architectures: &BTreeSet<Arch>) -> Vec<String> {
    let real = |arch: &Arch| {
        let name = arch.name();
        format!("-gencode=arch=compute_{name},code=sm_{name}")
    };
    let lowest = architectures.iter().map(|arch| arch.number).min();
    architectures
        .iter()
        .map(real)
        .chain(lowest.map(|lowest| format!("-gencode=arch=compute_{lowest},code=compute_{lowest}")))
        .collect()
}

/// Returns the mangled names of the kernels in a PTX text.
pub(crate) fn entries(ptx: &str) -> BTreeSet<String> {
    ptx.lines()
        .filter_map(|line| line.split_once(".entry "))
        .map(|(_, name)| name.split(['(', ' ']).next().unwrap_or(name).to_owned())
        .collect()
}

/// Returns the most bytes of stack that a kernel's thread has, from ptxas's output with
/// `-v`. Rounded up to whole KiB, which also covers kernels that a later card's driver
/// compiles anew.
///
/// # Errors
/// An output without stack sizes.
pub(crate) fn stack_bytes(ptxas: &str) -> Result<u64, String> {
    let frames = ptxas
        .lines()
        .flat_map(|line| line.split(", "))
        .filter_map(|part| {
            let (bytes, what) = part.trim().split_once(" bytes ")?;
            let is_stack = what == "stack frame" || what.starts_with("cumulative stack size");
            is_stack.then(|| bytes.parse::<u64>().ok())?
        });
    frames
        .max()
        .map(|bytes| bytes.next_multiple_of(1024))
        .ok_or_else(|| "ptxas did not say how large the kernels' stacks are".to_owned())
}
