//! `cuzk prove --request FILE --out PROOF`, as many of both as one likes: one engine
//! proves them side by side.
//!
//! The invariant: each request has its own end. An error is reported as soon as it is
//! known, under the request's name. Each proof is written when its own job ends. With
//! `--json` each request has one object: the report of its proof, or its failure. A signal
//! is a failure too.
//!
//! SIGINT or SIGTERM stops what runs at its next chunk; see [`stopped`].

mod batch;
mod report;
mod stopped;

use std::path::{Path, PathBuf};
use std::time::Duration;

use cuzk_core::job::JobOptions;
use cuzk_core::{Engine, ProofRequest};

use self::batch::Batch;
use self::report::Reports;
use super::{Context, read_request};
use crate::args::Prove;
use crate::failure::{Failure, Name, Said};
use crate::interrupt::Interrupt;
use crate::place::Place;
use crate::timeline::Drawing;

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
    fn name(&self) -> Name<'_> {
        Name::new(self.path.as_deref(), self.options.id.as_deref())
    }

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
    let orders = read(args, outs, &interrupt, &mut said)?;
    if orders.is_empty() {
        return said.end();
    }
    prove(context, &orders, drawing.as_ref(), &interrupt, said)
}

/// Reads the requests. Reports the error of each bad one; a signal ends all of them.
fn read(
    args: &Prove,
    outs: Vec<Place>,
    interrupt: &Interrupt,
    said: &mut Said,
) -> Result<Vec<Order>, Failure> {
    let ids = args.id.iter().map(|id| Some(id.as_str()));
    let ids = ids.chain(std::iter::repeat(None));
    let names = args.request.iter().zip(ids);
    let names: Vec<_> = names.map(|(path, id)| Name::new(Some(path), id)).collect();
    let mut orders: Vec<Order> = Vec::new();
    for (at, (path, out)) in args.request.iter().zip(outs).enumerate() {
        let left = format!("{} was not read, and nothing is proved", path.display());
        let file = path.clone();
        // It may be a pipe into which nobody writes.
        let read = match interrupt.unless_it_comes("reading", left, move || read_request(&file)) {
            Ok(read) => read,
            Err(failure) => {
                let read = orders.iter().map(Order::name);
                let unread = names[at..].iter().copied();
                return Err(said.end_all(read.chain(unread), failure));
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
                },
            }),
            Err(failure) => said.add_request(names[at], &failure),
        }
    }
    Ok(orders)
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
    let engine = match start(context, interrupt) {
        Ok(engine) => engine,
        Err(failure) => return Err(said.end_all(orders.iter().map(Order::name), failure)),
    };
    let mut batch = Batch::new(orders);
    if let Some(signal) = batch.prove(&engine, interrupt, &mut said) {
        return Err(stopped::stop(context, engine, batch, drawing, signal));
    }
    let timeline = engine.timeline().clone();
    engine.shutdown();
    let spans = timeline.spans();
    let reports = Reports::new(&timeline, &spans, orders);
    for proved in batch.proved() {
        if let Err(failure) = reports.print(context.json, &proved) {
            said.add(&failure);
        }
    }
    let drawn = drawing.map(|drawing| drawing.write(&spans, &batch.title()));
    if let Some(Err(failure)) = drawn {
        said.add(&failure);
    }
    said.end()
}

/// Starts the engine, unless a signal comes.
fn start(context: &Context, interrupt: &Interrupt) -> Result<Engine, Failure> {
    let config = context.config.clone();
    let left = "the engine has not started, and nothing is proved";
    // A journal is checked first, which takes its time.
    let start = interrupt.unless_it_comes("starting", left, || Engine::start(config));
    Ok(start??)
}

/// A file's name, as reports have it.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
