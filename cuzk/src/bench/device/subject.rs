//! The subject of a proof: a circuit with its parameters and a witness, of a bundled
//! request or made up.
//!
//! The made-up circuit has what storage proofs have: hashes bit by bit, and a few
//! values that are not bits. Its parameters are real ones, kept in the parameter
//! cache under a name that no other program looks for.

use std::path::Path;
use std::sync::Arc;

use bellperson::gadgets::boolean::{AllocatedBit, Boolean};
use bellperson::gadgets::sha256::sha256;
use bellperson::groth16::{PreparedVerifyingKey, Proof, prepare_verifying_key};
use bellperson::{Circuit as BellpersonCircuit, ConstraintSystem, SynthesisError};
use blstrs::{Bls12, Scalar};
use cuzk_core::circuits;
use cuzk_groth16::Circuit;
use cuzk_groth16::backend::{Evaluation, Randomness, Synthesized};
use cuzk_groth16::memory::buffer_pool;
use cuzk_groth16::params::{MappedParams, ParamCache, ToxicWaste, generate};
use cuzk_groth16::verify::verify;
use cuzk_kernels::Isa;
use cuzk_memory::Checkpoint;
use cuzk_memory::{BufferPool, Dealloc};
use cuzk_pce::{Columns, PackedWitness, Program, packed_witness, program};
use ff::PrimeField;

use super::failed;
use crate::args::Bench;
use crate::bench::circuit::bundled_job;
use crate::commands::Context;
use crate::commands::params::ensure_parameters;
use crate::failure::Failure;
use crate::output;

/// Rows of a hash and of the values beside it, at least.
const BLOCK_ROWS: usize = 44_000;

/// Values beside each hash that are not bits: as large a share as PoRep's.
const WIDE: usize = 700;

pub(super) struct Subject {
    pub(super) name: String,
    pub(super) circuit: Arc<Circuit>,
    pub(super) params: Arc<MappedParams>,
    pub(super) witness: PackedWitness<Scalar>,
    inputs: Vec<Scalar>,
    key: PreparedVerifyingKey<Bls12>,
    buffers: Arc<BufferPool>,
}

impl Subject {
    pub(super) fn of_kind(context: &Context, args: &Bench) -> Result<Self, Failure> {
        let job = bundled_job(args)?;
        let id = job.circuit();
        ensure_parameters(context, id, 0, false)?;
        let cache = &context.config.srs.param_cache;
        let circuit = circuits::cached(id, cache)?;
        let path = ParamCache::new(cache).params_path(&circuits::parameter_files(id)?);
        let inputs = job.public_inputs(0)?;
        Self::new(id.to_string(), circuit, &path, job.witness(0)?, inputs)
    }

    pub(super) fn of_size(context: &Context, log_domain: u32) -> Result<Self, Failure> {
        let cache = &context.config.srs.param_cache;
        std::fs::create_dir_all(cache).map_err(|error| Failure::file(cache, &error))?;
        let program = largest_in(1 << log_domain)?;
        let name = format!("bench-device-{log_domain}");
        let [program_path, params_path] =
            ["circuit", "params"].map(|kind| cache.join(format!("{name}.{kind}")));
        program::write(&program_path, &program.1, &name).map_err(failed)?;
        make_parameters(&program.1, &params_path)?;
        let circuit = Circuit::open(&name, &program_path).map_err(cuzk_core::Error::from)?;
        let witness = packed_witness(Hashes {
            count: program.0,
            blank: false,
        });
        let name = format!("2^{log_domain}");
        Self::new(
            name,
            circuit,
            &params_path,
            witness.map_err(failed)?,
            Vec::new(),
        )
    }

    fn new(
        name: String,
        circuit: Circuit,
        params: &Path,
        witness: PackedWitness<Scalar>,
        inputs: Vec<Scalar>,
    ) -> Result<Self, Failure> {
        let params = MappedParams::open(params).map_err(failed)?;
        params
            .check_circuit(&circuit.query_lengths())
            .map_err(failed)?;
        Ok(Self {
            name,
            circuit: Arc::new(circuit),
            key: prepare_verifying_key(params.vk()),
            params: Arc::new(params),
            witness,
            inputs,
            buffers: buffer_pool(Dealloc::Recycle, 0),
        })
    }

    pub(super) fn synthesized(&self, randomness: Randomness) -> Synthesized {
        Synthesized {
            circuit: Arc::clone(&self.circuit),
            params: Arc::clone(&self.params),
            witness: self.witness.clone(),
            evaluation: Evaluation::Left(Arc::clone(&self.buffers)),
            randomness,
            checkpoint: Checkpoint::never(),
        }
    }

    /// The proof's bytes, if it verifies.
    pub(super) fn verify(&self, proof: &Proof<Bls12>) -> Result<[u8; 192], Failure> {
        let verified = verify(&self.key, proof, &self.inputs).map_err(failed)?;
        Ok(*verified.as_bytes())
    }

    /// Returns the upload of a prover that takes a, b, c and the aux values in full.
    pub(super) fn peer_bytes(&self) -> u64 {
        let rows = self.circuit.program().rows() + self.witness.num_inputs();
        (size_of::<Scalar>() * (3 * rows + self.witness.num_aux())) as u64
    }
}

/// The circuit of most hashes whose rows, with those for the inputs, fit the
/// domain, and more than half of it.
fn largest_in(domain_len: usize) -> Result<(usize, Program<Scalar>), Failure> {
    let blank = |count| Hashes { count, blank: true };
    let one = cuzk_pce::compile::<Scalar, _>(blank(1)).map_err(failed)?;
    let count = (domain_len - one.num_inputs()) / one.rows().max(BLOCK_ROWS);
    if count == 0 {
        return Err(Failure::input("--size: at least 16 for a whole hash"));
    }
    let program = cuzk_pce::compile(blank(count)).map_err(failed)?;
    Ok((count, program))
}

fn make_parameters(program: &Program<Scalar>, path: &Path) -> Result<(), Failure> {
    let fits = |params: MappedParams| {
        let expected = cuzk_groth16::params::QueryLengths::of(program, &program.densities());
        params.check_circuit(&expected).is_ok()
    };
    if MappedParams::open(path).is_ok_and(fits) {
        return Ok(());
    }
    output::say(format_args!("making test parameters in {}", path.display()));
    // Under another name, so that what is interrupted is made again.
    let unfinished = path.with_extension("unfinished");
    let file = std::fs::File::create(&unfinished);
    let file = file.map_err(|error| Failure::file(&unfinished, &error))?;
    let mut out = std::io::BufWriter::with_capacity(1 << 20, file);
    let waste = ToxicWaste::from_seed(0);
    generate(program, &waste, Isa::best(), &mut out, |_, _| ()).map_err(failed)?;
    std::fs::rename(&unfinished, path).map_err(|error| Failure::file(path, &error))
}

/// Independent hashes of 64 bytes, each with values that are not bits beside it.
struct Hashes {
    count: usize,
    /// True if values are unknown.
    blank: bool,
}

impl<S: PrimeField> BellpersonCircuit<S> for Hashes {
    fn synthesize<CS: ConstraintSystem<S>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        for hash in 0..self.count {
            let mut cs = cs.namespace(|| format!("hash {hash}"));
            let preimage = (0..512usize)
                .map(|bit| {
                    let value = (!self.blank).then_some((bit * 7 + hash) % 3 == 0);
                    let name = || format!("bit {bit}");
                    AllocatedBit::alloc(cs.namespace(name), value).map(Boolean::from)
                })
                .collect::<Result<Vec<_>, _>>()?;
            sha256(cs.namespace(|| "sha256"), &preimage)?;
            let first = (!self.blank).then(|| S::from(hash as u64 + 2));
            squares(&mut cs.namespace(|| "squares"), first)?;
        }
        Ok(())
    }
}

/// `WIDE` values, each the square of the one before.
fn squares<S: PrimeField, CS: ConstraintSystem<S>>(
    cs: &mut CS,
    first: Option<S>,
) -> Result<(), SynthesisError> {
    let known = |value: Option<S>| value.ok_or(SynthesisError::AssignmentMissing);
    let mut value = first;
    let mut variable = cs.alloc(|| "first", || known(first))?;
    for index in 0..WIDE {
        value = value.map(|value| value.square());
        let square = cs.alloc(|| format!("square {index}"), || known(value))?;
        let name = || format!("squared {index}");
        cs.enforce(
            name,
            |lc| lc + variable,
            |lc| lc + variable,
            |lc| lc + square,
        );
        variable = square;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_made_up_circuit_fills_its_domain_and_is_satisfied() {
        let (count, program) = largest_in(1 << 18).unwrap();
        assert!(program.rows() + program.num_inputs() <= 1 << 18);
        assert!(program.rows() > 1 << 17);
        let blank = false;
        let witness = packed_witness::<Scalar, _>(Hashes { count, blank }).unwrap();
        assert_eq!(program::check(&program, &witness).unwrap(), None);
        let wide = witness.num_wide() * 1000 / witness.num_aux();
        assert!((10..30).contains(&wide), "{wide} in a thousand");
    }
}
