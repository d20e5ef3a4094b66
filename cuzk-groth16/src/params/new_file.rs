//! New files of the parameter cache, and the lock of those who make them.
//!
//! Not what is in them. The invariants: a file has its name when it is whole; it never
//! replaces another; one that was stopped leaves nothing.

use std::fs::{File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use bellperson::groth16::VerifyingKey;
use blstrs::Bls12;
use cuzk_files::Draft;
use cuzk_memory::Checkpoint;

use super::error::ParamsError;

/// The time between two looks at a lock that another process has.
const LOCK_POLL: Duration = Duration::from_millis(50);

pub(super) fn write_key(path: &Path, vk: &VerifyingKey<Bls12>) -> Result<(), ParamsError> {
    write_new(path, |writer| {
        vk.write(writer).map_err(|source| created(path, source))
    })
}

/// A failure to create or write `path`; unlike when reading, a missing folder
/// is just that.
pub(super) fn created(path: &Path, source: io::Error) -> ParamsError {
    ParamsError::Io {
        path: path.to_owned(),
        source,
    }
}

/// Makes a file of the cache, whole or not at all, of what `write` writes.
pub(super) fn write_new<T>(
    target: &Path,
    write: impl FnOnce(&mut BufWriter<&File>) -> Result<T, ParamsError>,
) -> Result<T, ParamsError> {
    let failed = |source| created(target, source);
    let draft = Draft::begin(target).map_err(failed)?;
    let mut writer = BufWriter::new(draft.file());
    let written = write(&mut writer)?;
    writer.flush().map_err(failed)?;
    drop(writer);
    draft.publish_new().map_err(failed)?;
    Ok(written)
}

/// A writer that fails once its checkpoint is cancelled.
pub(super) struct Stoppable<'a, 'c, W> {
    pub(super) writer: W,
    pub(super) checkpoint: &'a Checkpoint<'c>,
}

impl<W: Write> Write for Stoppable<'_, '_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.checkpoint.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Takes the lock file at `path`. Waits, and says so, while another process makes
/// `target` under it.
pub(super) fn lock_or_wait(
    path: &Path,
    target: &Path,
    checkpoint: &Checkpoint<'_>,
) -> Result<File, ParamsError> {
    let file = File::create(path).map_err(|source| created(path, source))?;
    let mut is_said = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(source)) => return Err(created(path, source)),
        }
        if checkpoint.is_cancelled() {
            return Err(ParamsError::Stopped);
        }
        if !std::mem::replace(&mut is_said, true) {
            tracing::info!(
                path = %target.display(),
                "another process makes these parameters; waiting until it has ended"
            );
        }
        thread::sleep(LOCK_POLL);
    }
}

#[cfg(test)]
mod tests {
    use cuzk_bounded::BoundedJoin;
    use cuzk_memory::{Cancellation, NEVER_STOP};

    use super::*;

    #[test]
    fn a_wait_for_another_process_ends_with_its_lock_or_when_it_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("params.lock");
        let take = |checkpoint: &Checkpoint<'_>| lock_or_wait(&path, &path, checkpoint);
        let held = take(&NEVER_STOP).unwrap();
        let cancellation = Cancellation::default();
        cancellation.cancel();
        let stopped = take(&Checkpoint::new(&cancellation));
        assert!(matches!(stopped, Err(ParamsError::Stopped)));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| take(&NEVER_STOP).is_ok());
            drop(held);
            assert!(waiting.join_bounded().unwrap());
        });
    }

    #[test]
    fn a_file_that_is_stopped_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let cancellation = Cancellation::default();
        let checkpoint = Checkpoint::new(&cancellation);
        let written = write_new(&folder.path().join("params"), |writer| {
            let mut writer = Stoppable {
                writer,
                checkpoint: &checkpoint,
            };
            let failed = |_| ParamsError::Stopped;
            writer.write_all(b"one").map_err(failed)?;
            cancellation.cancel();
            writer.write_all(b"two").map_err(failed)
        });
        assert!(matches!(written, Err(ParamsError::Stopped)));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
