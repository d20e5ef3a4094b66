//! A folder of parameters while its files change, and verifying keys that are another file's.

use std::fs;
use std::sync::Arc;

use cuzk_groth16::params::{
    ParamCache, ParameterFiles, ParamsError, ParamsFile, QueryLengths, QueryName, ToxicWaste,
    multiples_path,
};
use cuzk_groth16::{compile, setup};
use cuzk_testing::circuits::Mimc;

use crate::file::{BETA_G1, DELTA_G1, G1_BYTES, G2_BYTES, IC};

/// The parameters of a hundred rounds of MiMC for this toxic waste.
struct Good {
    bytes: Vec<u8>,
    key: Vec<u8>,
    lengths: QueryLengths,
}

impl Good {
    fn of(seed: u64) -> Self {
        let circuit = Arc::new(compile("mimc", Mimc::blank(100)).unwrap());
        let params = setup(&circuit, &ToxicWaste::from_seed(seed)).unwrap();
        let mut key = Vec::new();
        params.vk().write(&mut key).unwrap();
        Self {
            bytes: params.bytes().to_vec(),
            key,
            lengths: circuit.query_lengths(),
        }
    }

    /// Writes both files, in place of those that are there.
    fn write_to(&self, cache: &ParamCache) {
        for (path, bytes) in [
            (cache.params_path(&files()), &self.bytes),
            (cache.vk_path(&files()), &self.key),
        ] {
            let draft = path.with_extension("draft");
            fs::write(&draft, bytes).unwrap();
            fs::rename(draft, path).unwrap();
        }
    }
}

fn files() -> ParameterFiles {
    ParameterFiles {
        params: "test.params".into(),
        vk: "test.vk".into(),
    }
}

#[test]
fn each_part_of_a_key_that_differs_is_named() {
    let (own, other) = (Good::of(3), Good::of(4));
    let folder = tempfile::tempdir().unwrap();
    let cache = ParamCache::new(folder.path());
    own.write_to(&cache);
    let params = ParamsFile::open(&cache.params_path(&files())).unwrap();
    let path = cache.vk_path(&files());
    params.check_key(&path).unwrap();
    let (beta_g2, gamma_g2) = (2 * G1_BYTES, 2 * G1_BYTES + G2_BYTES);
    for (part, range) in [
        ("alpha in G1", 0..BETA_G1),
        ("beta in G1", BETA_G1..beta_g2),
        ("beta in G2", beta_g2..gamma_g2),
        ("gamma in G2", gamma_g2..DELTA_G1),
        ("delta in G1", DELTA_G1..DELTA_G1 + G1_BYTES),
        ("delta in G2", DELTA_G1 + G1_BYTES..IC - 4),
        ("the query IC", IC..own.key.len()),
    ] {
        let mut key = own.key.clone();
        key[range.clone()].copy_from_slice(&other.key[range]);
        fs::write(&path, key).unwrap();
        match params.check_key(&path) {
            Err(ParamsError::KeysDiffer { field, .. }) => assert_eq!(field, part),
            other => panic!("{part}: {other:?}"),
        }
    }
}

#[test]
fn parameters_are_loaded_anew_and_stay_if_that_fails() {
    let (first, second) = (Good::of(3), Good::of(4));
    let folder = tempfile::tempdir().unwrap();
    let cache = ParamCache::new(folder.path());
    let loaded = || cache.loaded(&files());
    assert!(loaded().is_none());
    first.write_to(&cache);
    let load = || cache.load(&files(), &first.lengths).unwrap();
    let (of_first, key) = (load(), cache.verifying_key(&files()).unwrap());
    assert!(Arc::ptr_eq(&of_first, &loaded().unwrap()));
    let multiples = multiples_path(of_first.mapped());
    assert_eq!(multiples, cache.multiples_path(&files()));
    assert_eq!(multiples, folder.path().join("test.multiples"));

    second.write_to(&cache);
    let other = QueryLengths {
        l: first.lengths.l + 1,
        ..first.lengths
    };
    match cache.reload(&files(), &other) {
        Err(ParamsError::OtherCircuit { query, .. }) => assert_eq!(query, QueryName::L),
        other => panic!("{other:?}"),
    }
    assert!(Arc::ptr_eq(&of_first, &load()));

    cache.reload(&files(), &second.lengths).unwrap();
    let of_second = load();
    assert!(Arc::ptr_eq(&of_second, &loaded().unwrap()));
    assert_ne!(of_first.mapped().vk(), of_second.mapped().vk());
    assert_ne!(of_first.loading(), of_second.loading());
    assert!(!Arc::ptr_eq(&key, &cache.verifying_key(&files()).unwrap()));

    fs::remove_file(cache.vk_path(&files())).unwrap();
    let error = cache.reload(&files(), &second.lengths).unwrap_err();
    assert!(matches!(error, ParamsError::Missing { .. }), "{error}");
    assert!(Arc::ptr_eq(&of_second, &loaded().unwrap()));
    cache.evict(&files());
    assert!(loaded().is_none());
}

#[test]
fn a_file_in_place_of_the_folder_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let is_good = |name: &str| ParamCache::new(folder.path().join(name)).check_is_folder();
    is_good("").unwrap();
    is_good("not-there").unwrap();
    let path = folder.path().join("file");
    fs::write(&path, b"no folder").unwrap();
    let cache = ParamCache::new(&path);
    let looked_at = [
        is_good("file"),
        ParamsFile::open(&cache.params_path(&files())).map(drop),
    ];
    for looked_at in looked_at {
        match looked_at {
            Err(ParamsError::NoFolder { path: told }) => assert_eq!(told, path),
            other => panic!("{other:?}"),
        }
    }
}
