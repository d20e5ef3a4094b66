//! Jobs that wait in the journal, and go on after a restart.

use cuzk_journal::End;

use super::super::disk::Trouble;
use super::*;
use crate::Error;
use crate::engine::jobs::waiting::WaitingJob;
use crate::engine::workers::resume::{end_unresumed, resume_if_readable};

impl Case {
    /// Takes the next job out of the journal.
    fn take(&self) -> WaitingJob {
        self.core().jobs.waiting.take(|_| true).unwrap()
    }

    /// Goes on with a job; none if the journal cannot be read now.
    fn resume(&self, waiting: &WaitingJob, is_logged: &mut bool) -> Option<Result<()>> {
        let journal = &*self.life.recorder.journal;
        resume_if_readable(self.core(), journal, waiting, is_logged)
    }

    fn trouble(&self, trouble: Trouble) {
        self.disk.lock().trouble = trouble;
    }
}

/// An engine after a restart, with a job in the journal.
fn restarted(partitions: usize) -> Case {
    let mut case = Case::new(1, false);
    let submit = || case.submit(request(POREP, partitions), waits("a")).unwrap();
    let lines = logged(|| drop(submit()));
    assert!(lines.contains("the job is accepted"), "{lines}");
    let lines = logged(|| case.kill());
    assert!(!lines.contains("were changed"), "{lines}");
    case
}

#[test]
fn a_job_waits_while_the_journal_cannot_be_read() {
    let case = restarted(2);
    let next = case.take();
    assert_eq!(next.job.id(), Some("a"));
    case.trouble(Trouble::Torn);
    let mut is_logged = false;
    let beats = || case.core().dispatch.heartbeat.count();
    let before = beats();
    let lines = logged(|| {
        for _ in 0..3 {
            assert!(case.resume(&next, &mut is_logged).is_none());
        }
    });
    assert!(is_logged);
    assert_eq!(
        lines.matches("a job waits for the journal").count(),
        1,
        "{lines}"
    );
    assert!(beats() >= before + 3, "each is a sign of life");
    assert!(case.waiting().is_empty() && !next.job.has_ended());
    case.trouble(Trouble::None);
    case.resume(&next, &mut is_logged).unwrap().unwrap();
    assert_eq!(case.waiting().len(), 2);
    case.work();
    assert!(next.job.outcome().unwrap().is_ok());
    let end = case.disk.row("a").unwrap().end;
    assert!(matches!(end, Some(End::Done(proof)) if proof.len() == 2 * 192));
}

#[test]
fn a_proof_that_is_kept_is_not_made_again() {
    let mut case = Case::new(1, false);
    let job = case.submit(request(POREP, 2), waits("a")).unwrap();
    case.make_ready(1);
    let finishing = case.start(0, Deed::Prove).unwrap();
    assert!(case.finish(finishing));
    assert_eq!(job.progress().partitions_done, 1);
    let row = case.disk.row("a").unwrap();
    assert_eq!(
        row.finished.into_iter().collect::<Vec<_>>(),
        [(0, case.proof_bytes(0))]
    );
    case.kill();
    let next = case.take();
    case.resume(&next, &mut false).unwrap().unwrap();
    assert_eq!(case.waiting(), [(next.job.number(), 1, Lane::Common)]);
    assert_eq!(next.job.progress().partitions_done, 1);
    case.work();
    assert!(next.job.outcome().unwrap().is_ok());
    case.kill();
    assert!(!case.core().jobs.waiting.any(|_| true), "it has ended");
    let again = case.submit(request(POREP, 2), waits("a")).unwrap();
    assert!(
        again.outcome().unwrap().is_ok(),
        "its proof is in the journal"
    );
}

#[test]
fn a_proof_in_the_journal_is_verified_before_it_counts() {
    let mut case = Case::new(1, false);
    case.submit(request(POREP, 2), waits("a")).unwrap();
    let other = case.proof_bytes(1);
    case.disk
        .lock()
        .rows
        .get_mut("a")
        .unwrap()
        .finished
        .insert(0, other);
    case.kill();
    let next = case.take();
    let lines = logged(|| case.resume(&next, &mut false).unwrap().unwrap());
    assert!(lines.contains("a partition is proved again"), "{lines}");
    assert_eq!(next.job.progress().partitions_done, 0);
    assert_eq!(case.waiting().len(), 2);
}

#[test]
fn a_job_that_is_over_is_not_read_again() {
    let case = restarted(1);
    let next = case.take();
    // Nothing of it is read.
    case.trouble(Trouble::Torn);
    assert!(case.core().end(&next.job, Error::Cancelled));
    assert!(case.resume(&next, &mut false).unwrap().is_ok());
    assert!(case.waiting().is_empty());
}

#[test]
fn a_job_whose_deadline_passed_in_the_journal_is_late() {
    let mut case = Case::new(1, false);
    let deadline = Some(Duration::from_secs(60));
    let options = JobOptions {
        deadline,
        ..waits("a")
    };
    case.submit(request(POREP, 1), options).unwrap();
    case.pass(30);
    case.kill();
    let next = case.take();
    assert!(!next.job.deadline_has_passed());
    case.pass(30);
    case.trouble(Trouble::Torn);
    let late = case.resume(&next, &mut false).unwrap();
    assert!(matches!(late, Err(Error::DeadlinePassed)));
    end_unresumed(case.core(), &next.job, Ok(()));
    assert!(!next.job.has_ended(), "nothing went wrong");
    let lines = logged(|| end_unresumed(case.core(), &next.job, late));
    assert!(lines.contains("a job cannot be resumed"), "{lines}");
    let outcome = next.job.outcome().unwrap();
    assert!(matches!(*outcome.unwrap_err(), Error::DeadlinePassed));
}

#[test]
fn a_shutdown_ends_a_job_of_the_journal_without_a_complaint() {
    let case = restarted(1);
    let next = case.take();
    case.core().close();
    let refused = case.resume(&next, &mut false).unwrap();
    assert!(matches!(refused, Err(Error::ShuttingDown)));
    let lines = logged(|| end_unresumed(case.core(), &next.job, refused));
    assert!(!lines.contains("cannot be resumed"), "{lines}");
    assert!(next.job.has_ended());
    assert!(
        case.disk.row("a").unwrap().end.is_none(),
        "it goes on at the next start"
    );
}

/// The decoder of another version reads another job.
#[test]
fn a_request_that_reads_as_another_job_is_refused() {
    let case = restarted(2);
    let next = case.take();
    let other = request(POREP, 1).to_bytes();
    case.disk.lock().rows.get_mut("a").unwrap().request = other;
    let refused = case.resume(&next, &mut false).unwrap().unwrap_err();
    let circuit = id(POREP);
    let expected = format!("accepted as 2 partitions of {circuit} and reads as 1 of {circuit}");
    assert!(
        refused.is_input() && refused.to_string().contains(&expected),
        "{refused}"
    );
    assert!(case.waiting().is_empty());
}

/// A time in the future, as the wall clock can be set, is no wait.
#[test]
fn a_resumed_job_has_waited_since_it_was_accepted() {
    let mut case = Case::new(1, false);
    case.pass(1000);
    let job = case.submit(request(POREP, 1), waits("a")).unwrap();
    assert_eq!(job.accepted(), case.now.monotonic);
    case.pass(100);
    case.kill();
    let accepted = case.take().job.accepted();
    assert_eq!(case.now.monotonic - accepted, Duration::from_secs(100));
    case.now.wall -= Duration::from_secs(5000);
    case.pass(0);
    case.kill();
    let accepted = case.take().job.accepted();
    assert_eq!(accepted, case.now.monotonic, "not later than now");
}

#[test]
fn a_job_that_failed_is_proved_when_it_comes_again() {
    let mut case = Case::new(1, false);
    let job = case.submit(request(POREP, 1), waits("a")).unwrap();
    assert!(case.core().end(&job, Error::DeadlinePassed));
    let end = case.disk.row("a").unwrap().end;
    assert!(matches!(end, Some(End::Failed(_))));
    for is_restarted in [false, true] {
        if is_restarted {
            case.kill();
        }
        let again = case.submit(request(POREP, 1), waits("a")).unwrap();
        assert!(!Arc::ptr_eq(&again, &job) && !again.has_ended());
        assert!(case.disk.row("a").unwrap().end.is_none());
        case.core().end(&again, Error::Cancelled);
        let end = case.disk.row("a").unwrap().end;
        assert!(matches!(end, Some(End::Cancelled)));
    }
}

/// It is in the journal, and the job is made again.
#[test]
fn a_stored_proof_that_does_not_verify_is_made_again() {
    let mut case = Case::new(1, false);
    let job = case.submit(request(POREP, 2), waits("a")).unwrap();
    case.work();
    let proof = job.outcome().unwrap().unwrap().as_bytes().to_vec();
    let stored = |bytes: &[u8]| Some(End::Done(bytes.to_vec()));
    let swapped = [&proof[192..], &proof[..192]].concat();
    for (wrong, is_proved) in [
        (&proof[..], true),
        (&proof[..192], false),
        (&swapped[..], false),
    ] {
        case.disk.lock().rows.get_mut("a").unwrap().end = stored(wrong);
        case.kill();
        let again = case.submit(request(POREP, 2), waits("a")).unwrap();
        assert_eq!(again.has_ended(), is_proved);
        assert_eq!(case.waiting().len(), if is_proved { 0 } else { 2 });
    }
}
