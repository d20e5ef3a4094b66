//! The memory of this process, as the kernel counts it.

/// Returns the bytes of the largest resident set so far, if the kernel counts them. Linux
/// does.
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    of_status("VmHWM:")
}

/// Returns the bytes of the resident set now.
pub(crate) fn rss_bytes() -> Option<u64> {
    of_status("VmRSS:")
}

/// Returns the share of this process's anonymous memory that is on huge pages, 0 to 1.
pub(crate) fn huge_page_share() -> Option<f64> {
    let rollup = "/proc/self/smaps_rollup";
    let huge = of_file(rollup, "AnonHugePages:")?;
    let all = of_file(rollup, "Anonymous:").filter(|bytes| *bytes > 0)?;
    Some(huge as f64 / all as f64)
}

fn of_status(name: &str) -> Option<u64> {
    of_file("/proc/self/status", name)
}

fn of_file(path: &str, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(path).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn it_grows_with_what_is_touched() {
        let before = super::peak_rss_bytes().unwrap();
        let touched = std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = super::peak_rss_bytes().unwrap();
        assert!(after >= before.max(touched.len() as u64));
    }
}
