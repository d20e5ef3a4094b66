//! The room on the disks that the daemon writes to, asked at each scrape.
//!
//! A folder that is not there, or cannot be asked, has no sample.

use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

use super::family::Family;

/// Returns the families of these folders, each with the name of what it holds.
pub(super) fn families(folders: &[(&'static str, PathBuf)]) -> [Family; 2] {
    let free = Family::new(
        "cuzk_disk_free_bytes",
        "gauge",
        "Room on the disk of a folder for the user of the daemon",
    );
    let size = Family::new(
        "cuzk_disk_size_bytes",
        "gauge",
        "Size of the disk of a folder",
    );
    let measured = folders.iter().filter_map(|(what, folder)| {
        let (free_bytes, size_bytes) = room(folder)?;
        Some((format!("{{folder=\"{what}\"}}"), free_bytes, size_bytes))
    });
    measured.fold(
        [free, size],
        |[free, size], (labels, free_bytes, size_bytes)| {
            [
                free.with(labels.clone(), free_bytes as f64),
                size.with(labels, size_bytes as f64),
            ]
        },
    )
}

/// Returns the free and all bytes of a folder's disk.
fn room(folder: &Path) -> Option<(u64, u64)> {
    let stat = statvfs(folder).ok()?;
    let block = stat.fragment_size();
    let [free, all] = [stat.blocks_available(), stat.blocks()];
    Some((free.saturating_mul(block), all.saturating_mul(block)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_room_and_a_missing_one_no_sample() {
        let (free, size) = room(Path::new("/")).unwrap();
        assert!(free <= size && size > 0);
        assert_eq!(room(Path::new("/no/such/folder")), None);
        let folders = [("journal", "/".into()), ("parameters", "/no/such".into())];
        let mut text = String::new();
        families(&folders)
            .iter()
            .for_each(|family| family.write(&mut text));
        assert!(
            text.contains("cuzk_disk_size_bytes{folder=\"journal\"} "),
            "{text}"
        );
        assert!(!text.contains("parameters"), "{text}");
    }
}
