//! Files of the system, below a root that tests choose.

use std::fs;
use std::path::Path;

/// Returns the text of a file below `root`.
pub(crate) fn read(root: &Path, path: &str) -> Option<String> {
    fs::read_to_string(root.join(path)).ok()
}

/// Returns a value of `/proc/meminfo`, in bytes.
pub(crate) fn meminfo_bytes(meminfo: Option<&str>, key: &str) -> Option<u64> {
    let line = meminfo?.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}

/// Returns the choice in brackets of a file such as `always [madvise] never`.
pub(crate) fn chosen(text: &str) -> Option<&str> {
    text.split_once('[')?
        .1
        .split_once(']')
        .map(|(word, _)| word)
}

/// Returns the soft limit of this name in `/proc/self/limits`; the largest number for no
/// limit.
pub(crate) fn soft_limit(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// Returns the name of the processor, with its family and its model where the system says them.
pub(crate) fn processor(root: &Path) -> Option<String> {
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

/// Returns the name of this machine's processor, for a report.
pub(crate) fn this_processor() -> String {
    processor(Path::new("/")).unwrap_or_else(|| "an unknown processor".to_owned())
}

/// Returns the name and the version of the system, as its files say them.
pub(crate) fn os(root: &Path) -> Option<String> {
    let release = read(root, "etc/os-release")?;
    let line = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_from_the_systems_files() {
        let meminfo = "MemTotal:       1000 kB\nHugePages_Total:       0\n";
        assert_eq!(meminfo_bytes(Some(meminfo), "MemTotal:"), Some(1_024_000));
        assert_eq!(meminfo_bytes(Some(meminfo), "MemFree:"), None);
        assert_eq!(meminfo_bytes(None, "MemTotal:"), None);
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen("always"), None);
        let limits = "Max open files            1024                 4096                 files\n\
                      Max processes             unlimited            unlimited            processes\n";
        assert_eq!(soft_limit(limits, "Max open files"), Some(1024));
        assert_eq!(soft_limit(limits, "Max processes"), Some(u64::MAX));
        assert_eq!(soft_limit(limits, "Max locked memory"), None);
    }

    #[test]
    fn the_machine_says_its_name() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(processor(root.path()), None);
        for (path, text) in [
            (
                "proc/cpuinfo",
                "processor\t: 0\nmodel name\t: A CPU\nmodel name\t: A CPU\n",
            ),
            ("etc/os-release", "ID=a\nPRETTY_NAME=\"A System 1\"\n"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        assert_eq!(processor(root.path()).as_deref(), Some("A CPU"));
        assert_eq!(os(root.path()).as_deref(), Some("A System 1"));
    }
}
