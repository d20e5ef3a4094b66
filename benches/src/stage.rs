//! One stage of a proof on several numbers of threads, beside a peer that does
//! the same work on all cores.

use crate::{
    Result,
    mode::{Mode, thread_counts},
    plot::{self, Line},
    study::{Study, time},
    table,
};
use criterion::Criterion;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::time::Duration;

/// Work that can be repeated.
pub type Work<'a> = Box<dyn FnMut() -> Result<()> + Send + 'a>;

/// A stage at one size.
pub struct Stage<'a> {
    /// Criterion's group and the first column of the table.
    pub name: String,
    /// Ours, which runs on rayon's current pool.
    pub ours: Box<dyn Fn() -> Work<'a> + 'a>,
    /// The name of the peer that does the same work, and its work.
    pub peer: (&'static str, Work<'a>),
}

impl Stage<'_> {
    /// Runs ours on 1, 2, … all cores and the peer, in turns; returns the rows
    /// of [`print()`].
    ///
    /// # Errors
    /// The first of either's errors.
    pub fn bench(
        self,
        criterion: &mut Criterion,
        mode: Mode,
        rounds: usize,
    ) -> Result<Vec<Vec<String>>> {
        let Stage {
            name,
            ours,
            peer: (peer_name, mut peer),
        } = self;
        let mut study = Study::new();
        let peer = study.arm(peer_name, move || timed(&mut peer));
        let mut arms = Vec::new();
        for threads in thread_counts() {
            let pool = pool(threads)?;
            let mut work = ours();
            let arm = study.arm(format!("ours/{threads} threads"), move || {
                pool.install(|| timed(&mut work))
            });
            arms.push((threads, arm));
        }
        study.bench(criterion, &name, mode, rounds)?;
        draw(&name, peer_name, &study, peer, &arms)?;
        let seconds = |wall: &Duration| wall.as_secs_f64();
        let row = |&(threads, arm): &(usize, usize)| {
            vec![
                name.clone(),
                threads.to_string(),
                table::figure(study.median_s(arm), table::seconds),
                peer_name.to_owned(),
                table::figure(study.median_s(peer), table::seconds),
                table::figure(study.ratio(peer, arm, seconds), table::times),
            ]
        };
        Ok(arms.iter().map(row).collect())
    }
}

fn pool(threads: usize) -> Result<ThreadPool> {
    Ok(ThreadPoolBuilder::new().num_threads(threads).build()?)
}

fn timed(work: &mut Work<'_>) -> Result<Duration> {
    let (result, wall) = time(work);
    result.map(|()| wall)
}

fn draw(
    name: &str,
    peer_name: &str,
    study: &Study<'_, Duration>,
    peer: usize,
    arms: &[(usize, usize)],
) -> Result<()> {
    let line = |name: &str, of: &dyn Fn(usize) -> Option<f64>| Line {
        name: name.to_owned(),
        points: (arms.iter())
            .filter_map(|&(threads, arm)| Some((threads as f64, of(arm)?)))
            .collect(),
    };
    let lines = [
        line("ours", &|arm| study.median_s(arm)),
        line(&format!("{peer_name}, all cores"), &|_| {
            study.median_s(peer)
        }),
    ];
    plot::draw(&name.replace(['/', ' '], "-"), name, "seconds", &lines)
}

/// Prints what [`Stage::bench`] returned.
pub fn print(rows: &[Vec<String>]) {
    table::print(
        "medians; the peer uses all cores; `ratio` is the peer's time by ours",
        &["stage", "threads", "ours", "peer", "peer's", "ratio"],
        rows,
    );
}

/// An error unless the two sides came to the same.
///
/// # Errors
/// If they did not.
pub fn agree(same: bool, what: &str) -> Result<()> {
    if same {
        Ok(())
    } else {
        Err(format!("{what}: ours and the peer's differ").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn ours_runs_on_each_number_of_threads() {
        let seen = AtomicUsize::new(0);
        let stage = Stage {
            name: "stage".to_owned(),
            ours: Box::new(|| {
                Box::new(|| {
                    seen.fetch_add(rayon::current_num_threads(), Ordering::SeqCst);
                    Ok(())
                })
            }),
            peer: ("peer", Box::new(|| Ok(()))),
        };
        // Nothing is shown to criterion when a run only lists.
        let mut criterion = Criterion::default().with_filter("none of them");
        let rows = stage.bench(&mut criterion, Mode::Smoke, 3).unwrap();
        assert_eq!(rows.len(), thread_counts().len());
        let threads: usize = thread_counts().iter().sum();
        assert_eq!(seen.load(Ordering::SeqCst), threads);
    }

    #[test]
    fn disagreement_is_an_error() {
        assert!(agree(true, "sums").is_ok());
        assert!(agree(false, "sums").is_err());
    }
}
