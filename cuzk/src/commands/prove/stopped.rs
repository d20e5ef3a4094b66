//! The end of jobs after a signal. Finished proofs are written. Jobs of the journal are
//! left to the same command, given again.
//!
//! Not a handler: the command looks for a signal and calls this. The invariant: it ends
//! in bounded time, whatever the engine does.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use cuzk_core::job::JobHandle;
use cuzk_core::{Engine, Error};

use super::batch::{Batch, End, Entry, Proved, State};
use super::order::Order;
use super::report::Reports;
use crate::commands::Context;
use crate::failure::Failure;
use crate::failure_report::report_of;
use crate::output::shown;
use crate::signal::Signal;
use crate::threads;
use crate::timeline::Drawing;

/// The longest wait for the engine's end after a signal. A partition stops within
/// milliseconds; a circuit that is being compiled does not.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// The fate of a request.
enum Fate {
    Proved(JobHandle, End),
    /// It was not proved, or its proof was not written, because the signal came.
    Stopped(String),
    Failed(Failure),
}

/// Ends the engine, and writes the timeline. Reports the fate of each request that was not
/// reported yet; with `--json` each has its object.
pub(super) fn stop(
    context: &Context,
    engine: Engine,
    batch: Batch<'_>,
    drawing: Option<&Drawing>,
    signal: Signal,
) -> Failure {
    let timeline = engine.timeline().clone();
    let (title, orders) = (batch.title(), batch.orders);
    let rest = end(engine, batch);
    let spans = timeline.spans();
    let reports = Reports::new(&timeline, &spans, orders, false);
    let journal = context.config.jobs.journal.as_deref();
    let mut lines = Vec::new();
    for (entry, end) in rest {
        let order = entry.order;
        let report_failure = |failure: &Failure| {
            if context.json {
                report_of(failure, order.name());
            }
        };
        match fate(entry, end, journal) {
            None => {}
            Some(Fate::Proved(job, end)) => {
                lines.push(proved(order, &job));
                let printed = Proved::new(order, &job, &end)
                    .filter(|_| context.json)
                    .map(|proved| reports.print(true, &proved));
                if let Some(Err(failure)) = printed {
                    lines.push(failure.to_string());
                }
            }
            Some(Fate::Stopped(line)) => {
                report_failure(&Failure::stopped(signal, &line));
                lines.push(line);
            }
            Some(Fate::Failed(failure)) => {
                report_failure(&failure);
                lines.push(failure.to_string());
            }
        }
    }
    let written = drawing.map(|drawing| drawing.write(&spans, timeline.names(), &title));
    if let Some(Err(failure)) = written {
        lines.push(format!("no timeline: {failure}"));
    }
    Failure::stopped(signal, lines.join("\n")).reported()
}

/// Ends the engine. Waits for that, and for proofs to be written, for `STOP_LIMIT` at
/// most.
fn end<'a>(engine: Engine, batch: Batch<'a>) -> Vec<(Entry<'a>, Option<End>)> {
    let until = Instant::now() + STOP_LIMIT;
    let (end, ended) = mpsc::channel();
    let ends = threads::start("cuzk-stops", move || {
        drop(engine.shutdown_within(Duration::ZERO));
        // The receiver is gone if it took too long.
        end.send(()).ok();
    });
    // Without a thread the engine has been dropped by now, which ends it, too.
    ends.ok();
    let rest = batch.rest(STOP_LIMIT);
    let left = until.saturating_duration_since(Instant::now());
    ended.recv_timeout(left).ok();
    rest
}

/// Returns the fate of a request after a signal; none if it was reported before.
fn fate(entry: Entry<'_>, end: Option<End>, journal: Option<&Path>) -> Option<Fate> {
    let order = entry.order;
    let name = order.name_of(entry.job());
    let not_written = format!("{name}: proved, but not written");
    match (entry.state, end) {
        (State::Failed(_), _) => None,
        (State::Proved(job, end), _) => Some(Fate::Proved(job, end)),
        (State::Waits, _) => Some(Fate::Stopped(
            match journal.and(order.options.id.as_ref()) {
                Some(_) => format!("{name}: not begun; give the same command again to prove it"),
                None => format!("{name}: not begun, and nothing of it is kept"),
            },
        )),
        (State::Runs(job), Some(end)) if end.is_good() => Some(Fate::Proved(job, end)),
        (State::Runs(job), Some(end)) => Some(match (end.outcome, end.written) {
            (Err(error), _) if matches!(*error, Error::ShuttingDown) => {
                Fate::Stopped(left(order, &job, journal))
            }
            (Err(error), _) => Fate::Failed(Failure::from(error).of(name)),
            (Ok(_), written) => Fate::Failed(written.err()?.of(not_written)),
        }),
        (State::Runs(job), None) => Some(Fate::Stopped(match job.poll() {
            Some(Ok(_)) => not_written,
            _ => left(order, &job, journal),
        })),
    }
}

/// Describes the file of a proof.
fn proved(order: &Order, job: &JobHandle) -> String {
    let name = order.name_of(Some(job));
    match &order.out {
        Some(out) => format!("{name}: proved, {}", shown(out.path())),
        None => format!("{name}: proved, and the proof is not kept, because --out names no file"),
    }
}

/// Describes the state of a job that was not proved.
fn left(order: &Order, job: &JobHandle, journal: Option<&Path>) -> String {
    let name = order.name_of(Some(job));
    let progress = job.progress();
    let partitions = format!(
        "{} of {} partitions are proved",
        progress.partitions_done, progress.partitions
    );
    match journal {
        Some(journal) if job.id().is_some() => format!(
            "{name}: {partitions} and kept in {}; give the same command again to prove the rest",
            shown(journal)
        ),
        _ if order.path.is_none() => format!("{name}: {partitions}, and nothing of it is kept"),
        _ => format!(
            "{name}: {partitions}, and nothing of it is kept; name a journal in [jobs] and give \
             the request an --id to go on where it stopped"
        ),
    }
}
