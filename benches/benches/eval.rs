//! The stage of synthesis: the witness of a circuit of hashes, and A and B
//! over it, from plain rows and from the compiled circuit.

use bellperson::{Circuit, ConstraintSystem, util_cs::witness_cs::WitnessCS};
use benches::{
    Result,
    circuit::Hashes,
    mode::Mode,
    stage::{self, Stage, Work},
};
use blstrs::Scalar;
use criterion::Criterion;
use cuzk_pce::{PackedWitness, Program, R1cs, Witness, compile, evaluate, naive, record, witness};
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

fn compiled_stage<'a>(
    program: &'a Program<Scalar>,
    packed: &'a PackedWitness<Scalar>,
    r1cs: &'a R1cs<Scalar>,
    witness: &'a Witness<Scalar>,
) -> Result<Stage<'a>> {
    let expected = evaluate(r1cs, witness, None)?;
    let zeros = vec![Scalar::ZERO; expected.a.len()];
    let (mut a, mut b) = (zeros.clone(), zeros.clone());
    program.evaluate_into(packed, &mut a, &mut b, None)?;
    stage::agree(a == expected.a && b == expected.b, "compiled")?;
    Ok(Stage {
        name: format!("compiled/{} rows", program.rows()),
        ours: Box::new(move || -> Work<'a> {
            let (mut a, mut b) = (zeros.clone(), zeros.clone());
            Box::new(move || Ok(program.evaluate_into(packed, &mut a, &mut b, None)?))
        }),
        peer: (
            "our plain rows",
            Box::new(move || {
                black_box(evaluate(r1cs, witness, None)?);
                Ok(())
            }),
        ),
    })
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
        let packed = PackedWitness::pack(&values);
        for stage in [
            witness_stage(circuit, &values)?,
            evaluation_stage(&r1cs, &values)?,
            compiled_stage(&program, &packed, &r1cs, &values)?,
        ] {
            rows.extend(stage.bench(&mut criterion, mode, ROUNDS)?);
        }
    }
    if mode == Mode::Measure {
        stage::print(&rows);
    }
    criterion.final_summary();
    Ok(())
}
