//! Circuits that are of no kind of Filecoin's: MiMC and chains of SHA-256, as long as a test
//! wants them.

use std::sync::Arc;

use bellpepper::gadgets::boolean::{AllocatedBit, Boolean};
use bellpepper::gadgets::multipack::pack_into_inputs;
use bellpepper::gadgets::sha256::sha256_block_no_padding;
use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use ff::Field;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The preimage of a MiMC hash: two private values and a public image. A round x, y → y + (x
/// + c)³, x has two rows. See eprint 2016/492; there are 322 rounds in bellperson's example.
#[derive(Clone, Debug)]
pub struct Mimc {
    constants: Arc<[Scalar]>,
    preimage: Option<[Scalar; 2]>,
}

impl Mimc {
    /// Returns the circuit of so many rounds, without a witness.
    #[must_use]
    pub fn blank(rounds: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        Self {
            constants: (0..rounds).map(|_| Scalar::random(&mut rng)).collect(),
            preimage: None,
        }
    }

    /// Returns the circuit with a preimage.
    #[must_use]
    pub fn with(&self, preimage: [u64; 2]) -> Self {
        Self {
            constants: Arc::clone(&self.constants),
            preimage: Some(preimage.map(Scalar::from)),
        }
    }

    /// Returns the public input, if there is a preimage.
    #[must_use]
    pub fn image(&self) -> Option<Scalar> {
        let rounds = self.constants.iter();
        let start = self.preimage?;
        Some(rounds.fold(start, |[x, y], c| [y + (x + c).square() * (x + c), x])[0])
    }
}

impl Circuit<Scalar> for Mimc {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut values = self.preimage;
        let of = |values: Option<[Scalar; 2]>, at: usize| {
            move || values.map(|values| values[at]).ok_or(MISSING)
        };
        let mut x = cs.alloc(|| "x", of(values, 0))?;
        let mut y = cs.alloc(|| "y", of(values, 1))?;
        for (round, c) in self.constants.iter().enumerate() {
            let cs = &mut cs.namespace(|| format!("round {round}"));
            let square = values.map(|[x, _]| (x + c).square());
            let next = values.map(|[x, y]| [y + (x + c).square() * (x + c), x]);
            let squared = cs.alloc(|| "square", || square.ok_or(MISSING))?;
            cs.enforce(
                || "square",
                |lc| lc + x + (*c, CS::one()),
                |lc| lc + x + (*c, CS::one()),
                |lc| lc + squared,
            );
            let new = match round + 1 == self.constants.len() {
                true => cs.alloc_input(|| "image", of(next, 0))?,
                false => cs.alloc(|| "new x", of(next, 0))?,
            };
            cs.enforce(
                || "cube",
                |lc| lc + squared,
                |lc| lc + x + (*c, CS::one()),
                |lc| lc + new - y,
            );
            (values, y, x) = (next, x, new);
        }
        Ok(())
    }
}

const MISSING: SynthesisError = SynthesisError::AssignmentMissing;

/// SHA-256's compression of a private block, and of each result with itself. The last result
/// is public, in two inputs. A link has some 26 thousand rows.
#[derive(Clone, Debug)]
pub struct Sha256Chain {
    links: usize,
    block: Option<[u8; 64]>,
}

impl Sha256Chain {
    /// Returns the circuit of so many links, without a witness.
    #[must_use]
    pub fn blank(links: usize) -> Self {
        Self { links, block: None }
    }

    /// Returns the circuit whose first block has this byte 64 times.
    #[must_use]
    pub fn with(&self, byte: u8) -> Self {
        Self {
            links: self.links,
            block: Some([byte; 64]),
        }
    }
}

impl Circuit<Scalar> for Sha256Chain {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let bit = |at: usize| {
            self.block
                .map(|block| block[at / 8] >> (7 - at % 8) & 1 == 1)
        };
        let bits = (0..512).map(|at| {
            let cs = cs.namespace(|| format!("bit {at}"));
            AllocatedBit::alloc(cs, bit(at)).map(Boolean::from)
        });
        let mut block = bits.collect::<Result<Vec<_>, _>>()?;
        let mut digest = Vec::new();
        for link in 0..self.links {
            digest = sha256_block_no_padding(cs.namespace(|| format!("link {link}")), &block)?;
            block = [&digest[..], &digest[..]].concat();
        }
        pack_into_inputs(cs.namespace(|| "digest"), &digest)
    }
}
