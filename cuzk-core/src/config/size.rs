//! Sizes as people write and read them.
//!
//! Not their checks. The invariant: a size that is printed reads back as the same number.

/// Returns the shortest exact spelling of a size: `24GiB`, `1023KiB`, `7B`.
pub(super) fn exact_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    let unit = UNITS
        .iter()
        .find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    let (unit, name) = unit.copied().unwrap_or((1, "B"));
    format!("{}{name}", bytes / unit)
}
