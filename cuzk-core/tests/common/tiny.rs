//! A circuit that takes no time, under the names of the real ones: for tests of
//! the engine that need thousands of jobs.

use std::path::Path;
use std::sync::Arc;

use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use cuzk_core::Config;
use cuzk_core::circuits;
use cuzk_filecoin::{CircuitId, Error, ProofKind, SectorSize, Statement, WitnessContext, Writer};
use cuzk_groth16::params::{GenerateOptions, ParamCache};
use cuzk_memory::Checkpoint;
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
    generate_as(id(kind), directory, options);
}

/// The tiny circuit under any name, and its parameters.
pub(crate) fn generate_as(id: CircuitId, directory: &Path, options: GenerateOptions) {
    let blank = Square {
        root: 0,
        square: Scalar::ZERO,
    };
    std::fs::create_dir_all(directory).unwrap();
    let program = cuzk_pce::compile(blank).unwrap();
    let path = circuits::cache_path(id, directory).unwrap();
    program::write(&path, &program, &id.to_string()).unwrap();
    let files = circuits::parameter_files(id).unwrap();
    ParamCache::new(directory)
        .ensure_generated(&files, &program, options, |_, _| ())
        .unwrap();
}

/// A job of so many partitions; the statement of one of them may be false.
pub(crate) struct TinyJob {
    pub(crate) kind: ProofKind,
    pub(crate) partitions: usize,
    pub(crate) false_partition: Option<usize>,
}

pub(crate) fn job(kind: ProofKind, partitions: usize) -> Arc<dyn Statement> {
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

impl Statement for TinyJob {
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

    fn partition_request(&self, partition: usize) -> Result<Vec<u8>, Error> {
        Ok(partition.to_le_bytes().to_vec())
    }
}

/// What a job does in its witness.
type InWitness = dyn Fn(&Checkpoint<'_>) + Send + Sync;

/// A job that does something before it answers.
pub(crate) struct Hooked {
    pub(crate) job: Arc<dyn Statement>,
    pub(crate) in_witness: Box<InWitness>,
    pub(crate) in_public_inputs: Box<dyn Fn() + Send + Sync>,
}

impl From<Arc<dyn Statement>> for Hooked {
    fn from(job: Arc<dyn Statement>) -> Self {
        Self {
            job,
            in_witness: Box::new(|_| ()),
            in_public_inputs: Box::new(|| ()),
        }
    }
}

/// A job that stands still in its witness.
pub(crate) fn held(kind: ProofKind, doorway: &Arc<Doorway>) -> Arc<dyn Statement> {
    let doorway = Arc::clone(doorway);
    Arc::new(Hooked {
        in_witness: Box::new(move |_| doorway.pass()),
        ..Hooked::from(job(kind, 1))
    })
}

impl Statement for Hooked {
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

    fn partition_request(&self, partition: usize) -> Result<Vec<u8>, Error> {
        self.job.partition_request(partition)
    }
}
