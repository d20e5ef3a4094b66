//! A thread that takes one file after the other from its first byte to its name.
//!
//! It opens the unfinished file, hashes it while bytes come, and gives it its name. The
//! invariant: a file gets its name only after all its bytes were hashed from the disk's view
//! of it, and the digest is right.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::hash::{PrefixHash, STEP_BYTES};
use crate::health::Health;
use crate::ranges::Ranges;
use crate::record::{self, Left, Record};
use crate::shared::Shared;
use crate::state::{FileState, Opened, State};
use crate::{Event, ListedFile, Outcome, locks, trial};

/// The files that are fetched at the same time. Each has a thread that hashes it.
pub(crate) const FILES_AT_ONCE: usize = 4;

/// The folder of unfinished files in the folder of the files.
const UNFINISHED: &str = ".cuzk-fetch";

/// The bytes after which an unfinished file is written to the disk. A crash of the machine
/// costs at most so many.
const SYNC_BYTES: u64 = 1 << 30;

/// The longest wait without a look at the state.
const LOOK: Duration = Duration::from_millis(200);

/// Returns the folder of unfinished files.
pub(crate) fn unfinished_folder(folder: &Path) -> PathBuf {
    folder.join(UNFINISHED)
}

/// Returns the bytes of the disk that the unfinished file of an earlier run has.
pub(crate) fn kept_bytes(folder: &Path, file: &FileState) -> u64 {
    let path = unfinished_folder(folder).join(&file.listed.name);
    // A file with holes has fewer blocks than its length. A block has 512 bytes.
    let blocks = fs::metadata(path).map_or(0, |metadata| metadata.blocks());
    blocks.saturating_mul(512).min(file.length.unwrap_or(0))
}

/// Takes files until all are taken or the run is over.
pub(crate) fn keep_files(shared: &Shared, next: &AtomicUsize) {
    loop {
        let mut state = shared.state();
        while !state.is_ready && !state.is_over() {
            state = shared.wait(state, LOOK);
        }
        let file = next.fetch_add(1, Ordering::Relaxed);
        if state.is_over() || file >= state.files.len() {
            return;
        }
        let is_open = state.files[file].outcome.is_none();
        drop(state);
        if is_open && let Err(outcome) = keep(shared, file) {
            shared.state().end(file, outcome);
        }
        shared.tell();
    }
}

/// The next work for a file.
enum Step {
    /// Its bytes up to this position can be hashed.
    Hash(u64),
    /// All its bytes were hashed.
    Compare,
    /// Nothing: the run is over, or the file has failed.
    Nothing,
}

/// Keeps a file until its end. The error is its end, if it failed here.
fn keep(shared: &Shared, file: usize) -> Result<(), Outcome> {
    let cannot = |what: &'static str| {
        move |error: io::Error| Outcome::of_error(&error, format!("it cannot {what}: {error}"))
    };
    let listed = shared.state().files[file].listed.clone();
    let data = open(shared, file, &listed)?;
    let mut hash = PrefixHash::new();
    let mut synced = 0;
    loop {
        match step(shared, file, &mut hash) {
            Step::Nothing => return Ok(()),
            Step::Hash(end) => {
                let hashed = hash.advance(&data, end);
                hashed.map_err(cannot("be read"))?;
                if hash.position() >= SYNC_BYTES.saturating_add(synced) {
                    synced = hash.position();
                    sync(shared, file, &data).map_err(cannot("be written"))?;
                }
            }
            Step::Compare if hash.digest() == listed.digest => {
                if !close(&mut shared.state(), file) {
                    continue;
                }
                let published = publish(shared, &listed, &data);
                if published.map_err(cannot("get its name"))? {
                    shared.note_digest(&listed);
                    shared.state().end(file, Outcome::Fetched);
                }
                return Ok(());
            }
            Step::Compare => {
                let name = listed.name.clone();
                shared
                    .state()
                    .events
                    .push(Event::WrongDigest { file: name });
                trial::failed(shared, file, &data).map_err(Outcome::Failed)?;
                shared.tell();
            }
        }
    }
}

/// Ends all writing to a file whose digest is right. Returns false if bytes of it were
/// dropped meanwhile: others may write to it, so it is hashed again.
fn close(state: &mut State, file: usize) -> bool {
    let closed = &mut state.files[file];
    if !closed.opened.as_ref().is_some_and(Opened::is_as_hashed) {
        return false;
    }
    closed.opened = None;
    closed.is_whole = true;
    trial::passed(state, file);
    true
}

/// Waits until a file needs something. Rewinds its hash to the first byte that changed.
fn step(shared: &Shared, file: usize, hash: &mut PrefixHash) -> Step {
    let mut state = shared.state();
    loop {
        if state.is_over() {
            return Step::Nothing;
        }
        let file = &mut state.files[file];
        let Some(opened) = file.opened.as_mut().filter(|_| file.outcome.is_none()) else {
            return Step::Nothing;
        };
        if let Some(position) = opened.rewind.take() {
            hash.rewind(position);
        }
        let prefix = opened.ranges.prefix();
        let is_complete = opened.ranges.is_complete();
        let ready = prefix.saturating_sub(hash.position());
        // Less than a step is hashed only at the end: a step costs a look at the state.
        if ready >= STEP_BYTES || ready > 0 && is_complete {
            return Step::Hash(prefix);
        }
        if is_complete && hash.position() == opened.ranges.length() {
            return Step::Compare;
        }
        state = shared.wait_for_bytes(state, LOOK);
    }
}

/// Opens the unfinished file, with the bytes that an earlier run left.
fn open(shared: &Shared, file: usize, listed: &ListedFile) -> Result<Arc<File>, Outcome> {
    let folder = unfinished_folder(&shared.options.folder);
    let (path, record_path) = paths(&folder, listed);
    let failed_at = |path: &Path, error: io::Error| {
        Outcome::of_error(&error, format!("{}: {error}", path.display()))
    };
    let failed = |error| failed_at(&path, error);
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    let data = Arc::new(options.open(&path).map_err(failed)?);
    let left = record::read(&record_path, listed.digest).unwrap_or_default();
    let there_bytes = data.metadata().map_err(failed)?.len();
    // The bytes that were left must be on the disk before the new record tells of them.
    data.sync_data().map_err(failed)?;
    let mut state = shared.state();
    let length = state.files[file].length.unwrap_or(0);
    let ranges = left_ranges(&mut state, left, there_bytes, length);
    let names: Vec<_> = state
        .sources
        .iter()
        .map(|health| health.name.clone())
        .collect();
    let record = Record::begin(&record_path, listed.digest, &ranges, |source| {
        names.get(source).cloned().unwrap_or_default()
    });
    let record = record.map_err(|error| failed_at(&record_path, error))?;
    state.events.push(Event::Begun {
        file: listed.name.clone(),
        length_bytes: length,
        kept_bytes: ranges.present_bytes(),
    });
    state.files[file].opened = Some(Opened {
        data: Arc::clone(&data),
        ranges,
        record,
        recorded: std::collections::BTreeMap::new(),
        rewind: None,
    });
    drop(state);
    shared.tell();
    Ok(data)
}

/// Returns the state of the bytes that an earlier run left. Sources that are not of this run
/// join the list of sources, and are not asked.
fn left_ranges(state: &mut State, mut left: Left, there_bytes: u64, length: u64) -> Ranges {
    if left.ranges.length() > there_bytes {
        left.ranges.resize(there_bytes);
    }
    let mut ranges = Ranges::new(length);
    for (range, source) in left.ranges.spans() {
        let Some(name) = left.sources.get(source) else {
            continue;
        };
        let known = state.sources.iter().position(|health| health.name == *name);
        let source = known.unwrap_or_else(|| {
            state.sources.push(Health::new(name.clone(), None));
            state.sources.len() - 1
        });
        ranges.put(range, source);
    }
    ranges
}

fn paths(folder: &Path, listed: &ListedFile) -> (PathBuf, PathBuf) {
    let name = &listed.name;
    (folder.join(name), folder.join(format!("{name}.record")))
}

/// Writes a file to the disk and records it.
fn sync(shared: &Shared, file: usize, data: &File) -> io::Result<()> {
    let lines = {
        let state = shared.state();
        let opened = state.files[file].opened.as_ref();
        opened.map_or(0, |opened| opened.record.lines())
    };
    data.sync_data()?;
    match &mut shared.state().files[file].opened {
        Some(opened) => opened.record.synced(lines),
        None => Ok(()),
    }
}

/// Gives a file its name. Returns false if the run was over before another process gave the
/// name free.
fn publish(shared: &Shared, listed: &ListedFile, data: &File) -> io::Result<bool> {
    let folder = &shared.options.folder;
    let (path, record_path) = paths(&unfinished_folder(folder), listed);
    let target = folder.join(&listed.name);
    let length = shared.state().files.iter().find_map(|file| {
        let is_it = file.listed.name == listed.name;
        file.length.filter(|_| is_it)
    });
    data.set_len(length.unwrap_or(0))?;
    data.sync_all()?;
    let lock_path = locks::maker_lock(folder, &listed.name);
    let waits = |path: &Path| Event::Waiting {
        path: path.to_owned(),
    };
    // Else the wait for another thread of the run would be told as that for a process.
    let Some(_turn) = shared.poll(|_| (), || Ok(shared.turn(&lock_path)))? else {
        return Ok(false);
    };
    let maker = shared.poll(
        |state| state.events.push(waits(&lock_path)),
        || locks::try_maker(&lock_path),
    )?;
    let Some(_maker) = maker else {
        return Ok(false);
    };
    // The file that is replaced may be in use by the proofs libraries.
    let old = match File::open(&target) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let free = shared.poll(
        |state| state.events.push(waits(&target)),
        || {
            let is_free = old.as_ref().is_none_or(|old| locks::try_file(old, true));
            Ok(is_free.then_some(()))
        },
    )?;
    if free.is_none() {
        return Ok(false);
    }
    fs::rename(&path, &target)?;
    File::open(folder)?.sync_all()?;
    let _ = fs::remove_file(record_path);
    Ok(true)
}
