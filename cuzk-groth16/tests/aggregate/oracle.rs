//! Aggregates compared with bellperson's, for each number of proofs, version and instruction
//! set.

use bellperson::groth16::Proof;
use bellperson::groth16::aggregate::{AggregateProof, aggregate_proofs, verify_aggregate_proof};
use blstrs::{Bls12, G1Affine, Scalar};
use cuzk_groth16::aggregate::{
    AggregateError, AggregateVersion, AggregationKey, Claim, InnerProductSrs, aggregate,
    verify_bytes,
};
use cuzk_kernels::{Context, Isa, KernelError};
use cuzk_memory::{Cancellation, Checkpoint, Mapped};
use ff::Field;
use group::prime::PrimeCurveAffine;
use rand::rngs::OsRng;

use crate::proofs::Proofs;
use crate::{VERSIONS, srs, their_srs};

/// That which the first challenge includes.
const INCLUDED: &[u8] = b"seeds and commitments";

#[test]
fn aggregates_are_bellpersons_and_verify() {
    let srs = srs();
    let theirs = their_srs(&srs);
    for len in [2, 4, 8, 16] {
        let proofs = Proofs::new(len);
        let (prover, verifier) = theirs.specialize(len);
        let key = AggregationKey::new(&srs, len).unwrap();
        for (version, their_version) in VERSIONS {
            let expected =
                aggregate_proofs(&prover, INCLUDED, &proofs.proofs, their_version).unwrap();
            let mut expected_bytes = Vec::new();
            expected.write(&mut expected_bytes).unwrap();
            for isa in Isa::all() {
                let ours = aggregate(isa, &key, version, INCLUDED, &proofs.proofs).unwrap();
                assert_eq!(ours.proofs(), len);
                let bytes = ours.to_bytes().unwrap();
                assert!(bytes == expected_bytes, "{len} {version:?} {isa}");
            }
            let read = AggregateProof::<Bls12>::read(expected_bytes.as_slice()).unwrap();
            let verify = |inputs: &[Vec<Scalar>], included: &[u8]| {
                let verified = verify_aggregate_proof(
                    &verifier,
                    &proofs.key,
                    OsRng,
                    inputs,
                    &read,
                    included,
                    their_version,
                );
                verified.unwrap()
            };
            assert!(verify(&proofs.inputs, INCLUDED));
            assert!(!verify(&proofs.inputs, b"others"));
            let mut other_inputs = proofs.inputs.clone();
            other_inputs[len - 1][0] += Scalar::ONE;
            assert!(!verify(&other_inputs, INCLUDED));
        }
    }
}

/// Vectors of more than 96 points are summed by multi-scalar multiplications: in the first
/// round of 256 proofs, and in their openings.
#[test]
fn an_aggregate_of_many_proofs_is_bellpersons() {
    let srs = InnerProductSrs::insecure(8, 256).unwrap();
    let (prover, _) = their_srs(&srs).specialize(256);
    let proofs: Vec<_> = Proofs::new(8)
        .proofs
        .into_iter()
        .cycle()
        .take(256)
        .collect();
    let (version, their_version) = VERSIONS[1];
    let mut expected = Vec::new();
    let theirs = aggregate_proofs(&prover, INCLUDED, &proofs, their_version).unwrap();
    theirs.write(&mut expected).unwrap();
    let key = AggregationKey::new(&srs, 256).unwrap();
    let ours = aggregate(Isa::best(), &key, version, INCLUDED, &proofs).unwrap();
    assert!(ours.to_bytes().unwrap() == expected);
}

/// Filecoin repeats the last proof up to a power of two: equal points are no special case.
#[test]
fn equal_proofs_are_aggregated_like_others() {
    let (srs, proofs) = (srs(), Proofs::new(1).proofs);
    let same = vec![proofs[0].clone(); 4];
    let (prover, _) = their_srs(&srs).specialize(4);
    let (version, their_version) = VERSIONS[1];
    let mut expected = Vec::new();
    let theirs = aggregate_proofs(&prover, INCLUDED, &same, their_version).unwrap();
    theirs.write(&mut expected).unwrap();
    for isa in Isa::all() {
        let ours = aggregate(
            isa,
            &AggregationKey::new(&srs, 4).unwrap(),
            version,
            INCLUDED,
            &same,
        )
        .unwrap();
        assert!(ours.to_bytes().unwrap() == expected, "{isa}");
    }
}

#[test]
fn a_number_that_cannot_be_aggregated_is_refused() {
    let (srs, proofs) = (srs(), Proofs::new(4).proofs);
    for (len, power_of_two) in [(0, false), (1, false), (3, true)] {
        let key_error = AggregationKey::new(&srs, len).unwrap_err();
        assert_eq!(
            matches!(key_error, AggregateError::NotPowerOfTwo { got: 3 }),
            power_of_two
        );
        assert_eq!(
            matches!(key_error, AggregateError::TooFew { .. }),
            !power_of_two
        );
    }
    let too_many = AggregationKey::new(&srs, 32).unwrap_err();
    assert!(matches!(
        too_many,
        AggregateError::SrsTooShort {
            proofs: 32,
            needed: 64,
            got: 32
        }
    ));
    let key = AggregationKey::new(&srs, 2).unwrap();
    let other = aggregate(Isa::best(), &key, AggregateVersion::V2, INCLUDED, &proofs);
    assert!(matches!(
        other,
        Err(AggregateError::OtherNumber {
            expected: 2,
            got: 4
        })
    ));
}

/// Points at infinity are no proofs, and lead to products of pairings that are 1.
#[test]
fn proofs_at_infinity_are_an_error() {
    let infinite = Proof::<Bls12> {
        a: G1Affine::identity(),
        b: blstrs::G2Affine::identity(),
        c: G1Affine::identity(),
    };
    let key = AggregationKey::new(&srs(), 2).unwrap();
    let proofs = [infinite.clone(), infinite];
    let made = aggregate(Isa::best(), &key, AggregateVersion::V2, INCLUDED, &proofs);
    let bytes = made.and_then(|aggregate| aggregate.to_bytes());
    assert!(matches!(bytes, Err(AggregateError::Degenerate)));
}

#[test]
fn an_aggregation_stops() {
    let cancellation = Cancellation::default();
    cancellation.cancel();
    let context = Context {
        isa: Isa::best(),
        checkpoint: &Checkpoint::new(&cancellation),
        memory: &Mapped,
    };
    let key = AggregationKey::new(&srs(), 4).unwrap();
    let proofs = Proofs::new(4).proofs;
    let stopped = aggregate(context, &key, AggregateVersion::V2, INCLUDED, &proofs);
    assert!(matches!(
        stopped,
        Err(AggregateError::Kernel(KernelError::Stopped))
    ));
}

#[test]
fn the_bytes_of_an_aggregate_are_verified_and_nothing_may_follow() {
    let (srs, proofs) = (srs(), Proofs::new(4));
    let key = AggregationKey::new(&srs, 4).unwrap();
    let made = aggregate(
        Isa::best(),
        &key,
        AggregateVersion::V2,
        INCLUDED,
        &proofs.proofs,
    );
    let bytes = made.unwrap().to_bytes().unwrap();
    let verify = |key: &AggregationKey, included: &[u8], bytes: Vec<u8>| {
        let claim = Claim {
            verifying_key: &proofs.key,
            version: AggregateVersion::V2,
            included,
            inputs: &proofs.inputs,
        };
        let verified = verify_bytes(key, claim, bytes);
        verified.map_err(|rejected| rejected.problem)
    };
    let valid = verify(&key, INCLUDED, bytes.clone()).unwrap();
    assert_eq!(valid.as_bytes(), bytes);
    let long = verify(&key, INCLUDED, [&bytes[..], &[0]].concat());
    assert_eq!(long.unwrap_err(), "1 bytes follow the aggregate");
    let other = AggregationKey::new(&srs, 8).unwrap();
    let other = verify(&other, INCLUDED, bytes.clone()).unwrap_err();
    assert_eq!(other, "it is of 4 proofs, not of 8");
    let equation = "a pairing equation does not hold";
    assert_eq!(
        verify(&key, b"others", bytes.clone()).unwrap_err(),
        equation
    );
    // The last point, in the place of the one before it.
    let mut altered = bytes.clone();
    altered.copy_within(bytes.len() - 48.., bytes.len() - 96);
    assert_eq!(verify(&key, INCLUDED, altered).unwrap_err(), equation);
    for len in (0..bytes.len()).step_by(97) {
        assert!(verify(&key, INCLUDED, bytes[..len].to_vec()).is_err());
    }
}
