//! Times our prover on MiMC, which `benches/peers/arkworks` proves, too.
//!
//! `benches/peers/mimc` starts both and gives them turns. The program prints "ready" once it has made
//! the parameters. Then it makes a proof for each line of its input. It prints the seconds from the
//! preimage to a proof that is verified. `mimc ROWS THREADS [ISA [multiples]]` starts it. With the
//! last word it makes multiples of the parameters' points, too, and prints their size and the
//! time that they take to its errors. The invariant: the circuit has so many rows exactly, or
//! nothing is printed.

use std::{env, io, sync::Arc};

use benches::{Result, multiples::WithMultiples, study::time};
use cuzk_groth16::{Prover, ProvingDevice, compile, params::ToxicWaste, setup};
use cuzk_kernels::Isa;
use cuzk_testing::circuits::Mimc;

/// The words of the command line.
#[derive(Debug, PartialEq)]
struct Arguments {
    rows: usize,
    threads: usize,
    isa: Isa,
    with_multiples: bool,
}

impl Arguments {
    fn of(words: &[&str]) -> Result<Self> {
        let (rows, threads, isa, with_multiples) = match *words {
            [rows, threads] => (rows, threads, Isa::best(), false),
            [rows, threads, isa] => (rows, threads, isa.parse()?, false),
            [rows, threads, isa, "multiples"] => (rows, threads, isa.parse()?, true),
            _ => return Err("usage: mimc ROWS THREADS [ISA [multiples]]".into()),
        };
        Ok(Self {
            rows: rows.parse()?,
            threads: threads.parse()?,
            isa,
            with_multiples,
        })
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_has_two_to_four_words() {
        let of = |isa, with_multiples| Arguments {
            rows: 62,
            threads: 3,
            isa,
            with_multiples,
        };
        for (words, expected) in [
            ("62 3", of(Isa::best(), false)),
            ("62 3 auto", of(Isa::best(), false)),
            ("62 3 portable", of(Isa::PORTABLE, false)),
            ("62 3 scalar multiples", of(Isa::SCALAR, true)),
        ] {
            let words: Vec<&str> = words.split(' ').collect();
            assert_eq!(Arguments::of(&words).unwrap(), expected, "{words:?}");
        }
        for (words, told) in [
            ("", "usage"),
            ("62", "usage"),
            ("62 3 scalar multiple", "usage"),
            ("62 3 scalar multiples 4", "usage"),
            ("-62 3", "invalid digit"),
            ("62 three", "invalid digit"),
            ("62 3 sse", "unknown instruction set"),
        ] {
            let words: Vec<&str> = words.split_terminator(' ').collect();
            let error = Arguments::of(&words).unwrap_err().to_string();
            assert!(error.contains(told), "{words:?}: {error}");
        }
    }
}
