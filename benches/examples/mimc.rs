//! Times our prover on MiMC, which `benches/peers/arkworks` proves, too.
//!
//! `benches/peers/mimc` starts both and gives them turns. The program prints "ready" once it has made
//! the parameters. Then it makes a proof for each line of its input. It prints the seconds from the
//! preimage to a proof that is verified. `mimc ROWS THREADS [ISA [multiples]]` starts it. With the
//! last word it makes multiples of the parameters' points, too, and prints their size and the
//! time that they take to its errors. The invariant: the circuit has so many rows exactly, or
//! nothing is printed.

use std::{env, io, sync::Arc};

use benches::{Result, mimc::Arguments, multiples::WithMultiples, study::time};
use cuzk_groth16::{Prover, ProvingDevice, compile, params::ToxicWaste, setup};
use cuzk_testing::circuits::Mimc;

fn main() -> Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Arguments {
        rows,
        threads,
        isa,
        with_multiples,
    } = Arguments::of(&words)?;
    // A round of MiMC has two rows.
    let blank = Mimc::blank(rows / 2);
    let circuit = compile("MiMC", blank.clone())?;
    let compiled = circuit.program().rows();
    if compiled != rows {
        return Err(format!("the circuit has {compiled} rows instead of {rows}").into());
    }
    let params = setup(&circuit, &ToxicWaste::from_seed(0))?;
    let device = Arc::new(ProvingDevice::cpu(threads, isa)?);
    let made = match with_multiples {
        true => Some(WithMultiples::make(&params, &circuit, isa)?),
        false => None,
    };
    let params = match &made {
        Some(made) => {
            let [mb, s] = [made.file_bytes as f64 / 1e6, made.took.as_secs_f64()];
            eprintln!("multiples of {mb:.0} MB, made in {s:.1} s");
            Arc::clone(&made.params)
        }
        None => Arc::new(params),
    };
    let prover = Prover::on(Arc::new(circuit), params, device)?;
    let instance = blank.with([1, 2]);
    println!("ready");
    for line in io::stdin().lines() {
        line?;
        let (proof, wall) = time(|| prover.prove(instance.clone()));
        proof?;
        println!("{:.6}", wall.as_secs_f64());
    }
    Ok(())
}
