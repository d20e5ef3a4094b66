//! The networks' list of parameters, as the proofs crates ship it. Each of our circuits is in
//! it under our name, with both of its files. No value is there by mistake.

use std::collections::{BTreeMap, BTreeSet};

use cuzk_core::circuits;
use cuzk_fetch::{Digest, Digests};
use cuzk_filecoin::{CircuitId, PARAMETERS_JSON, ProofKind, SectorSize};

/// Every circuit that can be proved.
fn all() -> Vec<CircuitId> {
    let of_kind = |kind| {
        let sizes = SectorSize::ALL.into_iter();
        sizes.map(move |sector_size| CircuitId { kind, sector_size })
    };
    ProofKind::ALL.into_iter().flat_map(of_kind).collect()
}

/// The files of the list by the part of their name before the extension.
fn pairs(list: &Digests) -> BTreeMap<String, BTreeSet<String>> {
    let mut pairs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in list.files() {
        let (stem, extension) = file.name.rsplit_once('.').unwrap();
        let extensions = pairs.entry(stem.to_owned()).or_default();
        assert!(extensions.insert(extension.to_owned()), "{}", file.name);
    }
    pairs
}

/// A circuit whose name the list does not have could use no network's parameters.
#[test]
fn each_circuit_is_in_the_networks_list_with_its_sector_size() {
    let list = Digests::parse(PARAMETERS_JSON).unwrap();
    let mut names = BTreeSet::new();
    for id in all() {
        let files = circuits::parameter_files(id).unwrap();
        for name in [files.params, files.vk] {
            let listed = list.get(&name);
            let listed = listed.unwrap_or_else(|| panic!("{id}: {name} is not listed"));
            assert_eq!(listed.sector_size_bytes, id.sector_size.bytes(), "{name}");
            assert!(names.insert(name), "{id}: two circuits have one name");
        }
    }
    assert_eq!(names.len(), 40);
}

#[test]
fn the_networks_list_has_a_key_for_each_file_of_parameters_and_no_value_twice() {
    let list = Digests::parse(PARAMETERS_JSON).unwrap();
    let both = BTreeSet::from(["params".to_owned(), "vk".to_owned()]);
    let pairs = pairs(&list);
    assert!(pairs.len() >= 20, "{}", pairs.len());
    for (stem, extensions) in &pairs {
        assert_eq!(*extensions, both, "{stem}");
        let of = |extension: &str| list.get(&format!("{stem}.{extension}")).unwrap();
        let sizes = [of("params"), of("vk")].map(|file| file.sector_size_bytes);
        assert_eq!(sizes[0], sizes[1], "{stem}");
        assert!(stem.starts_with("v28-"), "{stem}");
    }
    let sizes: BTreeSet<_> = SectorSize::ALL.into_iter().map(SectorSize::bytes).collect();
    let (mut cids, mut digests) = (BTreeSet::new(), BTreeSet::new());
    for file in list.files() {
        // The digest of two files would be one only by mistake.
        assert!(cids.insert(&file.cid), "{}", file.name);
        assert!(digests.insert(file.digest), "{}", file.name);
        assert_ne!(file.digest, Digest::of_bytes(b""), "{}", file.name);
        assert!(sizes.contains(&file.sector_size_bytes), "{}", file.name);
        // A content identifier of version 0: base 58, of 46 letters.
        let is_base58 = |letter: char| letter.is_ascii_alphanumeric() && !"0OIl".contains(letter);
        assert!(
            file.cid.len() == 46 && file.cid.starts_with("Qm"),
            "{}",
            file.name
        );
        assert!(file.cid.chars().all(is_base58), "{}", file.name);
    }
}

/// A digest that is written again is the same, digit for digit.
#[test]
fn digests_of_the_networks_list_are_kept_digit_for_digit() {
    let list = Digests::parse(PARAMETERS_JSON).unwrap();
    let text: serde_json::Value = serde_json::from_str(PARAMETERS_JSON).unwrap();
    let entries = text.as_object().unwrap();
    assert_eq!(list.files().count(), entries.len());
    for file in list.files() {
        let entry = &entries[&file.name];
        assert_eq!(entry["digest"], file.digest.to_string(), "{}", file.name);
        assert_eq!(entry["cid"], *file.cid, "{}", file.name);
    }
}
