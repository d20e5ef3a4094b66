//! A run: its steps, its threads, and what the caller hears of them.
//!
//! The invariant: when [`fetch`] returns, all its threads have ended.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use crate::hash::opened_digest;
use crate::health::Health;
use crate::keeper::{FILES_AT_ONCE, keep_files, kept_bytes, unfinished_folder};
use crate::locks::{self, Held};
use crate::options::Options;
use crate::ranges::SourceId;
use crate::remote::{Client, Refusal};
use crate::shared::Shared;
use crate::state::{FileState, Standing, State};
use crate::worker::work;
use crate::{
    Event, FetchError, FileReport, ListedFile, Observer, Outcome, Report, Source, SourceReport,
};

/// The time between two looks of the calling thread.
const TICK: Duration = Duration::from_millis(50);

/// The most ranges at once.
const JOBS_MAX: usize = 256;

/// Fetches `files` into a folder. Files that are there with the right digest stay as they
/// are. Bytes that an earlier run left are used. `stop` ends the run soon, and keeps the
/// bytes that came.
///
/// The report tells the end of each file. A file that could not be fetched is no error of
/// the run.
///
/// # Errors
/// [`FetchError::NoSource`], [`FetchError::NoSpace`], or an error of the folder or of a
/// thread. Nothing was fetched then.
pub fn fetch(
    files: &[ListedFile],
    options: Options,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Report, FetchError> {
    if options.sources.is_empty() {
        return Err(FetchError::NoSource);
    }
    make_folder(&options.folder)?;
    let shared = Shared::new(
        options.clone(),
        Client::new(options.patience),
        state_of(files, &options),
    );
    let lock = Mutex::new(None);
    let next_file = AtomicUsize::new(0);
    thread::scope(|scope| {
        if let Err(error) = start(scope, &shared, &lock, &next_file) {
            shared.state().error = Some(FetchError::Thread(error));
        }
        watch(&shared, stop, observer);
        shared.client.shut_down();
        shared.tell();
    });
    let held = lock.into_inner().unwrap_or_else(PoisonError::into_inner);
    if held.is_some() {
        // It fails while files are left there.
        let _ = fs::remove_dir(unfinished_folder(&options.folder));
    }
    drop(held);
    tell(&mut shared.state(), observer);
    let mut state = shared.into_state();
    match state.error.take() {
        Some(error) => Err(error),
        None => Ok(report(state, options.sources.len())),
    }
}

/// Returns the state of a run at its start. A file or source that is named twice counts once.
fn state_of(files: &[ListedFile], options: &Options) -> State {
    let mut sources: Vec<&Source> = Vec::new();
    for source in &options.sources {
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    let mut listed: Vec<&ListedFile> = Vec::new();
    for file in files {
        if !listed.iter().any(|other| other.name == file.name) {
            listed.push(file);
        }
    }
    let files = listed.into_iter().cloned();
    let files = files
        .map(|file| FileState::new(file, sources.len()))
        .collect();
    let health = |source: &Source| Health::new(source.to_string(), Some(source.clone()));
    let sources = sources.into_iter().map(health).collect();
    State::new(files, sources, options.failures_max)
}

/// Starts the threads.
fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared,
    lock: &'scope Mutex<Option<Held>>,
    next_file: &'scope AtomicUsize,
) -> io::Result<()> {
    let named = |name: &str| thread::Builder::new().name(name.to_owned());
    named("fetch-begin").spawn_scoped(scope, move || begin(scope, shared, lock))?;
    for _ in 0..FILES_AT_ONCE {
        named("fetch-file").spawn_scoped(scope, move || keep_files(shared, next_file))?;
    }
    let sources = shared.state().sources.len();
    for _ in 0..shared.options.jobs.clamp(1, JOBS_MAX).max(sources) {
        named("fetch-range").spawn_scoped(scope, move || work(shared))?;
    }
    Ok(())
}

/// Tells the observer what happens until the run is over.
fn watch(shared: &Shared, stop: &AtomicBool, observer: &mut dyn Observer) {
    loop {
        let mut state = shared.state();
        state.end_hopeless();
        if stop.load(Ordering::Relaxed) {
            state.is_stopped = true;
        }
        let is_over = state.is_over();
        let (events, progress) = (std::mem::take(&mut state.events), state.progress());
        drop(state);
        for event in &events {
            observer.event(event);
        }
        observer.progress(&progress);
        if is_over {
            return;
        }
        shared.tell_arrival();
        drop(shared.wait(shared.state(), TICK));
    }
}

fn tell(state: &mut State, observer: &mut dyn Observer) {
    for event in std::mem::take(&mut state.events) {
        observer.event(&event);
    }
    observer.progress(&state.progress());
}

/// Makes everything ready: locks the folder, looks at the files that are there, asks for
/// lengths, and checks the room on the disk.
fn begin<'scope>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared,
    lock: &'scope Mutex<Option<Held>>,
) {
    if let Err(error) = try_begin(scope, shared, lock) {
        shared.state().error = Some(error);
    }
    shared.tell();
}

fn try_begin<'scope>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared,
    lock: &'scope Mutex<Option<Held>>,
) -> Result<(), FetchError> {
    let folder = &shared.options.folder;
    let path = locks::folder_lock(folder);
    let waiting = Event::Waiting { path: path.clone() };
    let held = shared
        .poll(
            |state| state.events.push(waiting),
            || locks::try_folder(&path),
        )
        .map_err(|error| FetchError::file(&path, "lock", error))?;
    let is_held = held.is_some();
    *lock.lock().unwrap_or_else(PoisonError::into_inner) = held;
    if !is_held {
        return Ok(());
    }
    make_folder(&unfinished_folder(folder))?;
    let files = shared.state().files.len();
    for file in 0..files {
        look_at(shared, file);
    }
    let sources = shared.state().sources.len();
    for source in 0..sources {
        let asker = thread::Builder::new().name("fetch-ask".to_owned());
        asker
            .spawn_scoped(scope, move || ask(shared, source))
            .map_err(FetchError::Thread)?;
    }
    check_space(shared)
}

fn make_folder(folder: &Path) -> Result<(), FetchError> {
    fs::create_dir_all(folder).map_err(|error| FetchError::file(folder, "make the folder", error))
}

/// Looks at a file that may be there already.
fn look_at(shared: &Shared, file: usize) {
    if shared.is_over() {
        return;
    }
    let listed = shared.state().files[file].listed.clone();
    let path = shared.options.folder.join(&listed.name);
    let found = match File::open(&path) {
        Ok(found) => digest_of(shared, &path, &found, file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => Err(error),
    };
    if let Ok(Some(_)) = found {
        shared.note_digest(&listed);
    }
    let mut state = shared.state();
    state.files[file].looked_at = None;
    match found {
        Ok(Some(length)) => {
            state.files[file].length = Some(length);
            state.end(file, Outcome::AlreadyThere);
        }
        Ok(None) if !state.is_over() => {
            state.events.push(Event::WrongBefore { file: listed.name });
        }
        Err(error) if !state.is_over() => {
            let problem = format!("the file that is there cannot be read: {error}");
            state.end(file, Outcome::Failed(problem));
        }
        _ => {}
    }
}

/// Returns the length of a file that is there, in bytes, if its digest is right. Waits while
/// another process writes it.
fn digest_of(shared: &Shared, path: &Path, opened: &File, file: usize) -> io::Result<Option<u64>> {
    let waiting = Event::Waiting {
        path: path.to_owned(),
    };
    let free = shared.poll(
        |state| state.events.push(waiting),
        || Ok(locks::try_file(opened, false).then_some(())),
    )?;
    if free.is_none() {
        return Ok(None);
    }
    let metadata = opened.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let length_bytes = metadata.len();
    let mut state = shared.state();
    let listed = state.files[file].listed.clone();
    state.files[file].looked_at = Some((0, length_bytes));
    state.events.push(Event::Comparing {
        file: listed.name,
        length_bytes,
    });
    drop(state);
    let mut hashed = 0;
    let digest = opened_digest(opened, &mut |bytes| {
        hashed += bytes;
        let mut state = shared.state();
        state.files[file].looked_at = Some((hashed, length_bytes));
        !state.is_over()
    })?;
    Ok((digest == listed.digest).then_some(length_bytes))
}

/// Asks a source for the length of each file.
fn ask(shared: &Shared, source: SourceId) {
    let files = shared.state().files.len();
    for file in 0..files {
        while let Some((place, listed)) = question(shared, file, source) {
            let began = Instant::now();
            let answer = shared.client.length(&place, &listed);
            let mut state = shared.state();
            match answer {
                _ if state.is_over() => return,
                Ok(length) => state.told(file, source, Standing::Has(length)),
                Err(Refusal::Never(problem)) => {
                    state.told(file, source, Standing::Never(problem));
                }
                Err(later) => state.refused(file, source, began, later),
            }
            drop(state);
            shared.tell();
        }
    }
}

/// Waits until a source may be asked for a file. Returns nothing if it need not be asked.
fn question(shared: &Shared, file: usize, source: SourceId) -> Option<(Source, ListedFile)> {
    let mut state = shared.state();
    loop {
        let (asked, health) = (&state.files[file], &state.sources[source]);
        let is_open = asked.outcome.is_none() && health.out.is_none() && !state.is_over();
        if !is_open || asked.standing.get(source) != Some(&Standing::Unknown) {
            return None;
        }
        if health.is_ready(Instant::now()) {
            return Some((health.source.clone()?, asked.listed.clone()));
        }
        state = shared.wait(state, TICK);
    }
}

/// Waits until the lengths are known, and checks that the disk has room for the files.
fn check_space(shared: &Shared) -> Result<(), FetchError> {
    let folder = &shared.options.folder;
    let mut state = shared.state();
    loop {
        if state.is_over() {
            return Ok(());
        }
        let is_open = |file: &&FileState| file.outcome.is_none();
        let is_known = |file: &FileState| file.length.is_some();
        if state.files.iter().filter(is_open).all(is_known) {
            let needed_bytes = state.needed_bytes(|file| kept_bytes(folder, file));
            let free_bytes = free_bytes(folder)?;
            if needed_bytes <= free_bytes {
                state.is_ready = true;
                return Ok(());
            }
            // A source may have told a wrong length. The others are waited for.
            if !is_asking(&state) {
                return Err(FetchError::NoSpace {
                    folder: folder.clone(),
                    needed_bytes,
                    free_bytes,
                });
            }
        }
        state = shared.wait(state, TICK);
    }
}

/// Returns true if a source was not asked for each file yet.
fn is_asking(state: &State) -> bool {
    let mut open = state.files.iter().filter(|file| file.outcome.is_none());
    open.any(|file| {
        let mut standing = file.standing.iter().zip(&state.sources);
        standing.any(|(standing, health)| *standing == Standing::Unknown && health.out.is_none())
    })
}

/// Returns the bytes that the disk of a folder has for this user.
fn free_bytes(folder: &Path) -> Result<u64, FetchError> {
    let stat = nix::sys::statvfs::statvfs(folder)
        .map_err(|errno| FetchError::file(folder, "ask for the free space", errno.into()))?;
    Ok(stat.blocks_available().saturating_mul(stat.fragment_size()))
}

fn report(state: State, sources: usize) -> Report {
    let files = state.files.into_iter().map(|file| FileReport {
        name: file.listed.name,
        length_bytes: file.length,
        outcome: file.outcome.unwrap_or(Outcome::Stopped),
    });
    let sources = state.sources.into_iter().take(sources);
    let sources = sources.filter(|health| health.source.is_some());
    let sources = sources.map(|health| SourceReport {
        source: health.name,
        fetched_bytes: health.fetched_bytes,
        is_corrupt: health.is_corrupt,
        out: health.out,
    });
    Report {
        files: files.collect(),
        sources: sources.collect(),
    }
}
