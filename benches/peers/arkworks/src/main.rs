//! Times arkworks' Groth16 prover on MiMC, which `benches/examples/mimc.rs` proves, too.
//!
//! It is no test of arkworks, and cuzk links none of it. The program prints "ready" once it has made
//! the parameters. Then it makes a proof for each line of its input. It prints the seconds from the
//! preimage to a proof that is verified. `peer-arkworks ROWS THREADS` starts it. The invariant: the
//! circuit has so many rows exactly, or nothing is printed.

use std::env;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use ark_bls12_381::{Bls12_381, Fr};
use ark_ff::{Field, UniformRand};
use ark_groth16::Groth16;
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, LinearCombination,
    SynthesisError, Variable,
};
use ark_snark::SNARK;
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The preimage of a MiMC hash: two private values and a public image. A round x, y → y + (x
/// + c)³, x has two rows.
#[derive(Clone)]
struct Mimc {
    constants: Arc<[Fr]>,
    preimage: Option<[Fr; 2]>,
}

impl Mimc {
    fn image(&self) -> Option<Fr> {
        let rounds = self.constants.iter();
        let start = self.preimage?;
        Some(rounds.fold(start, |[x, y], c| [y + (x + *c).square() * (x + *c), x])[0])
    }
}

impl ConstraintSynthesizer<Fr> for Mimc {
    fn generate_constraints(
        self,
        cs: ConstraintSystemRef<Fr>,
    ) -> std::result::Result<(), SynthesisError> {
        const MISSING: SynthesisError = SynthesisError::AssignmentMissing;
        let mut values = self.preimage;
        let mut x = cs.new_witness_variable(|| Ok(values.ok_or(MISSING)?[0]))?;
        let mut y = cs.new_witness_variable(|| Ok(values.ok_or(MISSING)?[1]))?;
        for (round, &c) in self.constants.iter().enumerate() {
            let square = values.map(|[x, _]| (x + c).square());
            let next = values
                .zip(square)
                .map(|([x, y], square)| [y + square * (x + c), x]);
            let squared = cs.new_witness_variable(|| square.ok_or(MISSING))?;
            let one = Fr::ONE;
            let sum = || LinearCombination(vec![(one, x), (c, Variable::One)]);
            cs.enforce_r1cs_constraint(sum, sum, || LinearCombination(vec![(one, squared)]))?;
            let image = || Ok(next.ok_or(MISSING)?[0]);
            let new = match round + 1 == self.constants.len() {
                true => cs.new_input_variable(image)?,
                false => cs.new_witness_variable(image)?,
            };
            cs.enforce_r1cs_constraint(
                || LinearCombination(vec![(one, squared)]),
                sum,
                || LinearCombination(vec![(one, new), (-one, y)]),
            )?;
            (values, y, x) = (next, x, new);
        }
        Ok(())
    }
}

/// Returns the rows and the threads that the command line names.
fn sizes() -> Result<[usize; 2]> {
    let numbers: Vec<usize> = env::args()
        .skip(1)
        .map(|text| text.parse())
        .collect::<std::result::Result<_, _>>()?;
    match numbers[..] {
        [rows, threads] if rows >= 2 && rows % 2 == 0 && threads > 0 => Ok([rows, threads]),
        _ => Err("usage: peer-arkworks ROWS THREADS, with an even number of rows".into()),
    }
}

/// Returns the rows of a circuit as arkworks counts them.
fn rows_of(circuit: Mimc) -> Result<usize> {
    let cs = ConstraintSystem::new_ref();
    circuit.generate_constraints(cs.clone())?;
    cs.finalize();
    Ok(cs.num_constraints())
}

fn run() -> Result<()> {
    let [rows, threads] = sizes()?;
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()?;
    let mut rng = StdRng::seed_from_u64(0);
    let blank = Mimc {
        constants: (0..rows / 2).map(|_| Fr::rand(&mut rng)).collect(),
        preimage: None,
    };
    let circuit = Mimc {
        preimage: Some([1, 2].map(Fr::from)),
        ..blank.clone()
    };
    let image = circuit.image().ok_or("no preimage")?;
    let counted = rows_of(circuit.clone())?;
    if counted != rows {
        return Err(format!("the circuit has {counted} rows instead of {rows}").into());
    }
    let (key, verifying) = Groth16::<Bls12_381>::circuit_specific_setup(blank, &mut rng)?;
    let verifying = Groth16::<Bls12_381>::process_vk(&verifying)?;
    println!("ready");
    for line in io::stdin().lines() {
        line?;
        let started = Instant::now();
        let proof = Groth16::<Bls12_381>::prove(&key, circuit.clone(), &mut rng)?;
        if !Groth16::<Bls12_381>::verify_with_processed_vk(&verifying, &[image], &proof)? {
            return Err("the proof does not verify".into());
        }
        println!("{:.6}", started.elapsed().as_secs_f64());
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peer-arkworks: {error}");
            ExitCode::from(2)
        }
    }
}
