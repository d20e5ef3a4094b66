//! `cuzk bench STAGE`: our stage and a peer's, alternating, in one run.
//!
//! Not a test: nothing here passes or fails by a time. The invariant: both sides get the
//! same input. Their results are compared before anything is measured. Only proofs and
//! parameters are not, because they have randomness in them. Tests compare those with the
//! peer's under fixed randomness, and an engine verifies its proofs. Each report names the machine.

mod aggregate;
mod args;
mod circuit;
mod cluster;
mod comparison;
mod device;
pub(crate) mod double;
mod engine;
mod eval;
mod interventions;
mod kernel;
mod recorded;
mod server;

use std::path::Path;

use cuzk_tune::machine::Host;

pub(crate) use self::args::Bench;
use self::args::BenchStage;
use self::comparison::{Comparison, text};

use crate::commands::Context;
use crate::failure::Failure;
use crate::output;
use crate::threads::none_left;

pub(crate) fn run(context: &Context, args: &Bench) -> Result<(), Failure> {
    if args.svg.is_some() && args.stage != BenchStage::Interventions {
        let problem = "--svg: only `cuzk bench interventions` draws what it measured";
        return Err(Failure::input(problem));
    }
    if args.flood && args.stage != BenchStage::Server {
        let problem = "--flood: only `cuzk bench server` has a daemon to flood";
        return Err(Failure::input(problem));
    }
    if args.alone && !args.stage.is_kernel() {
        let problem = "--alone: only ntt, msm-g1, msm-g2 and sum-g1 are measured without a peer";
        return Err(Failure::input(problem));
    }
    let host = Host::read(Path::new("/"), context.config.cpu.isa.name());
    let mut first: Vec<f64> = Vec::new();
    for &threads in &args.threads {
        let mut comparisons = measure(context, args, &host, threads)?;
        for (comparison, first_s) in comparisons.iter_mut().zip(&first) {
            comparison.scaling = Some(first_s / comparison.ours_s);
        }
        for comparison in &mut comparisons {
            comparison.machine = Some(host.clone());
        }
        // After the measurement: a command that fails prints no result.
        if first.is_empty() && !comparisons.is_empty() && !context.json {
            output::print_lines(&host.to_string())?;
        }
        if first.is_empty() {
            first = comparisons.iter().map(|line| line.ours_s).collect();
        }
        for comparison in &comparisons {
            output::print(context.json, comparison, text)?;
        }
    }
    Ok(())
}

fn measure(
    context: &Context,
    args: &Bench,
    host: &Host,
    threads: usize,
) -> Result<Vec<Comparison>, Failure> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| none_left(&std::io::Error::other(error)))?;
    let isa = context.config.cpu.isa;
    pool.install(|| match args.stage {
        BenchStage::Pce => circuit::pce(args),
        BenchStage::Witness => circuit::witness(isa, args),
        BenchStage::Eval => eval::eval(context, args),
        BenchStage::Aggregate => aggregate::aggregation(isa, args),
        BenchStage::Params => circuit::params(isa, args),
        BenchStage::Prove => circuit::prove(context, args),
        BenchStage::Engine => engine::engine(context, args),
        BenchStage::Device => device::of_kind(context, args),
        BenchStage::DeviceShape => device::of_size(context, args),
        BenchStage::DeviceLoad => device::load(context, args, host),
        BenchStage::Ntt => kernel::ntt(isa, args),
        BenchStage::MsmG1 => kernel::msm_g1(isa, args),
        BenchStage::MsmG2 => kernel::msm_g2(isa, args),
        BenchStage::SumG1 => kernel::sum_g1(isa, args),
        // They have more than a peer, so they print their own reports.
        BenchStage::Interventions => interventions::run(context, args, host).map(|()| Vec::new()),
        BenchStage::Cluster => cluster::run(context, args, host).map(|()| Vec::new()),
        BenchStage::Server => server::run(context, args, host).map(|()| Vec::new()),
    })
}
