//! Aggregation of Groth16 proofs against bellperson, on the same pool of threads.
//!
//! The proofs are random points: an aggregation does not look at their equation, and takes
//! as long as with valid ones. Both sides have made their keys before the clock starts.

use bellperson::groth16::Proof;
use bellperson::groth16::aggregate::{
    AggregateVersion as TheirVersion, GenericSRS, aggregate_proofs,
};
use blstrs::{Bls12, G1Projective, G2Projective};
use cuzk_groth16::aggregate::{
    AggregateVersion, AggregationKey, InnerProductSrs, aggregate, write_srs,
};
use cuzk_kernels::Isa;
use group::{Curve, Group};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::comparison::{Comparison, alternate, differs};
use crate::bench::args::Bench;
use crate::failure::{Failure, failed};

/// The bytes that the first challenge includes: as many as Filecoin's hash has.
const INCLUDED: [u8; 32] = [7; 32];

pub(crate) fn aggregation(isa: Isa, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    let count = usize::from(args.proofs);
    let srs = InnerProductSrs::insecure(1, count).map_err(failed)?;
    let mut bytes = Vec::new();
    write_srs(&srs, &mut bytes).map_err(failed)?;
    // The arguments' parser lets a power of two through.
    let theirs = GenericSRS::<Bls12>::read(&mut bytes.as_slice()).map_err(failed)?;
    let key = AggregationKey::new(&srs, count).map_err(failed)?;
    let (their_key, _) = theirs.specialize(count);
    let proofs = proofs(count);
    let ours = || {
        let version = AggregateVersion::V2;
        let made = aggregate(isa, &key, version, &INCLUDED, &proofs).map_err(failed)?;
        made.to_bytes().map_err(failed)
    };
    let peer = || {
        let version = TheirVersion::V2;
        let made = aggregate_proofs(&their_key, &INCLUDED, &proofs, version).map_err(failed)?;
        let mut bytes = Vec::new();
        made.write(&mut bytes).map_err(failed)?;
        Ok(bytes)
    };
    if ours()? != peer()? {
        return Err(differs("aggregate"));
    }
    let medians = alternate(args.runs, ours, peer)?;
    let size = format!("{count} proofs");
    Ok(vec![medians.into_comparison(
        "aggregate",
        size,
        "bellperson",
    )])
}

fn proofs(count: usize) -> Vec<Proof<Bls12>> {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let proof = |_| Proof {
        a: G1Projective::random(&mut rng).to_affine(),
        b: G2Projective::random(&mut rng).to_affine(),
        c: G1Projective::random(&mut rng).to_affine(),
    };
    (0..count).map(proof).collect()
}
