//! The machine of a figure: what a reader needs to compare it with another one.
//!
//! Not what a proof needs, which the doctor checks. The invariant: each value is read from the
//! system when the figure is made.

use std::fmt;
use std::fs;
use std::path::Path;

use cuzk_kernels::Isa;
use serde::Serialize;

use super::system;

/// The machine on which something is measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Host {
    /// The name, the family and the model.
    processor: String,
    cores: usize,
    /// The instructions of the kernels that run.
    instructions: &'static str,
    /// The caches that the first core uses, from the smallest level to the largest.
    caches: Vec<String>,
    /// Where the system uses huge pages: `always`, `madvise` or `never`.
    huge_pages: String,
    /// The release of the operating system's kernel.
    system: String,
}

impl Host {
    /// Reads the files of the system below `root`. `isa` are the instructions of the kernels.
    pub(crate) fn read(root: &Path, isa: Isa) -> Self {
        let text = |path| system::read(root, path);
        let pages = text("sys/kernel/mm/transparent_hugepage/enabled");
        let release = text("proc/sys/kernel/osrelease");
        Self {
            processor: system::processor(root).unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            instructions: isa.name(),
            caches: caches(&root.join("sys/devices/system/cpu/cpu0/cache")),
            huge_pages: pages
                .as_deref()
                .and_then(system::chosen)
                .map_or_else(unknown, str::to_owned),
            system: release.map_or_else(unknown, |release| release.trim().to_owned()),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "machine: {}, {} core(s); instructions {}; caches {}; huge pages {}; system {}",
            self.processor,
            self.cores,
            self.instructions,
            self.caches.join(", "),
            self.huge_pages,
            self.system
        )
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// Returns the caches of a core, such as `L2 2048K`. Those of instructions are left out.
fn caches(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let cache = |folder: &Path| {
        let value = |name| {
            let text = fs::read_to_string(folder.join(name)).ok()?;
            Some(text.trim().to_owned())
        };
        let is_of_data = value("type")? != "Instruction";
        is_of_data.then(|| Some(format!("L{} {}", value("level")?, value("size")?)))?
    };
    let mut caches: Vec<_> = entries.filter_map(|entry| cache(&entry.path())).collect();
    caches.sort();
    caches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_of_a_figure_is_read_from_the_system() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::read(root.path(), Isa::PORTABLE);
        assert_eq!((host.processor.as_str(), host.caches.len()), ("unknown", 0));
        let cache = "sys/devices/system/cpu/cpu0/cache";
        for (path, text) in [
            (
                "proc/cpuinfo",
                "cpu family\t: 6\nmodel\t\t: 207\nmodel name\t: A CPU\n",
            ),
            ("proc/sys/kernel/osrelease", "6.1\n"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never\n",
            ),
            (&format!("{cache}/index0/type"), "Data\n"),
            (&format!("{cache}/index0/level"), "1\n"),
            (&format!("{cache}/index0/size"), "48K\n"),
            (&format!("{cache}/index1/type"), "Instruction\n"),
            (&format!("{cache}/index1/level"), "1\n"),
            (&format!("{cache}/index1/size"), "32K\n"),
            (&format!("{cache}/index2/type"), "Unified\n"),
            (&format!("{cache}/index2/level"), "2\n"),
            (&format!("{cache}/index2/size"), "2048K\n"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let text = Host::read(root.path(), Isa::PORTABLE).to_string();
        let text = text.replace(|digit: char| digit.is_ascii_digit(), "#");
        assert_eq!(
            text,
            "machine: A CPU, family #, model ###, # core(s); instructions portable; caches L# ##K, \
             L# ####K; huge pages madvise; system #.#"
        );
    }
}
