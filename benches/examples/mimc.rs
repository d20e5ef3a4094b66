//! Times our prover on MiMC, which `benches/peers/arkworks` proves, too.
//!
//! `benches/peers/mimc` starts both and gives them turns. The program prints "ready" once it has made
//! the parameters. Then it makes a proof for each line of its input. It prints the seconds from the
//! preimage to a proof that is verified. `mimc ROWS THREADS [ISA]` starts it. The invariant: the
//! circuit has so many rows exactly, or nothing is printed.

use std::{env, io, sync::Arc};

use benches::{Result, study::time};
use cuzk_groth16::{Prover, ProvingDevice, compile, params::ToxicWaste, setup};
use cuzk_kernels::Isa;
use cuzk_testing::circuits::Mimc;

/// Returns the rows, the threads and the instructions that the command line names.
fn arguments() -> Result<(usize, usize, Isa)> {
    let texts: Vec<String> = env::args().skip(1).collect();
    let (rows, threads, isa) = match &texts[..] {
        [rows, threads] => (rows, threads, Isa::best()),
        [rows, threads, isa] => (rows, threads, isa.parse()?),
        _ => return Err("usage: mimc ROWS THREADS [ISA]".into()),
    };
    Ok((rows.parse()?, threads.parse()?, isa))
}

fn main() -> Result<()> {
    let (rows, threads, isa) = arguments()?;
    // A round of MiMC has two rows.
    let blank = Mimc::blank(rows / 2);
    let circuit = compile("MiMC", blank.clone())?;
    let compiled = circuit.program().rows();
    if compiled != rows {
        return Err(format!("the circuit has {compiled} rows instead of {rows}").into());
    }
    let params = setup(&circuit, &ToxicWaste::from_seed(0))?;
    let device = Arc::new(ProvingDevice::cpu(threads, isa)?);
    let prover = Prover::on(Arc::new(circuit), Arc::new(params), device)?;
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
