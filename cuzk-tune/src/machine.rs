//! The machine of a figure: what a reader needs to compare it with another one.
//!
//! Not what a proof needs, which the doctor checks. The invariant: each value is read from the
//! system when the figure is made.

use std::fmt;
use std::fs;
use std::path::Path;

use serde::Serialize;

/// The machine on which something is measured.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
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
    /// Reads the files of the system below `root`. `instructions` are those of the kernels that
    /// run, by name. A value that the system does not say is `unknown`.
    #[must_use]
    pub fn read(root: &Path, instructions: &'static str) -> Self {
        let text = |path| read(root, path);
        let pages = text("sys/kernel/mm/transparent_hugepage/enabled");
        let release = text("proc/sys/kernel/osrelease");
        Self {
            processor: processor(root).unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            instructions,
            caches: caches(&root.join("sys/devices/system/cpu/cpu0/cache")),
            huge_pages: pages
                .as_deref()
                .and_then(chosen)
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

/// Returns the text of a file below `root`.
#[must_use]
pub fn read(root: &Path, path: &str) -> Option<String> {
    fs::read_to_string(root.join(path)).ok()
}

/// Returns the choice in brackets of a file such as `always [madvise] never`.
#[must_use]
pub fn chosen(text: &str) -> Option<&str> {
    text.split_once('[')?
        .1
        .split_once(']')
        .map(|(word, _)| word)
}

/// Returns the name of the processor, with its family and its model where the system says them.
#[must_use]
pub fn processor(root: &Path) -> Option<String> {
    let info = read(root, "proc/cpuinfo")?;
    let value = |key: &str| {
        let mut values = info.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = values.find(|(name, _)| name.trim() == key)?;
        Some(value.trim())
    };
    let name = value("model name")?.to_owned();
    Some(match (value("cpu family"), value("model")) {
        (Some(family), Some(model)) => format!("{name}, family {family}, model {model}"),
        _ => name,
    })
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
    fn a_choice_is_in_brackets() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen("always"), None);
    }

    #[test]
    fn a_processor_without_a_family_has_a_name() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(processor(root.path()), None);
        fs::create_dir(root.path().join("proc")).unwrap();
        let text = "processor\t: 0\nmodel name\t: A CPU\nmodel name\t: B\n";
        fs::write(root.path().join("proc/cpuinfo"), text).unwrap();
        assert_eq!(processor(root.path()).as_deref(), Some("A CPU"));
    }

    #[test]
    fn the_machine_of_a_figure_is_read_from_the_system() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::read(root.path(), "portable");
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
        let text = Host::read(root.path(), "portable").to_string();
        let text = text.replace(|digit: char| digit.is_ascii_digit(), "#");
        assert_eq!(
            text,
            "machine: A CPU, family #, model ###, # core(s); instructions portable; caches L# ##K, \
             L# ####K; huge pages madvise; system #.#"
        );
    }
}
