//! `cuzk prove --request FILE --out PROOF`, as many of both as one likes: one engine
//! proves them side by side.
//!
//! The invariant: each request has its own end. What is wrong with one is said when it is
//! known, under the request's name, and each proof is written when its own job ends. With
//! `--json` each has one object: the report of its proof, or what failed.
//!
//! SIGINT or SIGTERM stops what runs at its next chunk; see [`stopped`].

mod batch;
mod report;
mod stopped;

use std::path::{Path, PathBuf};
use std::time::Duration;

use cuzk_core::job::JobOptions;
use cuzk_core::timeline::device_use;
use cuzk_core::{Engine, ProofRequest};

use self::batch::Batch;
use self::report::ProveReport;
use super::timeline::Drawing;
use super::{Context, read_request};
use crate::args::Prove;
use crate::failure::{Failure, Said};
use crate::interrupt::Interrupt;
use crate::output;
use crate::place::Place;

/// A request, where its proof goes, and how it is to be treated.
#[derive(Debug)]
pub(crate) struct Order {
    /// The request's file, if it came from one.
    pub(crate) path: Option<PathBuf>,
    pub(crate) request: ProofRequest,
    pub(crate) out: Option<Place>,
    pub(crate) options: JobOptions,
}

impl Order {
    /// `failure`, of this request.
    fn failed(&self, failure: Failure) -> Failure {
        match &self.path {
            Some(path) => failure.of(path.display()),
            None => failure,
        }
    }
}

pub(crate) fn run(context: &Context, args: &Prove) -> Result<(), Failure> {
    check_counts(args)?;
    let outs = args.out.iter().map(|out| Place::new(out));
    let outs = outs.collect::<Result<Vec<_>, _>>()?;
    let drawing = args.timeline.as_ref().map(Drawing::new).transpose()?;
    let places = outs.iter().chain(drawing.as_ref().map(Drawing::place));
    Place::check_distinct(places.clone())?;
    Place::check_no_request(places, &args.request)?;
    let interrupt = Interrupt::watch()?;
    let mut said = Said::new(context.json);
    let ids = args.id.iter().cloned().map(Some);
    let ids = ids.chain(std::iter::repeat(None));
    let mut orders = Vec::new();
    for ((path, out), id) in args.request.iter().zip(outs).zip(ids) {
        let options = JobOptions {
            id,
            priority: args.priority,
            deadline: args.deadline_s.map(Duration::from_secs),
        };
        let left = format!("{} was not read, and nothing is proved", path.display());
        let file = path.clone();
        // It may be a pipe into which nobody writes.
        match interrupt.unless_it_comes("reading", left, move || read_request(&file))? {
            Ok(request) => orders.push(Order {
                path: Some(path.clone()),
                request,
                out: Some(out),
                options,
            }),
            Err(failure) => said.add_request(Some(path), options.id.as_deref(), &failure),
        }
    }
    if orders.is_empty() {
        return said.end();
    }
    prove(context, &orders, drawing.as_ref(), &interrupt, said)
}

fn check_counts(args: &Prove) -> Result<(), Failure> {
    if args.request.len() != args.out.len() {
        return Err(Failure::input(format!(
            "--request is given {} time(s) and --out {}: each request needs an --out of its own",
            args.request.len(),
            args.out.len()
        )));
    }
    if !args.id.is_empty() && args.id.len() != args.request.len() {
        return Err(Failure::input(format!(
            "--id is given {} time(s) and --request {}: give one for each, or none",
            args.id.len(),
            args.request.len()
        )));
    }
    Ok(())
}

/// Proves what is ordered, keeps the proofs, prints a report each, and writes the
/// timeline of all; `said` is what failed before. Whatever fails, the rest goes on.
pub(crate) fn prove(
    context: &Context,
    orders: &[Order],
    drawing: Option<&Drawing>,
    interrupt: &Interrupt,
    mut said: Said,
) -> Result<(), Failure> {
    let config = context.config.clone();
    let left = "the engine has not started, and nothing is proved";
    // A journal is checked first, which takes its time.
    let start = interrupt.unless_it_comes("starting", left, || Engine::start(config));
    let engine = start??;
    let mut batch = Batch::new(orders);
    if let Some(signal) = batch.prove(&engine, interrupt, &mut said) {
        return Err(stopped::stop(context, engine, batch, drawing, signal));
    }
    let timeline = engine.timeline().clone();
    engine.shutdown();
    let spans = timeline.spans();
    let devices = device_use(&spans);
    let is_stdout = |order: &Order| order.out.as_ref().is_some_and(Place::is_stdout);
    let is_stdout = orders.iter().any(is_stdout);
    for proved in batch.proved() {
        let report = ProveReport::new(&proved, &timeline, &devices);
        if let Err(failure) = output::print_beside(is_stdout, context.json, &report, report::text) {
            said.add(&failure);
        }
    }
    let drawn = drawing.map(|drawing| drawing.write(&spans, &batch.title()));
    if let Some(Err(failure)) = drawn {
        said.add(&failure);
    }
    said.end()
}

/// A file's name, as reports have it.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
