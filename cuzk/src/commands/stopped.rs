//! What a signal leaves of jobs: what is proved is written, what the journal knows is left
//! to the same command, given again.
//!
//! Not a handler: the command looks for a signal and calls this. The invariant: it ends
//! in bounded time, whatever the engine does.

use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cuzk_core::job::JobHandle;
use cuzk_core::{Engine, Error};

use super::prove::{Order, title};
use super::timeline::TimelineFile;
use super::{Context, write};
use crate::failure::Failure;
use crate::interrupt::Signal;

/// How long a signal waits for the engine's end. A partition stops within
/// milliseconds; a circuit that is being compiled does not.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Ends the engine, and writes what was proved and when everything ran. What becomes of
/// the rest.
pub(super) fn stop(
    context: &Context,
    engine: Engine,
    jobs: &[JobHandle],
    orders: &[Order],
    timeline_file: Option<&TimelineFile>,
    signal: Signal,
) -> Failure {
    let timeline = engine.timeline().clone();
    let (end, ended) = mpsc::channel();
    thread::spawn(move || {
        drop(engine.shutdown_within(Duration::ZERO));
        // Nobody listens any more if it took too long.
        end.send(()).ok();
    });
    ended.recv_timeout(STOP_LIMIT).ok();
    let journal = context.config.jobs.journal.as_deref();
    let each = jobs.iter().zip(orders);
    let each = each.map(|(job, order)| what_became_of(job, order.out.as_deref(), journal));
    let mut lines: Vec<_> = each.collect();
    let written = timeline_file.map(|file| file.write(&timeline.spans(), &title(jobs)));
    if let Some(Err(failure)) = written {
        lines.push(format!("no timeline: {failure}"));
    }
    Failure::stopped(signal, lines.join("\n"))
}

/// A line on what a signal left of a job. Its proof, if it has one, is written.
fn what_became_of(job: &JobHandle, out: Option<&Path>, journal: Option<&Path>) -> String {
    let name = job
        .id()
        .map_or_else(|| job.circuit().to_string(), str::to_owned);
    let progress = job.progress();
    let partitions = format!(
        "{} of {} partitions are proved",
        progress.partitions_done, progress.partitions
    );
    match (job.poll(), out, journal) {
        (Some(Ok(proof)), Some(out), _) => match write(out, proof.as_bytes()) {
            Ok(()) => format!("{name}: proved, {}", out.display()),
            Err(failure) => format!("{name}: proved, but {failure}"),
        },
        (Some(Err(error)), ..) if !matches!(*error, Error::ShuttingDown) => {
            format!("{name}: {error}")
        }
        (_, _, Some(journal)) if job.id().is_some() => format!(
            "{name}: {partitions} and kept in {}; give the same command again to prove the rest",
            journal.display()
        ),
        _ => format!(
            "{name}: {partitions}, and nothing of it is kept; name a journal in [jobs] and give \
             the request an --id to go on where it stopped"
        ),
    }
}
