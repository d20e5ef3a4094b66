//! A PoRep partition of the shape of a 32 GiB sector, to write the witness of.
//!
//! Its values are made up: a witness is written in the same time whether the statement is
//! true or not.

use blstrs::Scalar;
use cuzk_kernels::Isa;
use cuzk_memory::Checkpoint;
use cuzk_pce::PackedWitness;
use cuzk_witness::Context;
use cuzk_witness::por::{MerklePath, TreeShape};
use cuzk_witness::porep::{self, Challenge, Column, PorepShape, Statement};
use ff::Field;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Result;

/// Arity and levels of the trees over a 32 GiB sector.
const DATA: (usize, usize) = (2, 30);
const REPLICA: (usize, usize) = (8, 9);
const LAYERS: usize = 11;
const PARENTS: usize = 14;

/// A partition's inputs.
#[derive(Debug)]
pub struct Porep {
    shape: PorepShape,
    statement: Statement,
    challenges: Vec<Challenge>,
}

impl Porep {
    /// Of so many challenges: a real partition has 18.
    ///
    /// # Errors
    /// If there is no such tree.
    pub fn new(challenges: usize) -> Result<Self> {
        let shape = PorepShape {
            data: TreeShape::new(DATA.0, DATA.1, 0, 0)?,
            replica: TreeShape::new(REPLICA.0, REPLICA.1, 8, 0)?,
            layers: LAYERS,
            challenges,
        };
        let mut rng = ChaCha8Rng::seed_from_u64(32);
        let mut scalar = || Scalar::random(&mut rng);
        let statement = Statement {
            replica_id: scalar(),
            comm_d: scalar(),
            comm_r: scalar(),
            comm_r_last: scalar(),
            comm_c: scalar(),
        };
        let challenges = (0..challenges).map(|_| challenge(&mut rng)).collect();
        Ok(Self {
            shape,
            statement,
            challenges,
        })
    }

    /// The partition's witness, on rayon's current pool.
    ///
    /// # Errors
    /// If `checkpoint` stops it.
    pub fn witness(&self, checkpoint: &Checkpoint<'_>) -> Result<PackedWitness<Scalar>> {
        let context = Context {
            checkpoint,
            ..Isa::best().into()
        };
        let witness = porep::write(context, self.shape, &self.statement, &self.challenges)?;
        Ok(witness)
    }
}

fn challenge(rng: &mut ChaCha8Rng) -> Challenge {
    let replica: Vec<usize> = [vec![REPLICA.0; REPLICA.1], vec![8]].concat();
    let data = path(&vec![DATA.0; DATA.1], rng);
    let column = |rng: &mut ChaCha8Rng| Column {
        labels: (0..LAYERS).map(|_| Scalar::random(&mut *rng)).collect(),
        path: path(&replica, rng),
    };
    Challenge {
        node: data.index,
        data,
        replica: path(&replica, rng),
        column: path(&replica, rng),
        parents: (0..PARENTS).map(|_| column(rng)).collect(),
    }
}

/// A path past levels of these arities.
fn path(arities: &[usize], rng: &mut ChaCha8Rng) -> MerklePath {
    let leaves = arities.iter().product::<usize>() as u64;
    let siblings = |arity: &usize| (1..*arity).map(|_| Scalar::random(&mut *rng)).collect();
    let siblings = arities.iter().map(siblings).collect();
    MerklePath {
        leaf: Scalar::random(&mut *rng),
        index: rng.gen_range(0..leaves),
        siblings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_memory::NEVER_STOP;
    use cuzk_pce::Columns;

    /// 130,278,869 rows, and about as many variables, are 18 challenges.
    #[test]
    fn a_challenge_is_an_eighteenth_of_a_partition() {
        let witness = Porep::new(1).unwrap().witness(&NEVER_STOP).unwrap();
        assert!((7_000_000..7_500_000).contains(&witness.num_aux()));
    }
}
