//! What a signal leaves of jobs: what is proved is written, what the journal knows is left
//! to the same command, given again.
//!
//! Not a handler: the command looks for a signal and calls this. The invariant: it ends
//! in bounded time, whatever the engine does.

use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use cuzk_core::job::JobHandle;
use cuzk_core::{Engine, Error};

use super::batch::{Batch, End, Entry, State};
use super::{Order, shown};
use crate::commands::Context;
use crate::commands::timeline::Drawing;
use crate::failure::Failure;
use crate::interrupt::Signal;

/// How long a signal waits for the engine's end. A partition stops within
/// milliseconds; a circuit that is being compiled does not.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Ends the engine, and writes when everything ran. What became of each request whose end
/// was not said yet.
pub(super) fn stop(
    context: &Context,
    engine: Engine,
    batch: Batch<'_>,
    drawing: Option<&Drawing>,
    signal: Signal,
) -> Failure {
    let timeline = engine.timeline().clone();
    let title = batch.title();
    let until = Instant::now() + STOP_LIMIT;
    let (end, ended) = mpsc::channel();
    thread::spawn(move || {
        drop(engine.shutdown_within(Duration::ZERO));
        // Nobody listens any more if it took too long.
        end.send(()).ok();
    });
    let rest = batch.rest(STOP_LIMIT);
    let left = until.saturating_duration_since(Instant::now());
    ended.recv_timeout(left).ok();
    let journal = context.config.jobs.journal.as_deref();
    let each = rest.into_iter();
    let mut lines: Vec<_> = each
        .filter_map(|(entry, end)| what_became_of(&entry, end, journal))
        .collect();
    let written = drawing.map(|drawing| drawing.write(&timeline.spans(), &title));
    if let Some(Err(failure)) = written {
        lines.push(format!("no timeline: {failure}"));
    }
    Failure::stopped(signal, lines.join("\n"))
}

/// A line on what a signal left of a request.
fn what_became_of(entry: &Entry<'_>, end: Option<End>, journal: Option<&Path>) -> Option<String> {
    let order = entry.order;
    let name = name(order, entry.job());
    let proved = || match &order.out {
        Some(out) => format!("{name}: proved, {}", out.path().display()),
        None => format!("{name}: proved"),
    };
    match (&entry.state, end) {
        (State::Failed(_), _) => None,
        (State::Proved(..), _) => Some(proved()),
        (State::Waits, _) => Some(match journal.and(order.options.id.as_ref()) {
            Some(_) => format!("{name}: not begun; give the same command again to prove it"),
            None => format!("{name}: not begun, and nothing of it is kept"),
        }),
        (State::Runs(job), Some(end)) => Some(match (end.outcome, end.kept) {
            (Err(error), _) if matches!(*error, Error::ShuttingDown) => left(order, job, journal),
            (Err(error), _) => format!("{name}: {error}"),
            (Ok(_), Err(failure)) => format!("{name}: proved, but {failure}"),
            (Ok(_), Ok(())) => proved(),
        }),
        (State::Runs(job), None) => Some(match job.poll() {
            Some(Ok(_)) => format!("{name}: proved, but not written"),
            _ => left(order, job, journal),
        }),
    }
}

/// What is left of a job that was not proved.
fn left(order: &Order, job: &JobHandle, journal: Option<&Path>) -> String {
    let name = name(order, Some(job));
    let progress = job.progress();
    let partitions = format!(
        "{} of {} partitions are proved",
        progress.partitions_done, progress.partitions
    );
    match journal {
        Some(journal) if job.id().is_some() => format!(
            "{name}: {partitions} and kept in {}; give the same command again to prove the rest",
            journal.display()
        ),
        _ if order.path.is_none() => format!("{name}: {partitions}, and nothing of it is kept"),
        _ => format!(
            "{name}: {partitions}, and nothing of it is kept; name a journal in [jobs] and give \
             the request an --id to go on where it stopped"
        ),
    }
}

/// What a request is called: as the caller does, else by its file.
fn name(order: &Order, job: Option<&JobHandle>) -> String {
    let id = order.options.id.clone();
    id.or_else(|| order.path.as_deref().map(shown))
        .or_else(|| job.map(|job| job.circuit().to_string()))
        .unwrap_or_else(|| order.request.kind().to_string())
}
