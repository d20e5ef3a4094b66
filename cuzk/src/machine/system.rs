//! Files of the system, below a root that tests choose.

use std::path::Path;

pub(crate) use cuzk_tune::machine::{chosen, processor, read};

/// Returns a value of `/proc/meminfo`, in bytes.
pub(crate) fn meminfo_bytes(meminfo: Option<&str>, key: &str) -> Option<u64> {
    let line = meminfo?.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
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
    use std::fs;

    use super::*;

    #[test]
    fn values_are_read_from_the_systems_files() {
        let meminfo = "MemTotal:       1000 kB\nHugePages_Total:       0\n";
        assert_eq!(meminfo_bytes(Some(meminfo), "MemTotal:"), Some(1_024_000));
        assert_eq!(meminfo_bytes(Some(meminfo), "MemFree:"), None);
        assert_eq!(meminfo_bytes(None, "MemTotal:"), None);
        let limits = "Max open files            1024                 4096                 files\n\
                      Max processes             unlimited            unlimited            processes\n";
        assert_eq!(soft_limit(limits, "Max open files"), Some(1024));
        assert_eq!(soft_limit(limits, "Max processes"), Some(u64::MAX));
        assert_eq!(soft_limit(limits, "Max locked memory"), None);
    }

    #[test]
    fn the_system_says_its_name() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(os(root.path()), None);
        fs::create_dir(root.path().join("etc")).unwrap();
        let text = "ID=a\nPRETTY_NAME=\"A System 1\"\n";
        fs::write(root.path().join("etc/os-release"), text).unwrap();
        assert_eq!(os(root.path()).as_deref(), Some("A System 1"));
    }
}
