//! A line of `/proc/meminfo`, or of another file of the kernel that is written like it.
//!
//! Not the meaning of a line, which is its reader's. The invariant: a line of another form is no
//! line, and never a wrong number.

/// Returns the value of the line that begins with `key`, such as `MemTotal: 1 kB`, in bytes.
pub(super) fn line_bytes(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_line_in_kilobytes_is_read() {
        let text = "MemTotal:  3 kB\nOther: 4\nHuge: 18446744073709551615 kB\nNone: x kB\n";
        assert_eq!(line_bytes(text, "MemTotal:"), Some(3072));
        assert_eq!(line_bytes(text, "Other:"), None);
        assert_eq!(line_bytes(text, "Huge:"), Some(u64::MAX));
        assert_eq!(line_bytes(text, "None:"), None);
        assert_eq!(line_bytes(text, "Missing:"), None);
    }
}
