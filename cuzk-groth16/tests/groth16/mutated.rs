//! Mutants of files that operators fetch or copy: none panics, and none makes a proof that does
//! not verify.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cuzk_groth16::params::{
    MappedParams, ParamsError, ToxicWaste, check_points, read_verifying_key,
};
use cuzk_groth16::{Circuit, Prover, compile, setup};
use cuzk_kernels::Isa;
use cuzk_testing::circuits::Mimc;
use cuzk_testing::fuzz::Corpus;

use crate::multiples::{Case, HEADER_BYTES};

const ROUNDS: usize = 6;

fn corpus(name: &str) -> Corpus {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    Corpus::read(folder.join(name))
}

fn circuit() -> Arc<Circuit> {
    Arc::new(compile("mimc", Mimc::blank(ROUNDS)).unwrap())
}

/// Parameters that open are checked, and prove. The proof verifies, or there is none.
#[test]
fn mutated_parameters_are_refused_or_prove_nothing_false() {
    let circuit = circuit();
    let good = setup(&circuit, &ToxicWaste::from_seed(3)).unwrap();
    let instance = Mimc::blank(ROUNDS).with([5, 6]);
    let (mut opened, mut checked, mut refused) = (0, 0, 0);
    let count = corpus("params").with(good.bytes()).fuzz(1_000, |input| {
        let params = match MappedParams::of_bytes(input.to_vec()) {
            Ok(params) => Arc::new(params),
            Err(error) => {
                assert!(!matches!(error, ParamsError::Io { .. }), "{error}");
                refused += 1;
                return;
            }
        };
        opened += 1;
        if check_points(&params, Isa::best(), |_| ()).is_ok() {
            checked += 1;
        }
        if let Ok(prover) = Prover::new(Arc::clone(&circuit), params) {
            // It is verified before it is returned.
            drop(prover.prove(instance.clone()));
        }
    });
    println!("{count} files of parameters");
    assert!(refused > 0, "{refused}");
    assert!(
        opened > checked && checked > 0,
        "{opened} opened, {checked} checked"
    );
}

#[test]
fn mutated_verifying_keys_are_read_or_refused() {
    let circuit = circuit();
    let params = setup(&circuit, &ToxicWaste::from_seed(3)).unwrap();
    let mut key = Vec::new();
    params.vk().write(&mut key).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mimc.vk");
    let decode = |input: &[u8]| {
        fs::write(&path, input).unwrap();
        read_verifying_key(&path).map(|key| assert!(!key.ic.is_empty()))
    };
    let corpus = corpus("keys").with(key);
    corpus.fuzz_decoder("verifying keys", 1_000, decode, |_| true);
}

/// The digest of each mutant's header is good: the fields themselves are tried.
#[test]
fn mutated_headers_of_multiples_are_refused_or_have_good_rows() {
    if cuzk_kernels::testing::ifma().is_none() {
        return;
    }
    let case = Case::new();
    case.write(40 << 20).unwrap();
    let good = fs::read(case.path()).unwrap();
    // Magic, length, JSON, digest.
    let json_at = good.iter().position(|byte| *byte == b'{').unwrap();
    let (start, rows) = (&good[..json_at - 4], &good[HEADER_BYTES..]);
    let length = u32::from_le_bytes(good[json_at - 4..json_at].try_into().unwrap());
    let json = good[json_at..][..length as usize].to_vec();
    const WORDS: [&[u8]; 5] = [b"0", b"18446744073709551615", b"-1", b"\"rows\":", b"null"];
    let decode = |json: &[u8]| {
        let length = u32::try_from(json.len()).unwrap().to_le_bytes();
        let digest = blake3::hash(json);
        let mut file = [start, &length, json, digest.as_bytes()].concat();
        file.resize(HEADER_BYTES.max(file.len()), 0);
        file.extend_from_slice(rows);
        fs::write(case.path(), &file).unwrap();
        case.open(Isa::best()).map(|multiples| {
            let multiples = multiples.unwrap();
            assert!(multiples.h().is_some() && multiples.b_g2().is_some());
        })
    };
    let is_expected = |error: &ParamsError| matches!(error, ParamsError::Multiples { .. });
    let corpus = corpus("multiples").with(json).with_words(&WORDS);
    corpus.fuzz_decoder("headers of multiples", 100, decode, is_expected);
}
