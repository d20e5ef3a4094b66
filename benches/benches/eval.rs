//! The stage of synthesis: the witness of a circuit of hashes, and A and B
//! over it, from plain rows and from the compiled circuit.
//!
//! Both sides of a stage have the same memory. A witness, and A and B from plain rows on one thread,
//! are vectors that each side allocates within its time. The compiled circuit and its peers write
//! buffers that were lent to them, and that were written before.

use bellperson::{Circuit, ConstraintSystem, util_cs::witness_cs::WitnessCS};
use benches::{
    Result,
    circuit::Hashes,
    mode::Mode,
    stage::{self, Stage, Work},
};
use blstrs::Scalar;
use criterion::Criterion;
use cuzk_memory::{Gate, NEVER_STOP};
use cuzk_pce::{
    PackedBuilder, PackedWitness, Program, R1cs, Witness, compile, evaluate, naive, record,
    spmv_parallel_into, witness,
};
use ff::Field;
use std::hint::black_box;

const ROUNDS: usize = 10;

fn peers_witness(circuit: Hashes) -> Result<WitnessCS<Scalar>> {
    let mut cs = WitnessCS::new();
    circuit.synthesize(&mut cs)?;
    Ok(cs)
}

fn witness_stage<'a>(circuit: Hashes, ours: &Witness<Scalar>) -> Result<Stage<'a>> {
    let peer = peers_witness(circuit)?;
    stage::agree(peer.aux_slice() == ours.aux(), "witness")?;
    Ok(Stage {
        name: format!("witness/{} hashes", circuit.count),
        ours: Box::new(move || -> Work<'a> {
            Box::new(move || {
                black_box(witness::<Scalar, _>(circuit)?);
                Ok(())
            })
        }),
        peer: (
            "bellperson",
            Box::new(move || {
                black_box(peers_witness(circuit)?);
                Ok(())
            }),
        ),
    })
}

fn evaluation_stage<'a>(r1cs: &'a R1cs<Scalar>, witness: &'a Witness<Scalar>) -> Result<Stage<'a>> {
    let ours = evaluate(r1cs, witness, None)?;
    let rows = r1cs.rows();
    let peer = move || -> Result<_> {
        let values = witness.values();
        Ok((
            naive::spmv(r1cs.a(), values)?,
            naive::spmv(r1cs.b(), values)?,
        ))
    };
    let (a, b) = peer()?;
    stage::agree(ours.a[..rows] == a && ours.b[..rows] == b, "evaluation")?;
    Ok(Stage {
        name: format!("evaluation/{rows} rows"),
        ours: Box::new(move || -> Work<'a> {
            Box::new(move || {
                black_box(evaluate(r1cs, witness, None)?);
                Ok(())
            })
        }),
        peer: (
            "one thread, plain",
            Box::new(move || {
                black_box(peer()?);
                Ok(())
            }),
        ),
    })
}

/// Returns buffers to lend, as long as a program's results. All their pages have been written.
fn buffers<const N: usize>(program: &Program<Scalar>) -> [Vec<Scalar>; N] {
    let places = program.rows() + program.num_inputs();
    std::array::from_fn(|_| vec![Scalar::ZERO; places])
}

/// Writes A, B and C of plain rows into `lent`, with one multiplication a term.
fn write_plain(
    r1cs: &R1cs<Scalar>,
    witness: &Witness<Scalar>,
    lent: &mut [Vec<Scalar>; 3],
) -> Result<()> {
    for (matrix, out) in [r1cs.a(), r1cs.b(), r1cs.c()].into_iter().zip(lent) {
        let (out, gate) = (&mut out[..r1cs.rows()], Gate::new(None, r1cs.rows()));
        spmv_parallel_into(matrix, witness.values(), out, &gate, &NEVER_STOP)?;
    }
    Ok(())
}

/// Returns the peer of the compiled circuit, with buffers like those of ours.
fn plain_rows<'a>(
    program: &Program<Scalar>,
    r1cs: &'a R1cs<Scalar>,
    witness: &'a Witness<Scalar>,
) -> Work<'a> {
    let mut lent = buffers(program);
    Box::new(move || {
        write_plain(r1cs, witness, &mut lent)?;
        black_box(&mut lent);
        Ok(())
    })
}

/// Compares what each arm computes with the plain rows, one multiplication a term.
fn agree(
    program: &Program<Scalar>,
    packed: &PackedWitness<Scalar>,
    r1cs: &R1cs<Scalar>,
    witness: &Witness<Scalar>,
) -> Result<()> {
    let expected = evaluate(r1cs, witness, None)?;
    let expected_c = naive::spmv(r1cs.c(), witness.values())?;
    let [mut a, mut b] = buffers(program);
    program.evaluate_into(packed, &mut a, &mut b, &NEVER_STOP)?;
    stage::agree(a == expected.a && b == expected.b, "compiled")?;
    let [mut a, mut b] = buffers(program);
    program.evaluate_satisfied(packed, [&mut a, &mut b], &NEVER_STOP)?;
    stage::agree(a == expected.a && b == expected.b, "compiled, satisfied")?;
    let [mut a, mut b, mut c] = buffers(program);
    program.evaluate_abc_into(packed, [&mut a, &mut b, &mut c], &NEVER_STOP)?;
    let agrees = a == expected.a && b == expected.b && c[..r1cs.rows()] == expected_c;
    stage::agree(agrees, "compiled a, b, c")?;
    let mut plain = buffers(program);
    write_plain(r1cs, witness, &mut plain)?;
    let rows = r1cs.rows();
    let same = |(plain, ours): (&Vec<Scalar>, &Vec<Scalar>)| plain[..rows] == ours[..rows];
    let agrees = plain.iter().zip([&a, &b, &c]).all(same);
    stage::agree(agrees, "plain a, b, c")
}

/// Returns the stages of the compiled circuit. They are a and b of a witness that the
/// engine proves, and a, b and c of any witness, each beside plain rows. The last is a
/// and b beside the machine's stores: filling the same two buffers.
fn compiled_stages<'a>(
    program: &'a Program<Scalar>,
    packed: &'a PackedWitness<Scalar>,
    r1cs: &'a R1cs<Scalar>,
    witness: &'a Witness<Scalar>,
) -> Result<[Stage<'a>; 3]> {
    agree(program, packed, r1cs, witness)?;
    let ab = move || -> Work<'a> {
        let [mut a, mut b] = buffers(program);
        Box::new(move || {
            let lent = [&mut a[..], &mut b[..]];
            Ok(program.evaluate_satisfied(packed, lent, &NEVER_STOP)?)
        })
    };
    let abc = move || -> Work<'a> {
        let [mut a, mut b, mut c] = buffers(program);
        Box::new(move || {
            let lent = [&mut a[..], &mut b[..], &mut c[..]];
            Ok(program.evaluate_abc_into(packed, lent, &NEVER_STOP)?)
        })
    };
    let [mut a, mut b] = buffers(program);
    let fill: Work<'a> = Box::new(move || {
        let zero = Scalar::ZERO;
        rayon::join(
            || black_box(&mut a).fill(zero),
            || black_box(&mut b).fill(zero),
        );
        Ok(())
    });
    let rows = program.rows();
    Ok([
        Stage {
            name: format!("compiled a, b/{rows} rows"),
            ours: Box::new(ab),
            peer: ("plain a, b, c", plain_rows(program, r1cs, witness)),
        },
        Stage {
            name: format!("compiled a, b, c/{rows} rows"),
            ours: Box::new(abc),
            peer: ("plain a, b, c", plain_rows(program, r1cs, witness)),
        },
        Stage {
            name: format!("compiled a, b beside stores/{rows} rows"),
            ours: Box::new(ab),
            peer: ("filling a and b", fill),
        },
    ])
}

fn main() -> Result<()> {
    let mode = Mode::current();
    let mut criterion = Criterion::default().configure_from_args();
    let mut rows = Vec::new();
    for &count in mode.pick(&[2, 24][..], &[1]) {
        let circuit = Hashes {
            count,
            blank: false,
        };
        let blank = Hashes { count, blank: true };
        let r1cs: R1cs<Scalar> = record(blank)?;
        let program = compile(blank)?;
        let values = witness(circuit)?;
        let packed = PackedBuilder::pack(&values);
        let stages = [
            witness_stage(circuit, &values)?,
            evaluation_stage(&r1cs, &values)?,
        ];
        let compiled = compiled_stages(&program, &packed, &r1cs, &values)?;
        for stage in stages.into_iter().chain(compiled) {
            rows.extend(stage.bench(&mut criterion, mode, ROUNDS)?);
        }
    }
    if mode == Mode::Measure {
        stage::print(&rows);
    }
    criterion.final_summary();
    Ok(())
}
