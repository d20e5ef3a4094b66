//! A fetch of parameters onto a disk that is too small for them.

use std::path::{Path, PathBuf};

use cuzk_core::circuits;
use cuzk_core::error::ErrorCode::Output as FullDisk;
use cuzk_fetch::Digest;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};

use crate::common::{CACHE, text};
use crate::small_disk::{Begin, Disk};

/// The bytes of a page, of which each file on the disk has a whole number.
const PAGE: u64 = 4096;

/// The pages of made-up parameters, and the bytes of their key.
const PAGES: u64 = 700;
const KEY_BYTES: u64 = 500;

/// Makes up parameters in a folder, with a list of their digests.
fn make_up(folder: &Path) -> PathBuf {
    let id = CircuitId {
        kind: ProofKind::WinningPost,
        sector_size: SectorSize::KiB2,
    };
    let files = circuits::parameter_files(id).unwrap();
    let entries = [(files.vk, KEY_BYTES), (files.params, PAGE * PAGES)].map(|(name, length)| {
        let bytes = vec![7; usize::try_from(length).unwrap()];
        let digest = Digest::of_bytes(&bytes);
        std::fs::write(folder.join(&name), bytes).unwrap();
        format!(r#""{name}": {{"cid": "Qm1", "digest": "{digest}", "sector_size": 2048}}"#)
    });
    let list = folder.join("list.json");
    std::fs::write(&list, format!("{{{}}}", entries.join(","))).unwrap();
    list
}

/// The bytes that came are kept in a folder of their own. A file that has its name is whole.
#[test]
fn a_fetch_onto_a_full_disk_asks_for_room_and_for_no_other_source() {
    let Some(disk) = Disk::new("a_fetch_onto_a_full_disk_asks_for_room_and_for_no_other_source")
    else {
        return;
    };
    let from = tempfile::tempdir().unwrap();
    let list = make_up(from.path());
    let (from, list) = (text(from.path()), text(&list));
    let fetch = "params fetch --kind winning-post --sector-size 2KiB";
    let fetch = format!("{fetch} --digests {list} --from {from}");
    let fetch: Vec<_> = fetch.split(' ').collect();
    let own = disk.path("");
    let is_whole_or_kept = |bytes: u64, name: &str| {
        name.starts_with("./.cuzk-fetch/")
            || name.ends_with(".lock")
            || name == "./.cuzk-verified.json"
            || name.ends_with(".vk") && bytes == KEY_BYTES
            || name.ends_with(".params") && bytes == PAGE * PAGES
    };
    // There is less room than the files need. Then there is as much, and none for the records of
    // what came.
    for (pages, place, words) in [
        (PAGES, &*own, "bytes are still to be fetched"),
        (
            PAGES + 1,
            Path::new("v28-proof-of-spacetime"),
            "No space left on device",
        ),
    ] {
        let ran = disk.run(Begin::Empty(PAGE * pages), CACHE, &fetch);
        ran.check(FullDisk, place, is_whole_or_kept);
        let said = String::from_utf8_lossy(&ran.output.stderr);
        assert!(said.contains(words), "{said}");
        assert!(
            said.contains("make room") && !said.contains("another source"),
            "{said}"
        );
    }
}
