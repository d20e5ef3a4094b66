//! Evaluation of the constraints, into buffers that are lent.
//!
//! At 2 KiB the witness is that of the bundled request. The peer is the plain product
//! of A, B and C: one multiplication a nonzero. `eval` is the engine's evaluation of a
//! witness that it proves; `eval-abc` trusts no row. Both sides write buffers on huge
//! pages that were written before.
//!
//! At other sizes plain matrices would not fit, so the witness is made up. It has random
//! bits in the columns that the rows declare boolean, and random values elsewhere. The
//! peer then fills the same buffers, which is the fastest that any writer can be.

use std::cell::RefCell;

use blstrs::Scalar;
use cuzk_core::circuits;
use cuzk_filecoin::{SectorSize, blank};
use cuzk_groth16::memory::buffer_pool;
use cuzk_memory::{Buffer, Dealloc, Gate, NEVER_STOP};
use cuzk_pce::{PackedBuilder, PackedWitness, Program, R1cs, spmv_parallel_into};
use ff::Field;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::circuit::{bundled_job, of_circuit};
use super::comparison::{Comparison, alternate, differs};
use crate::bench::args::Bench;
use crate::commands::Context;
use crate::failure::{Failure, failed};

/// The number of scalars that one task fills at a time.
const TASK: usize = 1 << 14;

pub(crate) fn eval(context: &Context, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    let circuit = circuits::cached(args.circuit(), &context.config.srs.param_cache)?;
    let program = circuit.program();
    if args.sector_size == SectorSize::KiB2 {
        against_plain(program, args)
    } else {
        against_filling(program, args)
    }
}

/// Returns vectors like those of the engine: on huge pages that were written before.
fn buffers<const N: usize>(program: &Program<Scalar>) -> Result<[Buffer; N], Failure> {
    let pool = buffer_pool(Dealloc::Recycle, 0);
    let len = program.rows() + program.num_inputs();
    let mut buffers = Vec::with_capacity(N);
    for _ in 0..N {
        let mut buffer = pool.take(len).map_err(failed)?;
        fill(&mut buffer, Scalar::ONE);
        buffers.push(buffer);
    }
    buffers
        .try_into()
        .map_err(|_| failed("another number of buffers"))
}

fn fill(values: &mut [Scalar], value: Scalar) {
    values
        .par_chunks_mut(TASK)
        .for_each(|task| task.fill(value));
}

/// Writes A, B and C times the witness, by plain products.
fn plain(r1cs: &R1cs<Scalar>, values: &[Scalar], out: &mut [Buffer; 3]) -> Result<(), Failure> {
    for (matrix, out) in [r1cs.a(), r1cs.b(), r1cs.c()].into_iter().zip(out) {
        let (out, gate) = (&mut out[..r1cs.rows()], Gate::new(None, r1cs.rows()));
        spmv_parallel_into(matrix, values, out, &gate, &NEVER_STOP).map_err(failed)?;
    }
    Ok(())
}

fn against_plain(program: &Program<Scalar>, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    const PEER: &str = "plain CSR, a, b and c";
    let witness = bundled_job(args)?.witness(0)?;
    let values = witness.to_plain();
    let r1cs = blank::record(args.circuit())?;
    let [mut a, mut b, mut c] = buffers(program)?;
    program
        .evaluate_abc_into(&witness, [&mut a, &mut b, &mut c], &NEVER_STOP)
        .map_err(failed)?;
    let mut lent = buffers(program)?;
    plain(&r1cs, values.values(), &mut lent)?;
    let rows = r1cs.rows();
    let is_same = |(ours, peer): (&Buffer, &Buffer)| ours[..rows] == peer[..rows];
    if ![&a, &b, &c].into_iter().zip(&lent).all(is_same) {
        return Err(differs("eval"));
    }
    program
        .evaluate_satisfied(&witness, [&mut a, &mut b], &NEVER_STOP)
        .map_err(failed)?;
    if ![&a, &b].into_iter().zip(&lent).all(is_same) {
        return Err(differs("eval"));
    }
    let ab = alternate(
        args.runs,
        || {
            program
                .evaluate_satisfied(&witness, [&mut a, &mut b], &NEVER_STOP)
                .map_err(failed)
        },
        || plain(&r1cs, values.values(), &mut lent),
    )?;
    let abc = alternate(
        args.runs,
        || {
            let out = [&mut a[..], &mut b, &mut c];
            program
                .evaluate_abc_into(&witness, out, &NEVER_STOP)
                .map_err(failed)
        },
        || plain(&r1cs, values.values(), &mut lent),
    )?;
    let size = args.sector_size.to_string();
    let lines = [("eval", ab), ("eval-abc", abc)].map(|(stage, medians)| {
        let comparison = medians.into_comparison(stage, size.clone(), PEER);
        let sizes = Comparison {
            ours_bytes: Some(program.resident_bytes() as u64),
            peer_bytes: Some(r1cs.resident_bytes() as u64),
            ..comparison
        };
        of_circuit(sizes, args)
    });
    Ok(lines.into_iter().flatten().collect())
}

fn against_filling(program: &Program<Scalar>, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    let witness = made_up(program)?;
    // Both sides write the same buffers, which are most of the memory there is.
    let lent = RefCell::new(buffers(program)?);
    let ours = || {
        let [a, b] = &mut *lent.borrow_mut();
        program
            .evaluate_satisfied(&witness, [a, b], &NEVER_STOP)
            .map_err(failed)
    };
    let peer = || {
        let [a, b] = &mut *lent.borrow_mut();
        fill(a, Scalar::ONE);
        fill(b, Scalar::ZERO);
        Ok(())
    };
    let medians = alternate(args.runs, ours, peer)?;
    let size = args.sector_size.to_string();
    let comparison = medians.into_comparison("eval", size, "filling a and b");
    Ok(of_circuit(
        Comparison {
            ours_bytes: Some(program.resident_bytes() as u64),
            ..comparison
        },
        args,
    ))
}

/// Returns a witness with the usual share of bits, which satisfies no row.
fn made_up(program: &Program<Scalar>) -> Result<PackedWitness<Scalar>, Failure> {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let boolean = program.boolean_columns();
    let mut builder = PackedBuilder::with_capacity(program.num_aux(), 0);
    builder.push_input(Scalar::ONE);
    for _ in 1..program.num_inputs() {
        builder.push_input(Scalar::random(&mut rng));
    }
    for column in 0..program.num_aux() {
        if boolean.contains(column) {
            builder.push_bits(rng.r#gen(), 1);
        } else {
            builder.push(Scalar::random(&mut rng));
        }
    }
    builder.finish().map_err(failed)
}
