//! A made-up circuit that fills a domain.
//!
//! It is like a storage proof: hashes bit by bit, and a few values that are not bits. Its
//! parameters are real ones. They are kept in the parameter cache, under a name that no
//! other program looks for.

use std::path::{Path, PathBuf};

use bellperson::gadgets::boolean::{AllocatedBit, Boolean};
use bellperson::gadgets::sha256::sha256;
use bellperson::{Circuit as BellpersonCircuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use cuzk_groth16::Circuit;
use cuzk_groth16::params::{MappedParams, QueryLengths, ToxicWaste, generate};
use cuzk_kernels::Isa;
use cuzk_pce::{PackedWitness, Program, packed_witness, program};
use ff::PrimeField;

use crate::failure::{Failure, failed};
use crate::output;

/// The least number of rows of a hash and of the values beside it.
const BLOCK_ROWS: usize = 44_000;

/// The number of values beside each hash that are not bits. PoRep has as large a share.
const WIDE: usize = 700;

/// A made-up circuit with its witness, and the file of its parameters.
pub(super) struct MadeUp {
    pub(super) circuit: Circuit,
    pub(super) witness: PackedWitness<Scalar>,
    pub(super) params_path: PathBuf,
}

impl MadeUp {
    /// Makes the circuit that fills the domain, and its parameters unless they exist.
    pub(super) fn new(cache: &Path, log_domain: u32) -> Result<Self, Failure> {
        std::fs::create_dir_all(cache).map_err(|error| Failure::file(cache, &error))?;
        let (count, program) = largest_in(1 << log_domain)?;
        let name = format!("bench-device-{log_domain}");
        let [program_path, params_path] =
            ["circuit", "params"].map(|kind| cache.join(format!("{name}.{kind}")));
        program::write(&program_path, &program, &name).map_err(failed)?;
        make_parameters(&program, &params_path)?;
        let circuit = Circuit::open(&name, &program_path).map_err(cuzk_core::Error::from)?;
        let blank = false;
        Ok(Self {
            circuit,
            witness: packed_witness(Hashes { count, blank }).map_err(failed)?,
            params_path,
        })
    }
}

/// Returns the circuit with the most hashes whose rows fit the domain, together with the
/// rows for the inputs. They take more than half of the domain.
fn largest_in(domain_len: usize) -> Result<(usize, Program<Scalar>), Failure> {
    let blank = |count| Hashes { count, blank: true };
    let one = cuzk_pce::compile::<Scalar, _>(blank(1)).map_err(failed)?;
    let count = (domain_len - one.num_inputs()) / one.rows().max(BLOCK_ROWS);
    if count == 0 {
        return Err(Failure::input(
            "--size: expected at least 16, for a whole hash",
        ));
    }
    let program = cuzk_pce::compile(blank(count)).map_err(failed)?;
    Ok((count, program))
}

/// Makes test parameters, unless they exist and fit the circuit.
fn make_parameters(program: &Program<Scalar>, path: &Path) -> Result<(), Failure> {
    let fits = |params: MappedParams| {
        let expected = QueryLengths::of(program, &program.densities());
        params.check_circuit(&expected).is_ok()
    };
    if MappedParams::open(path).is_ok_and(fits) {
        return Ok(());
    }
    output::say(format_args!("making test parameters in {}", path.display()));
    // The file has another name until it is whole, so an interrupted one is made again.
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

/// Allocates `WIDE` values, each the square of the one before.
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
    use cuzk_pce::Columns;

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
