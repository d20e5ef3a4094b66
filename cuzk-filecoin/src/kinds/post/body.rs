//! The body of a PoSt's partition request.
//!
//! The sectors are in the form in which the proofs library serialises them. The invariant: a
//! body that was read has a partition and randomness that the library takes.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Sector, check_sector};
use crate::Error;
use crate::kinds::partition::{self, PartitionHeader};
use crate::kinds::shape::PostSector;
use crate::request::randomness;
use crate::sector_size::SectorSize;
use crate::tree::{Branching, ReplicaTree};

/// The body as it is written.
#[derive(Serialize)]
pub(super) struct BodyOut<'a, S> {
    pub(super) miner_id: u64,
    pub(super) randomness: [u8; 32],
    pub(super) index: u32,
    pub(super) sectors: &'a [S],
}

/// A sector as [`PostSector`] reads it: one entry, with a path for each challenge.
#[derive(Serialize)]
pub(super) struct SectorOut<'a, P> {
    pub(super) sector_id: u64,
    pub(super) comm_r: [u8; 32],
    pub(super) entries: &'a [P],
}

/// The body as it is read.
#[derive(Deserialize)]
pub(in crate::kinds) struct Body {
    pub(in crate::kinds) miner_id: u64,
    pub(in crate::kinds) randomness: [u8; 32],
    /// The partition's number within its deadline.
    pub(in crate::kinds) index: u32,
    sectors: Vec<PostSector>,
}

impl Body {
    /// Reads the body of the only partition that a PoSt has, and checks all but its sectors.
    pub(in crate::kinds) fn read(header: &PartitionHeader, bytes: &[u8]) -> Result<Self, Error> {
        partition::number(header, 1)?;
        let body: Self = partition::body(bytes)?;
        randomness(&body.randomness)?;
        Ok(body)
    }

    /// Returns the sectors, at most `sectors_max`, each with `challenges` challenges.
    pub(in crate::kinds) fn sectors<Tree: ReplicaTree>(
        self,
        sectors_max: usize,
        challenges: usize,
        size: SectorSize,
    ) -> Result<Vec<Sector<Tree>>, Error> {
        let (replica, count) = (Branching::replica(size), self.sectors.len());
        if !(1..=sectors_max).contains(&count) {
            let problem = format!("expected 1 to {sectors_max} sectors, got {count}");
            return Err(partition::bad(problem));
        }
        let sectors = self.sectors.into_par_iter();
        let checked =
            sectors.map(|sector| check_sector(sector, challenges, replica).map_err(partition::bad));
        checked.collect()
    }
}
