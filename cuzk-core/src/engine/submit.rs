//! How a request becomes a job: its id, its decoding, its checks, its line in the
//! journal.
//!
//! Not the queue, which is in `ends`. The invariants: of a submission that fails
//! nothing stays, unless the journal's disk failed, and the process ends before it can
//! be written again; a job with an id is in the journal before anyone is told that it was
//! accepted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cuzk_scheduler::priority::{Priority, Rank};

use super::Engine;
use super::book::{Book, Line};
use super::journal::Submission;
use super::registry::{Begin, Digest};
use crate::job::{JobHandle, JobOptions, JobState, NewJob};
use crate::kinds::{Job, ProofKind, decode};
use crate::metrics::{self, Refusal};
use crate::request::ProofRequest;
use crate::timeline::Stage;
use crate::verify::VerifiedProof;
use crate::{Error, Result};

/// The kind in metrics of a request that was refused before anyone knew it.
const UNDECODED: &str = "undecoded";

impl Engine {
    /// Decodes and validates `request` and queues its partitions. It blocks meanwhile, and
    /// while the engine decodes what came before and is no less urgent: async code calls it
    /// where it may block.
    ///
    /// # Errors
    /// As [`Engine::submit_with`].
    pub fn submit(&self, request: &ProofRequest) -> Result<JobHandle> {
        self.submit_with(request, JobOptions::default())
    }

    /// The same, as `options` say. A job with an id that is known already is
    /// attached to if it has the same request and has not failed.
    ///
    /// # Errors
    /// Whatever is wrong with the request; missing parameters;
    /// [`Error::Conflict`] for an id that stands for another request;
    /// [`Error::TooLate`] for a deadline that cannot be met; [`Error::Busy`] when
    /// the queue is full; [`Error::TooManyPartitions`] for a job that it could never
    /// hold; [`Error::OverBudget`] where it is known already; [`Error::ShuttingDown`];
    /// [`Error::Journal`] for a job with an id that could not be kept. If its disk
    /// failed and the process ends before it can be written again, the next start may
    /// find the job and prove it; a submission of the id attaches to it then.
    pub fn submit_with(&self, request: &ProofRequest, options: JobOptions) -> Result<JobHandle> {
        // Only what has an id is compared and kept.
        let json = options.id.as_ref().map(|_| request.to_json());
        let json = json.unwrap_or_default();
        let priority = options
            .priority
            .unwrap_or_else(|| priority_of(request.kind()));
        let decode = || decode(request).map(Arc::from);
        let submitted = self.submit_decoding(&json, options, priority, decode);
        submitted.inspect_err(|error| metrics::job_refused(request.kind().name(), refusal(error)))
    }

    /// The same for the bytes of a request file, as
    /// [`ProofRequest::from_json`] takes them, or of whatever form the engine's
    /// decoder reads. Where the options name no priority, the order in which
    /// requests are decoded goes by what a look at them tells: a WinningPoSt in
    /// JSON comes first, everything else is [`Priority::Normal`] until then.
    ///
    /// # Errors
    /// As [`Engine::submit_with`].
    pub fn submit_bytes(&self, request: &[u8], options: JobOptions) -> Result<JobHandle> {
        let priority = options.priority.unwrap_or_else(|| {
            let kind = ProofRequest::peek_kind(request);
            kind.map_or(Priority::Normal, priority_of)
        });
        let decode = || (self.shared.decoder)(request);
        let submitted = self.submit_decoding(request, options, priority, decode);
        submitted.inspect_err(|error| metrics::job_refused(UNDECODED, refusal(error)))
    }

    fn submit_decoding(
        &self,
        request: &[u8],
        mut options: JobOptions,
        priority: Priority,
        decode: impl FnOnce() -> Result<Arc<dyn Job>> + Send,
    ) -> Result<JobHandle> {
        let shared = &self.shared;
        let digest = blake3::hash(request).into();
        let begun = match &options.id {
            Some(id) => shared.registry.begin(id, digest)?,
            None => Begin::Nameless,
        };
        if let Begin::Attached(state) = begun {
            return Ok(self.handle(state));
        }
        // Nothing is decoded that could not enter however small it is.
        shared.check_room(1)?;
        let number = shared.registry.next_number();
        let trace = shared.timeline.trace(number, None);
        let asked = Instant::now();
        let patience = shared.config.jobs.patience;
        let rank = Rank::new(priority, asked, number, patience);
        let turn = shared.decoding.enter(rank);
        trace.waited(Stage::DecodeWait, asked);
        let decode = || shared.decode(rank.is_critical(), decode);
        let job = trace.time(Stage::Decode, decode)?;
        drop(turn);
        let priority = options
            .priority
            .unwrap_or_else(|| priority_of(job.circuit().kind));
        options.priority = Some(priority);
        let rank = Rank::new(priority, asked, number, patience);
        let state = self.accept(job, options, number, rank, Some((digest, request)))?;
        if let Begin::New(place) = begun {
            place.take(Arc::clone(&state));
        }
        Ok(self.handle(state))
    }

    /// Queues the partitions of a job that was decoded elsewhere. Its id, if it
    /// has one, names it in messages; it is neither compared nor kept.
    ///
    /// # Errors
    /// As [`Engine::submit_with`], of a request that is right.
    pub fn submit_job(&self, job: Arc<dyn Job>, mut options: JobOptions) -> Result<JobHandle> {
        let kind = job.circuit().kind;
        let priority = options.priority.unwrap_or_else(|| priority_of(kind));
        let number = self.shared.registry.next_number();
        let patience = self.shared.config.jobs.patience;
        let rank = Rank::new(priority, Instant::now(), number, patience);
        options.priority = Some(priority);
        let state = self.accept(job, options, number, rank, None);
        let state = state.inspect_err(|error| metrics::job_refused(kind.name(), refusal(error)))?;
        Ok(self.handle(state))
    }

    /// Accepts a decoded job whose priority is decided; `kept` is its request, with
    /// its digest, where the journal may keep it.
    fn accept(
        &self,
        job: Arc<dyn Job>,
        options: JobOptions,
        number: u64,
        rank: Rank,
        kept: Option<(Digest, &[u8])>,
    ) -> Result<Arc<JobState>> {
        let shared = &self.shared;
        let circuit = job.circuit();
        let priority = options.priority.unwrap_or(Priority::Normal);
        self.check(&*job, priority, rank, options.deadline)?;
        let accepted = Instant::now();
        let deadline = options.deadline.and_then(|left| accepted.checked_add(left));
        let mut new = NewJob {
            number,
            id: options.id,
            circuit,
            partitions: job.partitions(),
            priority,
            rank,
            accepted,
            deadline,
            record: None,
        };
        let book = shared.book();
        let (done, is_new) = match (&book, kept) {
            (Some(book), Some(kept)) => self.keep(book, &mut new, &*job, kept, options.deadline)?,
            _ => (Vec::new(), false),
        };
        let state = Arc::new(JobState::new(new));
        state.set_input(job);
        shared.registry.live(&state);
        for (partition, proof) in done {
            shared.restore(&state, partition, proof);
        }
        // What an earlier life proved whole has ended by that.
        let queued = if state.has_ended() {
            Ok(())
        } else {
            shared.queue(&state)
        };
        if let Err(error) = queued {
            shared.registry.ended(&state);
            // Only what this submission wrote: another's job may have the id.
            if let (true, Some(book), Some(id)) = (is_new, &book, state.id()) {
                book.forget(id);
            }
            return Err(error);
        }
        metrics::job_accepted(circuit.kind.name());
        Ok(state)
    }

    /// What a job is refused for before anything is kept of it.
    fn check(
        &self,
        job: &dyn Job,
        priority: Priority,
        rank: Rank,
        deadline: Option<Duration>,
    ) -> Result<()> {
        let shared = &self.shared;
        let (circuit, partitions) = (job.circuit(), job.partitions());
        shared.check_partitions(partitions)?;
        shared.check_parameters(circuit)?;
        shared.check_memory(circuit, priority)?;
        if let Some(deadline) = deadline {
            shared.check_deadline(circuit, partitions, rank, deadline)?;
        }
        shared.check_room(partitions)
    }

    /// Puts a job that has an id into the journal, and has it recorded there. What an
    /// earlier life of the engine proved of it is returned, and whether it was not there.
    fn keep(
        &self,
        book: &Arc<Book>,
        new: &mut NewJob,
        job: &dyn Job,
        (digest, json): (Digest, &[u8]),
        deadline: Option<Duration>,
    ) -> Result<(Vec<(usize, VerifiedProof)>, bool)> {
        let Some(id) = &new.id else {
            return Ok((Vec::new(), false));
        };
        let submission = Submission {
            id,
            digest,
            json,
            job,
            priority: new.priority,
            deadline,
        };
        let done = self.shared.keep(book, &submission)?;
        new.record = Some(Arc::new(Line::new(Arc::clone(book), id.clone())));
        Ok(done)
    }
}

/// What a refused job counts as.
fn refusal(error: &Error) -> Refusal {
    match error {
        Error::Params(_) => Refusal::MissingParameters,
        Error::Conflict { .. } => Refusal::Conflict,
        error if error.is_busy() => Refusal::Busy,
        Error::OverBudget(_) => Refusal::Memory,
        Error::TooLate { .. } => Refusal::Deadline,
        Error::ShuttingDown => Refusal::ShuttingDown,
        error if error.is_input() => Refusal::Invalid,
        _ => Refusal::Internal,
    }
}

/// What is late costs: WinningPoSt a block, WindowPoSt a penalty.
fn priority_of(kind: ProofKind) -> Priority {
    match kind {
        ProofKind::WinningPost => Priority::Critical,
        ProofKind::WindowPost => Priority::High,
        ProofKind::Porep | ProofKind::SnapDeals => Priority::Normal,
    }
}
