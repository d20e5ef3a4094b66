//! The peer, or nothing in a build without it.

#[cfg(feature = "peer-supraseal")]
use std::time::Instant;

#[cfg(feature = "peer-supraseal")]
use blstrs::Scalar;

use super::subject::Subject;
#[cfg(feature = "peer-supraseal")]
use super::supraseal::Supraseal;
#[cfg(feature = "peer-supraseal")]
use crate::bench::comparison::differs;
use crate::failure::Failure;
#[cfg(not(feature = "peer-supraseal"))]
use crate::output;

/// r and s of the proofs that are compared.
pub(super) const R: u64 = 0x5eed;
pub(super) const S: u64 = 0x0dd5;

pub(super) struct Peer {
    #[cfg(feature = "peer-supraseal")]
    supraseal: Supraseal,
}

impl Peer {
    /// Starts the peer, and checks that it makes `proof`, too.
    #[cfg(feature = "peer-supraseal")]
    pub(super) fn new(subject: &Subject, proof: [u8; 192]) -> Result<Self, Failure> {
        let supraseal = Supraseal::new(subject)?;
        let peers = supraseal.prove(Scalar::from(R), Scalar::from(S));
        if subject.verify(&peers)? != proof {
            return Err(differs("device"));
        }
        Ok(Self { supraseal })
    }

    #[cfg(not(feature = "peer-supraseal"))]
    pub(super) fn new(_: &Subject, _: [u8; 192]) -> Result<Self, Failure> {
        output::say("without a peer: build with --features peer-supraseal to compare");
        Ok(Self {})
    }

    #[cfg(feature = "peer-supraseal")]
    pub(super) fn time(&mut self) -> Result<Option<f64>, Failure> {
        let started = Instant::now();
        self.supraseal.prove(Scalar::from(3), Scalar::from(5));
        Ok(Some(started.elapsed().as_secs_f64()))
    }

    #[cfg(not(feature = "peer-supraseal"))]
    pub(super) fn time(&mut self) -> Result<Option<f64>, Failure> {
        Ok(None)
    }
}
