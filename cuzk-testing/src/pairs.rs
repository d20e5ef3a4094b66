//! The time of a job in two ways, measured in turns.
//!
//! Not a bench: it has no engine. The invariant: a round has a sample of each way, so that what
//! slows a machine down slows both.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use cuzk_kernels::Isa;
use cuzk_tune::machine::Host;

/// Makes so many calls, and returns the seconds that they took.
type Arm<'a> = &'a mut dyn FnMut(u32) -> Result<f64, Box<dyn Error>>;

/// Proves a request so often, and returns the seconds that it took. The text is the id of the
/// job, if it has one.
pub type Prove<'a> = &'a mut dyn FnMut(u32, Option<&str>) -> Result<f64, Box<dyn Error>>;

/// The id of the job that is proved before the first sample.
const PROVED: &str = "proved";

/// Makes so many calls, and returns the seconds that they took.
///
/// # Errors
///
/// The first error of a call.
pub fn timed(
    calls: u32,
    mut call: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    let begun = Instant::now();
    for _ in 0..calls {
        call()?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Proves a request in both ways, and prints what a proof takes in each. A proof takes far longer
/// than a call. So each way also asks for a proved job again by its id: that makes the same
/// calls and proves nothing. Without `--bench` on the command line each way has one sample. With it,
/// a line about the machine comes first.
///
/// # Errors
///
/// The first error of a call.
pub fn compare_proofs(ways: [(&str, Prove<'_>); 2]) -> Result<(), Box<dyn Error>> {
    let is_measured = std::env::args().any(|argument| argument == "--bench");
    let (rounds, calls) = if is_measured { (40, 200) } else { (1, 1) };
    if is_measured {
        println!("{}", Host::read(Path::new("/"), Isa::best().name()));
    }
    let [(first, by_first), (second, by_second)] = ways;
    // Both have then loaded the circuit and its parameters.
    by_first(1, Some(PROVED))?;
    by_second(1, Some(PROVED))?;
    for (what, id, calls) in [
        ("a proof", None, 1),
        ("a proved job again", Some(PROVED), calls),
    ] {
        let mut by_first = |calls| by_first(calls, id);
        let mut by_second = |calls| by_second(calls, id);
        let arms: [(_, Arm<'_>); 2] = [(first, &mut by_first), (second, &mut by_second)];
        compare(what, (rounds, calls), arms)?;
    }
    Ok(())
}

/// Makes calls in both ways, which begin in turns. Prints what a call takes in each way, and how
/// much longer it takes in the second one.
fn compare(
    what: &str,
    (rounds, calls): (usize, u32),
    [(first, by_first), (second, by_second)]: [(&str, Arm<'_>); 2],
) -> Result<(), Box<dyn Error>> {
    let mut samples = [Vec::new(), Vec::new()];
    let arms = [by_first, by_second];
    for round in 0..rounds {
        for turn in 0..2 {
            let arm = (round + turn) % 2;
            let took_s = (arms[arm])(calls)?;
            samples[arm].push(took_s * 1e6 / f64::from(calls));
        }
    }
    let [of_first, of_second] = samples;
    let pairs = of_second.iter().zip(&of_first);
    let more = sorted(pairs.map(|(second, first)| second - first).collect());
    let of = |part: usize| more[more.len() * part / 4];
    println!(
        "{what}: {first} {:.1} us, {second} {:.1} us (medians of {rounds} rounds); {second} takes \
         {:+.1} us more in the median round, {:+.1} to {:+.1} us in the middle half",
        middle(of_first),
        middle(of_second),
        of(2),
        of(1),
        of(3),
    );
    Ok(())
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn middle(values: Vec<f64>) -> f64 {
    let values = sorted(values);
    values[values.len() / 2]
}
