//! A circuit that takes no time, under the names of the real ones: for tests of
//! the engine that need thousands of jobs.

use std::path::Path;
use std::sync::Arc;

use bellperson::groth16::{self, MappedParameters};
use bellperson::util_cs::witness_cs::WitnessCS;
use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::{Bls12, Scalar};
use cuzk_core::kinds::{CircuitId, Job, ProofKind, SectorSize, WitnessContext, Writer};
use cuzk_core::params::{GenerateOptions, ParamCache};
use cuzk_core::{Config, Error};
use cuzk_memory::Checkpoint;
use cuzk_pce::cell::CheckedCircuit;
use cuzk_pce::{PackedWitness, program};
use ff::Field;

use super::device::Doorway;

const BITS: usize = 16;

/// That a number of sixteen bits has this square.
#[derive(Clone)]
struct Square {
    root: u16,
    square: Scalar,
}

impl Circuit<Scalar> for Square {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let square = cs.alloc_input(|| "square", || Ok(self.square))?;
        let mut bits = Vec::with_capacity(BITS);
        for bit in 0..BITS {
            let value = Scalar::from(u64::from(self.root >> bit & 1));
            let bit = cs.alloc(|| format!("bit {bit}"), || Ok(value))?;
            cs.enforce(
                || "a bit",
                |lc| lc + bit,
                |lc| lc + CS::one() - bit,
                |lc| lc,
            );
            bits.push(bit);
        }
        let root = cs.alloc(|| "root", || Ok(Scalar::from(u64::from(self.root))))?;
        cs.enforce(
            || "of these bits",
            |lc| {
                let weighted = bits.iter().enumerate();
                weighted.fold(lc, |lc, (i, bit)| lc + (Scalar::from(1u64 << i), *bit))
            },
            |lc| lc + CS::one(),
            |lc| lc + root,
        );
        cs.enforce(
            || "squared",
            |lc| lc + root,
            |lc| lc + root,
            |lc| lc + square,
        );
        Ok(())
    }
}

pub(crate) fn id(kind: ProofKind) -> CircuitId {
    CircuitId {
        kind,
        sector_size: SectorSize::KiB2,
    }
}

/// A configuration whose parameter cache, in `directory`, has the tiny circuit
/// and its parameters for all kinds.
pub(crate) fn config(directory: &Path) -> Config {
    for kind in ProofKind::ALL {
        generate(kind, directory, GenerateOptions::default());
    }
    let mut config = Config::default();
    config.srs.param_cache = directory.to_owned();
    config
}

/// The tiny circuit under the name of a kind, and its parameters.
pub(crate) fn generate(kind: ProofKind, directory: &Path, options: GenerateOptions) {
    let blank = Square {
        root: 0,
        square: Scalar::ZERO,
    };
    std::fs::create_dir_all(directory).unwrap();
    let program = cuzk_pce::compile(blank).unwrap();
    let id = id(kind);
    let path = cuzk_core::circuit::Circuit::cache_path(id, directory).unwrap();
    program::write(&path, &program, &id.to_string()).unwrap();
    let files = id.parameter_files().unwrap();
    ParamCache::new(directory)
        .ensure_generated(&files, 2048, &program, options, |_, _| ())
        .unwrap();
}

/// A job of so many partitions; the statement of one of them may be false.
pub(crate) struct TinyJob {
    pub(crate) kind: ProofKind,
    pub(crate) partitions: usize,
    pub(crate) false_partition: Option<usize>,
}

pub(crate) fn job(kind: ProofKind, partitions: usize) -> Arc<dyn Job> {
    Arc::new(TinyJob {
        kind,
        partitions,
        false_partition: None,
    })
}

impl TinyJob {
    fn square(&self, partition: usize) -> Square {
        let root = 1000 + u16::try_from(partition).unwrap();
        let lie = u64::from(self.false_partition == Some(partition));
        Square {
            root,
            square: Scalar::from(u64::from(root).pow(2) + lie),
        }
    }
}

fn not_here<T>() -> Result<T, Error> {
    Err(Error::Synthesis {
        stage: "reference",
        problem: "the tiny circuit has none".to_owned(),
    })
}

impl Job for TinyJob {
    fn circuit(&self) -> CircuitId {
        id(self.kind)
    }

    fn partitions(&self) -> usize {
        self.partitions
    }

    fn writer(&self) -> Writer {
        Writer::Circuit
    }

    fn witness_in(
        &self,
        partition: usize,
        _: WitnessContext<'_>,
    ) -> Result<PackedWitness<Scalar>, Error> {
        Ok(cuzk_pce::packed_witness(self.square(partition)).unwrap())
    }

    fn public_inputs(&self, partition: usize) -> Result<Vec<Scalar>, Error> {
        Ok(vec![self.square(partition).square])
    }

    fn reference_witness(&self, _: usize) -> Result<WitnessCS<Scalar>, Error> {
        not_here()
    }

    fn checked_circuit(&self, _: usize) -> Result<CheckedCircuit, Error> {
        not_here()
    }

    fn reference_proof(
        &self,
        _: usize,
        _: &MappedParameters<Bls12>,
        _: Scalar,
        _: Scalar,
    ) -> Result<groth16::Proof<Bls12>, Error> {
        not_here()
    }
}

/// What a job does in its witness.
type InWitness = dyn Fn(&Checkpoint<'_>) + Send + Sync;

/// A job that does something before it answers.
pub(crate) struct Hooked {
    pub(crate) job: Arc<dyn Job>,
    pub(crate) in_witness: Box<InWitness>,
    pub(crate) in_public_inputs: Box<dyn Fn() + Send + Sync>,
}

impl From<Arc<dyn Job>> for Hooked {
    fn from(job: Arc<dyn Job>) -> Self {
        Self {
            job,
            in_witness: Box::new(|_| ()),
            in_public_inputs: Box::new(|| ()),
        }
    }
}

/// A job that stands still in its witness.
pub(crate) fn held(kind: ProofKind, doorway: &Arc<Doorway>) -> Arc<dyn Job> {
    let doorway = Arc::clone(doorway);
    Arc::new(Hooked {
        in_witness: Box::new(move |_| doorway.pass()),
        ..Hooked::from(job(kind, 1))
    })
}

impl Job for Hooked {
    fn circuit(&self) -> CircuitId {
        self.job.circuit()
    }

    fn partitions(&self) -> usize {
        self.job.partitions()
    }

    fn writer(&self) -> Writer {
        self.job.writer()
    }

    fn witness_in(
        &self,
        partition: usize,
        context: WitnessContext<'_>,
    ) -> Result<PackedWitness<Scalar>, Error> {
        (self.in_witness)(context.checkpoint);
        self.job.witness_in(partition, context)
    }

    fn public_inputs(&self, partition: usize) -> Result<Vec<Scalar>, Error> {
        (self.in_public_inputs)();
        self.job.public_inputs(partition)
    }

    fn reference_witness(&self, partition: usize) -> Result<WitnessCS<Scalar>, Error> {
        self.job.reference_witness(partition)
    }

    fn checked_circuit(&self, partition: usize) -> Result<CheckedCircuit, Error> {
        self.job.checked_circuit(partition)
    }

    fn reference_proof(
        &self,
        partition: usize,
        parameters: &MappedParameters<Bls12>,
        r: Scalar,
        s: Scalar,
    ) -> Result<groth16::Proof<Bls12>, Error> {
        self.job.reference_proof(partition, parameters, r, s)
    }
}
