//! The simulated proofs of other tests against the verifier.

use std::sync::Arc;

use bellperson::groth16::PreparedVerifyingKey;
use blstrs::Bls12;
use cuzk_filecoin::verify::{Rejection, Verdict, verify};
use cuzk_filecoin::{ProofKind, SectorSize, decode, vanilla};
use cuzk_groth16::params::ParamCache;
use cuzk_testing::simulated::simulated_proofs;

/// The verifying key of a kind's smallest circuit, which the cache has by now.
fn key(kind: ProofKind) -> Arc<PreparedVerifyingKey<Bls12>> {
    let cache = ParamCache::new(cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR")));
    let files = cuzk_testing::files(kind);
    cache.verifying_key(&files).unwrap()
}

#[test]
fn they_are_of_their_statement_and_no_other_and_the_same_each_time() {
    let cache = cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"));
    for kind in ProofKind::ALL {
        let statement = decode(&cuzk_testing::bundled_request(kind)).unwrap();
        let proofs = simulated_proofs(&*statement, &cache);
        assert_eq!(simulated_proofs(&*statement, &cache), proofs);
        let key = key(kind);
        let verdict = verify(&*statement, &proofs, &key).unwrap();
        assert_eq!(verdict, Verdict::Valid, "{kind}");
        let other = vanilla::make(kind, SectorSize::KiB2, 2).unwrap();
        let other = decode(&other).unwrap();
        let verdict = verify(&*other, &proofs, &key).unwrap();
        let wrong = Verdict::Invalid(Rejection::Equation { partition: 0 });
        assert_eq!(verdict, wrong, "{kind}");
    }
}

#[test]
fn each_partition_has_its_own() {
    let cache = cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"));
    let request = vanilla::make_non_interactive(SectorSize::KiB2, 1).unwrap();
    let statement = decode(&request).unwrap();
    let mut proofs = simulated_proofs(&*statement, &cache);
    let key = key(ProofKind::Porep);
    let verdict = verify(&*statement, &proofs, &key).unwrap();
    assert_eq!(verdict, Verdict::Valid);
    // Partitions 3 and 4 change places.
    proofs[3 * 192..5 * 192].rotate_left(192);
    let verdict = verify(&*statement, &proofs, &key).unwrap();
    let wrong = Verdict::Invalid(Rejection::Equation { partition: 3 });
    assert_eq!(verdict, wrong);
}
