//! A thread that asks sources for bytes and writes them into the files.
//!
//! The invariant: before bytes are written, the claim is asked how many of them are still
//! its own. So the bytes of a source that is slow or out never replace those of another.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Instant;

use crate::Outcome;
use crate::remote::{BUFFER_BYTES, Refusal, Stream};
use crate::schedule::{Job, Next, is_only_source, next};
use crate::shared::Shared;
use crate::state::State;

/// The bytes of a claim after which they are recorded, although it goes on.
const RECORD_BYTES: u64 = 16 << 20;

/// The reason for which a job ends before its range.
enum End {
    /// Its bytes are another's, or the run is over.
    Taken,
    /// The source failed.
    Refused(Refusal),
    /// The file cannot be written.
    Disk(io::Error),
}

/// Asks sources until the run is over.
pub(crate) fn work(shared: &Shared) {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let mut state = shared.state();
        if !state.is_ready && !state.is_over() {
            drop(shared.wait(state, shared.options.patience));
            continue;
        }
        let mut began = shared.began();
        let found = next(
            &mut state,
            &mut began,
            shared.options.range_bytes,
            Instant::now(),
        );
        drop(began);
        match found {
            Next::End => return,
            Next::Wait(time) => drop(shared.wait(state, time)),
            Next::Job(job) => {
                drop(state);
                let started = Instant::now();
                let ended = fetch(shared, &job, &mut buffer);
                finish(shared, &job, started, ended);
            }
        }
    }
}

/// Fetches the bytes of a job, as far as they stay its own.
fn fetch(shared: &Shared, job: &Job, buffer: &mut [u8]) -> Result<(), End> {
    let state = shared.state();
    let file = &state.files[job.file];
    let (Some(opened), Some(source)) = (&file.opened, state.sources[job.source].source.clone())
    else {
        return Err(End::Taken);
    };
    let (listed, data) = (file.listed.clone(), Arc::clone(&opened.data));
    drop(state);
    let client = &shared.client;
    let stream = client.stream(&source, &listed, job.range.clone(), job.length);
    let Stream {
        mut reader,
        range,
        is_whole,
    } = stream.map_err(End::Refused)?;
    if is_whole {
        begin_whole(&mut shared.state(), job)?;
        skip(&mut reader, job.range.start, buffer)?;
    }
    copy(shared, job, &mut reader, &data, (range.end, buffer))
}

/// Records that a source sends a file as a whole only, and gives it all bytes behind its
/// claim. Fails if other sources should give them.
fn begin_whole(state: &mut State, job: &Job) -> Result<(), End> {
    let is_only = is_only_source(state, job.file, job.source);
    let file = &mut state.files[job.file];
    file.whole_only.insert(job.source);
    let opened = file.opened.as_mut().ok_or(End::Taken)?;
    let is_first = opened.ranges.claims().all(|(id, claim)| {
        id == job.claim || claim.source != job.source || claim.start > job.range.start
    });
    if !is_first || job.range.start > 0 && !is_only {
        return Err(End::Taken);
    }
    opened.ranges.extend(job.claim);
    Ok(())
}

/// Reads the bytes before the range of a job and drops them.
fn skip(reader: &mut dyn Read, bytes: u64, buffer: &mut [u8]) -> Result<(), End> {
    let mut left = bytes;
    while left > 0 {
        let some = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        match reader.read(&mut buffer[..some]) {
            Ok(0) => return Err(cut(&io::ErrorKind::UnexpectedEof.into())),
            Ok(read) => left -= read as u64,
            Err(error) => return Err(cut(&error)),
        }
    }
    Ok(())
}

/// Copies bytes into the file until the claim ends, or the source has sent all up to `end`.
fn copy(
    shared: &Shared,
    job: &Job,
    reader: &mut dyn Read,
    data: &File,
    (end, buffer): (u64, &mut [u8]),
) -> Result<(), End> {
    loop {
        let (position, left) = own_bytes(&shared.state(), job)?;
        if left == 0 || position >= end {
            // The end of the body frees the connection for the next request.
            let _ = position == end && reader.read(&mut buffer[..1]).is_ok();
            return Ok(());
        }
        let some = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = match reader.read(&mut buffer[..some]) {
            Ok(0) => return Err(cut(&io::ErrorKind::UnexpectedEof.into())),
            Ok(read) => read,
            Err(error) => return Err(cut(&error)),
        };
        let (position, allowed) = begin_write(&mut shared.state(), job, read)?;
        data.write_all_at(&buffer[..allowed], position)
            .map_err(End::Disk)?;
        end_write(&mut shared.state(), job)?;
        shared.tell_arrival();
    }
}

fn cut(error: &io::Error) -> End {
    let problem = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the connection was cut".to_owned(),
        _ => error.to_string(),
    };
    End::Refused(Refusal::Later(problem, None))
}

/// Returns the position of a job's claim, and how many bytes it still has.
fn own_bytes(state: &State, job: &Job) -> Result<(u64, u64), End> {
    let opened = state.files[job.file].opened.as_ref();
    let claim = opened.and_then(|opened| opened.ranges.get(job.claim));
    let claim = claim.filter(|_| !state.is_over() && state.is_usable(job.file, job.source));
    let claim = claim.ok_or(End::Taken)?;
    Ok((claim.position, claim.end - claim.position))
}

/// Returns the position at which the job may write now, and how many of `bytes` bytes.
fn begin_write(state: &mut State, job: &Job, bytes: usize) -> Result<(u64, usize), End> {
    let (position, _) = own_bytes(state, job)?;
    let opened = state.files[job.file].opened.as_mut().ok_or(End::Taken)?;
    let allowed = opened.ranges.write(job.claim, bytes as u64);
    match usize::try_from(allowed) {
        Ok(allowed) if allowed > 0 => Ok((position, allowed)),
        _ => Err(End::Taken),
    }
}

/// Counts the bytes that were written, unless the source was found to be wrong meanwhile.
fn end_write(state: &mut State, job: &Job) -> Result<(), End> {
    // A run that is over keeps what came.
    if !state.is_usable(job.file, job.source) {
        return Err(End::Taken);
    }
    let health = &mut state.sources[job.source];
    let opened = state.files[job.file].opened.as_mut().ok_or(End::Taken)?;
    let before = opened.ranges.get(job.claim).ok_or(End::Taken)?;
    opened.ranges.wrote(job.claim);
    let recorded = opened.recorded.get(&job.claim).copied();
    let claim = opened.ranges.get(job.claim).ok_or(End::Taken)?;
    health.fetched_bytes += claim.position - before.position;
    if claim.position - recorded.unwrap_or(claim.start) >= RECORD_BYTES {
        opened.record(job.claim, &health.name).map_err(End::Disk)?;
    }
    Ok(())
}

/// Ends the claim of a job.
fn finish(shared: &Shared, job: &Job, started: Instant, ended: Result<(), End>) {
    let mut guard = shared.state();
    let state = &mut *guard;
    shared.began().remove(&(job.file, job.claim));
    let name = state.sources[job.source].name.clone();
    let mut bytes = 0;
    let mut ended = ended;
    if let Some(opened) = &mut state.files[job.file].opened {
        if let Err(error) = opened.record(job.claim, &name) {
            ended = Err(End::Disk(error));
        }
        let claim = opened.ranges.get(job.claim);
        bytes = claim.map_or(0, |claim| claim.position - claim.start);
        opened.ranges.release(job.claim);
        opened.recorded.remove(&job.claim);
    }
    let health = &mut state.sources[job.source];
    health.active = health.active.saturating_sub(1);
    health.brought(started, Instant::now(), bytes);
    match ended {
        Err(End::Refused(why)) if !state.is_over() => {
            state.refused(job.file, job.source, started, why);
        }
        Err(End::Disk(error)) => {
            let problem = format!("it cannot be written: {error}");
            state.end(job.file, Outcome::of_error(&error, problem));
        }
        _ => {}
    }
    drop(guard);
    shared.tell();
}
