//! `cuzk prove --request FILE --out PROOF`, each any number of times: one engine proves all
//! requests side by side.
//!
//! The invariant: each request has its own end. An error is reported as soon as it is
//! known, under the request's name. Each proof is written when its own job ends. With
//! `--json` each request has one object: the report of its proof, or its failure. A signal
//! is a failure too.
//!
//! SIGINT or SIGTERM stops what runs at its next chunk; see [`stopped`].

mod batch;
mod order;
mod report;
mod stopped;
mod watched;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use cuzk_core::Engine;
use cuzk_core::job::JobOptions;
use cuzk_core::scheduler::priority::Priority;

use self::batch::Batch;
pub(crate) use self::order::Order;
use self::report::Reports;
use super::{Context, for_one_command, read_request};
use crate::failure::Failure;
use crate::failure_report::{Failures, Name};
use crate::interrupt::Interrupt;
use crate::output;
use crate::output_path::OutputPath;
use crate::timeline::{Drawing, TimelineFile};

#[derive(Debug, Args)]
pub(crate) struct Prove {
    /// A request, a bare C1 output or a C1 wrapper, as JSON. One engine proves several
    /// requests side by side. An error in one costs no other its proof; the exit code is
    /// the highest of all.
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) request: Vec<PathBuf>,
    /// The file for the proof, as the raw bytes that the chain expects; one for each
    /// request, in the same order. `-` is standard output; reports then go to standard error.
    #[arg(long, value_name = "PROOF", required = true)]
    pub(crate) out: Vec<PathBuf>,
    /// The name of the job, one for each request or none. If the configuration names a
    /// journal, an interrupted command that is given again proves only the missing
    /// partitions. The command answers SIGINT and SIGTERM within ten seconds.
    #[arg(long, value_name = "ID")]
    pub(crate) id: Vec<String>,
    /// The priority of all requests: critical, high, normal or low. By default each kind
    /// has its own.
    #[arg(long)]
    pub(crate) priority: Option<Priority>,
    /// Seconds after which the proofs are useless. A partition that has not begun by then
    /// is not proved.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) deadline_s: Option<u64>,
    /// Write the times of all stages into FILE: .svg is a waterfall with the devices'
    /// idle gaps, .json a trace for Perfetto.
    #[arg(long, value_name = "FILE", value_parser = TimelineFile::parser())]
    pub(crate) timeline: Option<TimelineFile>,
    /// Print a line for each stage of each partition, and the use of the devices.
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

pub(crate) fn run(context: &Context, args: &Prove) -> Result<(), Failure> {
    check_counts(args)?;
    let outs = args.out.iter().map(|out| OutputPath::new(out));
    let outs = outs.collect::<Result<Vec<_>, _>>()?;
    let drawing = args.timeline.as_ref().map(Drawing::new).transpose()?;
    let paths = outs.iter().chain(drawing.as_ref().map(Drawing::out));
    OutputPath::check_distinct(paths.clone())?;
    OutputPath::check_no_input(paths, &args.request)?;
    let interrupt = Interrupt::watch()?;
    let mut failures = Failures::new(context.json);
    let orders = read(args, outs, &interrupt, &mut failures)?;
    if orders.is_empty() {
        return failures.end();
    }
    let shown = Shown {
        drawing: drawing.as_ref(),
        verbose: args.verbose,
    };
    prove(context, &orders, shown, &interrupt, failures)
}

/// The display of the work, besides the results.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) drawing: Option<&'a Drawing>,
    /// True for a line for each stage.
    pub(crate) verbose: bool,
}

/// Reads the requests. Reports the error of each bad one; a signal ends all of them.
fn read(
    args: &Prove,
    outs: Vec<OutputPath>,
    interrupt: &Interrupt,
    failures: &mut Failures,
) -> Result<Vec<Order>, Failure> {
    let ids = args.id.iter().map(|id| Some(id.as_str()));
    let ids = ids.chain(std::iter::repeat(None));
    let names = args.request.iter().zip(ids);
    let names: Vec<_> = names.map(|(path, id)| Name::new(Some(path), id)).collect();
    let mut orders: Vec<Order> = Vec::new();
    for (at, (path, out)) in args.request.iter().zip(outs).enumerate() {
        let left = || {
            format!(
                "{} was not read, and nothing is proved",
                output::shown(path)
            )
        };
        let file = path.clone();
        // It may be a pipe without a writer.
        let read = match interrupt.unless_it_comes("reading", left, move || read_request(&file)) {
            Ok(read) => read,
            Err(failure) => {
                let read = orders.iter().map(Order::name);
                let unread = names[at..].iter().copied();
                return Err(failures.end_all(read.chain(unread), failure));
            }
        };
        match read {
            Ok(request) => orders.push(Order {
                path: Some(path.clone()),
                request,
                out: Some(out),
                options: JobOptions {
                    id: names[at].id.map(str::to_owned),
                    priority: args.priority,
                    deadline: args.deadline_s.map(Duration::from_secs),
                    ..JobOptions::default()
                },
            }),
            Err(failure) => failures.add_request(names[at], &failure),
        }
    }
    Ok(orders)
}

fn check_counts(args: &Prove) -> Result<(), Failure> {
    if args.request.len() != args.out.len() {
        return Err(Failure::input(format!(
            "--request is given {} time(s) and --out {}; each request needs an --out of its own",
            args.request.len(),
            args.out.len()
        )));
    }
    if !args.id.is_empty() && args.id.len() != args.request.len() {
        return Err(Failure::input(format!(
            "--id is given {} time(s) and --request {}; give one for each, or none",
            args.id.len(),
            args.request.len()
        )));
    }
    Ok(())
}

/// Proves the orders, writes the proofs, prints a report of each, and writes the timeline of
/// all. `failures` has the failures before. After a failure the other orders go on.
pub(crate) fn prove(
    context: &Context,
    orders: &[Order],
    Shown { drawing, verbose }: Shown<'_>,
    interrupt: &Interrupt,
    mut failures: Failures,
) -> Result<(), Failure> {
    let engine = match start(context, interrupt) {
        Ok(engine) => engine,
        Err(failure) => return Err(failures.end_all(orders.iter().map(Order::name), failure)),
    };
    let mut batch = Batch::new(orders);
    if let Some(signal) = batch.prove(&engine, interrupt, &mut failures) {
        return Err(stopped::stop(context, engine, batch, drawing, signal));
    }
    let timeline = engine.timeline().clone();
    engine.shutdown();
    let spans = timeline.spans();
    let reports = Reports::new(&timeline, &spans, orders, verbose);
    for proved in batch.proved() {
        if let Err(failure) = reports.print(context.json, &proved) {
            failures.add(&failure);
        }
    }
    let drawn = drawing.map(|drawing| drawing.write(&spans, timeline.names(), &batch.title()));
    if let Some(Err(failure)) = drawn {
        failures.add(&failure);
    }
    failures.end()
}

/// Starts the engine, unless a signal comes.
fn start(context: &Context, interrupt: &Interrupt) -> Result<Engine, Failure> {
    let config = context.config.clone();
    let left = || "the engine has not started, and nothing is proved".to_owned();
    // A journal is checked first, which may take long.
    let start = interrupt.unless_it_comes("starting", left, || Engine::start(config));
    Ok(for_one_command(start??))
}
